// Every error code, as the rows of a table: the HTTP status of its answer, when it occurs, and what to do.
// docs/reference/errors.md and the OpenAPI document are made of it.

const requests = {
  malformed_json: '400 | The body is not JSON, or not UTF-8. | Correct the body. MCP answers JSON-RPC error -32700.',
  bad_request:
    '400 | The server cannot parse the request, for example because the path is badly encoded. | Correct the request.',
  missing_api_key: '401 | The request has no `Authorization: Bearer` header. | Send your API key.',
  invalid_api_key: '401 | No such key exists. | Check the key: a typing error breaks its checksum.',
  missing_access_token:
    '401 | A call to `/api/mcp/connect` has no token. | Sign in by OAuth, as `WWW-Authenticate` says. With a key, call `/api/mcp`.',
  invalid_access_token:
    '401 | The access token is unknown, expired or for another address, or its authorisation was ended. | Refresh the token, or sign in again.',
  api_key_revoked: '401 | The key was revoked, which cannot be undone. | Use another key.',
  invalid_credentials:
    '401 | A webhook of the mail service has the wrong password, or a call of the edge function the wrong secret. | Check `POSTMARK_WEBHOOK_SECRET` or `COURIER_SECRET`.',
  api_key_expired: '401 | The key has expired, or its overlap after a rotation has ended. | Use another key.',
  key_for_people:
    '403 | The key belongs to a person, who signs in with it on pages. It calls nothing. | Create a key for the program: `usher keys create --name …`.',
  missing_scope:
    '403 | The key lacks the scope in `details.scope`. | Use a key that has it, or add it to this one. After a sign-in, request the scopes in `WWW-Authenticate`.',
  read_only: '403 | The MCP connection has `read_only=true`, and the tool writes. | Connect without it.',
  forbidden: '403 | The database denies the operation to its role. | Report it: this is a fault in Usher.',
  host_not_allowed: '403 | The MCP endpoint does not serve this host name. | Add the name to `ALLOWED_HOSTS`.',
  origin_not_allowed: '403 | A web page of another site called the MCP endpoint. | Add the site to `ALLOWED_HOSTS`.',
  not_found:
    '404 | Your organisation has no such object. At the door, no ticket has the code. | Check the identifier that `param` names.',
  unknown_path: '404 | No route has this path. | Compare it with the list of operations.',
  method_not_allowed: '405 | The path does not take this method. | Use a method that `Allow` lists.',
  request_timeout: '408 | The request did not arrive in time. | Send it again, without pauses.',
  version_mismatch:
    '412 | The object changed since you read it. `details.version` is its version now. | Read it again.',
  payload_too_large:
    '413 | The body is too large, before or after it is decompressed. The limit is 256 KiB, or 2 MiB for `import_attendees`. | Send less.',
  unsupported_media_type:
    '415 | The body is not JSON in UTF-8, or its `Content-Encoding` is unknown. | Send `Content-Type: application/json`.',
  expectation_failed: '417 | The `Expect` header asks for something other than `100-continue`. | Leave the header out.',
  validation_failed:
    '422 | `details.fields` lists up to 20 invalid fields, and `details.more` counts the others. Nothing was changed. | Correct the fields. MCP answers JSON-RPC error -32600 to a body with too many values or levels.',
  idempotency_key_reused:
    '422 | The idempotency key belongs to a different request. | Repeat that request, or send a new key.',
  ambiguous_name:
    '422 | Over MCP, several objects have this name. `details.candidates` lists up to ten, and `details.more` counts the others. | Send the id of one, or name its event as well.',
  id_needed:
    '422 | Over MCP, an irreversible operation takes an id or a reference, not a name. `details.candidates` lists the matches. | Make sure which one is meant, and send its id.',
  confirmation_required:
    '428 | Over MCP, a person must confirm the call. `details` has the `url` of the page, when it expires, and the effect. | Give the person the link. Repeat the same call once they have confirmed.',
  rate_limited: '429 | The key made more requests in a minute than its plan allows. | Wait `Retry-After` seconds.',
  too_many_failures: '429 | This address sent too many invalid keys or passwords. | Wait, then send a valid one.',
  too_many_exports: '429 | The organisation has two exports running. | Wait until one is complete, or abort one.',
  headers_too_large: '431 | The headers are over 16 KiB. | Send less.',
  internal_error: '500 | Usher has a fault. | Report the `request_id`.',
  temporarily_unavailable:
    '503 | The database is away or busy, or gave way to another transaction. Nothing was changed. | Send the request again.',
  outcome_unknown:
    '503 | The connection to the database broke. The request may or may not have been carried out. | If `retryable` is true (a read, or a write with an idempotency key), send it again. Otherwise look first.',
  out_of_time:
    '503 | The request exceeded the time limit of the database and was rolled back. The same request would take as long. | Follow the `hint`: send less, such as half of the list or a smaller `limit`, or try later.',
}

