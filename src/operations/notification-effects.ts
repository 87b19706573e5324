// What notifies of what, as docs/reference/notifications.md shows it. test/docs/notifications.test.ts does each, and compares.

const table = `
guests are registered, and nothing is to be paid → order.created, order.completed
guests are registered, to be paid → order.created
an import adds a guest → order.created, order.completed
an import changes a guest → attendee.updated
in Studio, an order is added, without attendees → none
… then its first attendee → order.created, order.completed
… then another attendee → attendee.created
an attendee is added to an order that is not paid → attendee.created, order.updated
a part of an order is paid → payment.recorded, order.updated
the rest of it is paid → payment.recorded, order.completed, attendee.updated
a payment is voided → payment.voided, order.updated
a refund is recorded → refund.recorded, order.updated
a payment deadline is moved → order.updated
the buyer is reminded of it → none
an order expires after its payment deadline → order.cancelled, order.expired, attendee.cancelled
an order that has expired is reopened → order.reopened, attendee.updated
an order is cancelled, or its last ticket → order.cancelled, attendee.cancelled
another ticket of an order is cancelled → attendee.cancelled
… and lowers its total → attendee.cancelled, order.updated
a cancelled ticket is deleted by hand → none
an attendee is edited, or their ticket reissued → attendee.updated
the contact of an order is edited → order.updated
a person is erased → attendee.erased
… who is the contact of the order as well → attendee.erased, order.updated
a ticket is sent once more → none
an e-mail comes back, or is given up → email.bounced
an entry is scanned → attendee.checked_in
an exit is scanned → attendee.checked_out
a scan is rejected → none
a check-in is undone → attendee.check_in_undone
a draft, a ticket type, a promo code or a check-in point is added or edited → none
an event is published → event.published
an event that is no draft is edited, unpublished or completed → event.updated
an event is cancelled, with its orders and waiting list → event.cancelled, order.cancelled, attendee.cancelled, waiting_list_entry.cancelled
the last place of a ticket type or of the event is taken → order.created, order.completed, ticket_type.sold_out
a quantity is lowered to what is sold → ticket_type.sold_out
a capacity is lowered to what is sold → event.updated, ticket_type.sold_out
somebody joins the waiting list → waiting_list_entry.created
a ticket is given back, while somebody waits → attendee.cancelled, order.cancelled, waiting_list_entry.offered
an offer is accepted → waiting_list_entry.accepted, order.created, order.completed
an offer expires, and the next is offered the place → waiting_list_entry.expired, waiting_list_entry.offered
a waiting-list entry is cancelled → waiting_list_entry.cancelled
a webhook endpoint is tested → webhook_endpoint.test
a write is refused, repeated with its idempotency key, or a dry run → none
`

/** The types of notification that a change sends. */
export const effects: Record<string, string[]> = Object.fromEntries(
  table
    .trim()
    .split('\n')
    .map((line) => line.split(' → '))
    .map(([change = '', types = '']) => [change, types === 'none' ? [] : types.split(', ')]),
)