/** A rule forbids it in the current state. */
const rules = {
  invalid_transition:
    '409 | The status cannot change from `details.from` to `details.to`. | Compare the states of the object.',
  event_not_publishable: '409 | The event lacks what `param` names: dates or a ticket type. | Add it.',
  event_has_orders:
    '409 | The event has orders. It cannot become a draft again or change its currency. | To close registration, set `sales_end_at` of its ticket types, or complete the event.',
  event_ended:
    '409 | The event ended at `details.ends_at`. It cannot be published (`param` is `ends_at`) and takes no guests (`event_id`). | Give the event a later `ends_at`.',
  event_not_published:
    '409 | Guests register only while the event is published. `details.status` is its status. | Publish the event.',
  sold_out:
    '409 | `param` names what is full: the ticket type or the event. Of `reopen_order`, `details.missing` and `details.event` count the places that are `needed` and `available`. | Choose another ticket type, or add places. If the waiting list offers a place, call `accept_waiting_list_offer`.',
  not_sold_out: '409 | Tickets are left, so nobody has to wait. | Register the person.',
  not_offered:
    '409 | The waiting list offers this person no place. `details.status` is the status of the entry. | Wait for the offer.',
  offer_expired:
    '409 | The offer of the waiting list ended at `details.offer_expires_at`. | Join the waiting list again.',
  ticket_type_archived: '409 | The ticket type is archived. | Choose another ticket type.',
  sales_not_started: '409 | Sales start at `details.sales_start_at`. | Wait.',
  sales_ended: '409 | Sales ended at `details.sales_end_at`. | Choose another ticket type.',
  quantity_not_allowed:
    '409 | An order takes `details.min_per_order` to `details.max_per_order` tickets of this type. | Change the number of tickets.',
  promo_code_disabled: '409 | The promo code is disabled. | Register without it.',
  promo_code_not_started: '409 | The promo code is valid from `details.valid_from`. | Wait, or register without it.',
  promo_code_expired: '409 | The promo code was valid until `details.valid_until`. | Register without it.',
  promo_code_used_up:
    '409 | The promo code has fewer uses left than there are tickets. Of `reopen_order`, see `details.needed` and `details.available`. | Register without it, or raise `max_redemptions`.',
  promo_code_not_applicable:
    '409 | The promo code is not for these ticket types, or they are free. | Register without it.',
  total_changed:
    '409 | The order would come to `details.total`, not to `expected_total`. | Show the buyer the new total, then send it.',
  order_completed:
    '409 | A completed order takes no payment deadline and no more tickets with a price. | Create a new order.',
  capacity_below_sold: '409 | The capacity would be below `details.places_taken`. | Send a higher number.',
  quantity_below_sold:
    '409 | The quantity would not cover `details.quantity_sold`, and `details.quantity_held` for the waiting list. | Send a higher number.',
  limit_below_redeemed: '409 | The limit would be below `details.times_redeemed`. | Send a higher number.',
  already_exists:
    '409 | Another object has this `param`; `details.id` is its id, where known. A cancelled order (`details.object`) keeps its `external_id` until its money is returned. In an import, an earlier guest of the list may have it. | Use that object, or send another value.',
  in_use:
    '409 | The object cannot be deleted: others refer to it, it is a valid ticket, or it is an event and not a draft (`details.status`). | Follow the hint.',
  plan_outdated:
    '409 | The plan of `apply_event` cannot be applied. `details.reason` is `unknown` (no plan, or one of another key), `expired` (after ten minutes), `applied` (`details.event_id`), `arguments` (`details.arguments`), `changed` (`details.changed`, or the `details.step` that is now refused) or `refused`. | Make a new plan: repeat the call without `plan_id`.',
  read_only_field: '409 | Usher maintains this field. | Leave the field out.',
  append_only: '409 | The row is part of a log. | Follow the hint.',
  last_owner: '409 | A member would remove the last owner of the organisation. | Make somebody else an owner first.',
  order_cancelled:
    '409 | A cancelled order takes no attendees, no payment deadline and no reminder. It can be reopened only if it expired and has tickets left. | Create a new order.',
  order_expired:
    '409 | The order was not paid by `details.payment_due_at`. It was cancelled at `details.cancelled_at`, or is about to be. | While there are places, call `reopen_order` and then record the payment. Otherwise return money that came too late.',
  buyer_not_mailed:
    '409 | The buyer gets no e-mails. `details.reason` is `send_email_false`, `erased` or `no_address`. | Remind the buyer another way.',
  reminded_recently: '409 | The buyer was reminded within 24 hours. | Wait until `details.next_reminder_at`.',
  payment_due:
    '409 | Money is due. An order completes when nothing is due, and is refunded when its payments cover it. | Record the payment. Before a refund, cancel the order.',
  nothing_due:
    '409 | The order is paid or cancelled. | Return money that came for it. A refund that the bank sent back cannot be taken back yet.',
  overpayment:
    '409 | The payment is more than `details.amount_due`. | Record the amount due. Return the rest at the bank without recording it: its refund would be due again.',
  wrong_currency: '409 | The order is in `details.currency`. | Check the amount.',
  payment_voided: '409 | The payment is voided already. | Nothing to do.',
  payment_refunded:
    '409 | Without the payment, less would be paid than `details.amount_refunded`. | Leave the payment: the money was received.',
  nothing_refundable:
    '409 | Everything that was paid is refunded. | Nothing to do. If the bank sent a refund back, send the money again: the refund stays recorded.',
  refund_too_high: '409 | The refund is more than `details.amount_left`. | Record at most that.',
  ticket_not_reissuable: '409 | The ticket was used or cancelled. | Undo the check-in, or register the guest again.',
  attendee_erased: '409 | The personal data of the attendee was erased. | Register the new person instead.',
  no_address:
    '409 | The address of the attendee is under `.invalid`, which receives no mail. | Correct it with `update_attendee`, which sends the ticket unless the order has `send_email` false.',
  email_obsolete:
    '409 | The e-mail no longer applies: its payment was made, its ticket was cancelled, its recipient was erased or takes no mail, or it is a payment reminder. | Another e-mail reports the current state. For a reminder, call `send_payment_reminder`.',
  several_people:
    '409 | Several people share the e-mail address: `details.count` of them. `details.people` tells them apart, as far as the key may read them. | Send their `names`, or `everyone`.',
  ticket_not_active:
    '409 | The ticket is cancelled or unpaid. `details.status` says which. | Record the payment, or register the guest again.',
  webhook_endpoint_disabled: '409 | The webhook endpoint is disabled, so nothing is sent to it. | Enable the endpoint.',
  too_many_webhook_endpoints:
    '409 | The organisation has 50 webhook endpoints. | Delete one, or subscribe one to more types.',
  too_many_grants:
    '409 | On the sign-in page: 100 clients may use the key already. | End some at `/oauth/grants`, or sign in with another key.',
  type_not_subscribed: '409 | The webhook endpoint no longer subscribes to the type. | Add the type to the endpoint.',
  api_key_rotated: '409 | The key was rotated already. | Rotate its successor.',
}

/** At the door: a rejected scan, which is logged, or an undo that is refused. */
const door = {
  wrong_event: '409 | The ticket is for another event. | Send the guest there.',
  already_checked_in:
    '409 | The ticket was used at this check-in point. An exit cannot be undone after the guest came in again. | Ask the guest. `details.check_in.earlier` says when and where the ticket was used.',
  cancelled:
    '409 | The ticket was cancelled. An import answers this for a guest who was cancelled before. | Register the guest again: `register_attendee` takes the same `external_id`.',
  unpaid: '409 | The order is not paid. | Record the payment.',
  event_cancelled: '409 | The event is cancelled. | Admit nobody.',
  not_admitted_here: '409 | The check-in point does not admit this ticket type. | Send the guest to one that does.',
  point_closed: '409 | The check-in point is not open yet, has closed, or is archived. | Check its opening times.',
  not_inside: '409 | An exit was scanned, and there is no entry to end. | Scan an entry.',
  check_in_not_accepted: '409 | A rejected scan cannot be undone. | Nothing to do.',
  check_in_already_undone: '409 | The check-in was undone already. | Nothing to do.',
}

/** The rows of each chapter of docs/reference/errors.md. */
export const errorChapters: Record<string, Record<string, string>> = {
  Requests: requests,
  Rules: rules,
  'At the door': door,
}

const rows = { ...requests, ...rules, ...door }

export type ErrorCode = keyof typeof rows

export const errors = Object.fromEntries(
  Object.entries(rows).map(([code, row]) => {
    const [status, when, remedy] = row.split(' | ')
    return [code, { status: Number(status), meaning: `${when} ${remedy}` }]
  }),
) as Record<ErrorCode, { status: number; meaning: string }>

export const errorCodes = Object.keys(errors) as ErrorCode[]

/** Why an event, or one of its ticket types, takes nobody. */
export const salesClosed = [
  'event_not_published',
  'event_ended',
  'ticket_type_archived',
  'sales_not_started',
  'sales_ended',
] as const satisfies ErrorCode[]

export const promoCodeRefused = [
  'promo_code_disabled',
  'promo_code_not_started',
  'promo_code_expired',
  'promo_code_used_up',
  'promo_code_not_applicable',
] as const satisfies ErrorCode[]
