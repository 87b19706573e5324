// What is there when all is quiet, for history.ts to hold against what was answered.

import type pg from 'pg'
import { disagreementsSql } from '../../src/local/invariants.ts'
import type { State } from './history.ts'

/** What the mail service took of each e-mail, by its id. */
export type Mailed = Map<string, { at: number; to: string[] }[]>

/**
 * How each operation leaves its key, the object that its notification is about, and what the audit trail says of it; `none` where there is no
 * notification (of a draft), or no entry (arrivals are a log of their own). `$1` is the prefix of all keys, `$2` has them all.
 */
const effectsSql = `
  with done (key, id, about, type, trail) as (
    select o.metadata ->> 'prove', o.id, o.id, 'order.created', 'created'
    from public.orders o where o.metadata ->> 'prove' like $1
    union all
    select o.name, o.id, o.id, 'order.created', 'created'
    from public.orders o
    where o.source = 'page' and not exists (
      select from public.attendees a where a.order_id = o.id and a.waiting_list_entry_id is not null
    )
    union all
    select a.external_id, a.order_id, a.order_id, 'order.created', 'created'
    from public.attendees a where a.external_id like $1 || '/%'
    union all
    select 'accept:' || a.waiting_list_entry_id, a.order_id, a.order_id, 'order.created', 'created'
    from public.attendees a where a.waiting_list_entry_id is not null
    union all
    select p.external_reference, p.id, p.id, 'payment.recorded', 'created' from public.payments p
    union all
    select 'void:' || v.payment_id, v.id, v.payment_id, 'payment.voided', 'created' from public.payment_voids v
    union all
    select r.external_reference, r.id, r.id, 'refund.recorded', 'created' from public.refunds r
    union all
    select 'cancel order:' || o.id, o.id, o.id, 'order.cancelled', 'cancelled'
    from public.orders o where o.status = 'cancelled' and 'cancel order:' || o.id = any ($2)
    union all
    select 'cancel:' || a.id, a.id, a.id, 'attendee.cancelled', 'cancelled'
    from public.attendees a where a.status = 'cancelled' and 'cancel:' || a.id = any ($2)
    union all
    select 'give back:' || a.id, a.id, a.id, 'attendee.cancelled', 'cancelled'
    from public.attendees a where a.status = 'cancelled' and 'give back:' || a.id = any ($2)
    union all
    select 'decline:' || w.id, w.id, w.id, 'waiting_list_entry.cancelled', 'cancelled'
    from public.waiting_list_entries w where w.status = 'cancelled'
    union all
    select c.device, c.id, c.id,
      case when c.direction = 'exit' then 'attendee.checked_out' else 'attendee.checked_in' end, 'none'
    from public.check_ins c where c.result = 'accepted'
    union all
    select 'undo:' || c.id, c.id, c.id, 'attendee.check_in_undone', 'undone'
    from public.check_ins c where c.undone_at is not null
    union all
    select 'erase:' || a.id, a.id, a.id, 'attendee.erased', 'none'
    from public.attendees a where a.erased_at is not null
    union all
    select coalesce(w.external_id, w.name), w.id, w.id, 'waiting_list_entry.created', 'created' from public.waiting_list_entries w
    union all
    select e.name, e.id, e.id, 'none', 'created' from public.events e where e.name like $1
  ),
  told as (
    select n.type::text as type, s.about, count(*)::int as times
    from public.notifications n
    cross join lateral (
      select distinct unnest(array[n.subject_id::text, n.data ->> 'id', n.data #>> '{check_in,id}']) as about
    ) s
    group by 1, 2
  )
  select d.key, d.id, case when d.type = 'none' then 1 else coalesce(t.times, 0) end as notifications,
    case when d.trail = 'none' then 1 else (
      select count(*)::int
      from public.audit_entries e
      where e.object_id = d.id
        and case d.trail
          when 'created' then e.action = 'created'
          when 'cancelled' then e.changes #>> '{status,to}' = 'cancelled'
          else e.changes ? 'undone_at'
        end
    ) end as entries,
    (select sum(a.price - a.discount)::int from public.attendees a where a.order_id = d.id) as total
  from done d
  left join told t on t.about = d.about::text and t.type = d.type
  union all
  -- The trail and the notification of an edit are of one transaction.
  select t.key, a.id,
    least(1, (
      select count(*)::int from public.notifications n
      where n.subject_id = a.order_id and n.type = 'attendee.updated' and n.data ->> 'id' = a.id::text and n.created_at = e.created_at
    )),
    1, null
  from public.audit_entries e
  join public.attendees a on a.id = e.object_id
  cross join lateral (
    select coalesce(
      e.changes #>> '{metadata,to,prove}', e.changes #>> '{company,to}', e.changes #>> '{answers,to,note}', e.changes #>> '{name,to}'
    ) as key
  ) t
  where t.key like $1`

const limitsSql = `
  select 'tickets of ' || t.name as name, t.quantity as limit,
    (select count(*)::int from public.attendees a where a.ticket_type_id = t.id and a.status <> 'cancelled')
      + (select count(*)::int from public.waiting_list_entries w where w.ticket_type_id = t.id and w.status = 'offered') as taken
  from public.ticket_types t where t.quantity is not null
  union all
  select 'places of ' || e.name, e.capacity,
    (select count(*)::int from public.attendees a where a.event_id = e.id and a.status <> 'cancelled')
      + (select count(*)::int from public.waiting_list_entries w where w.event_id = e.id and w.status = 'offered')
  from public.events e where e.capacity is not null
  union all
  select 'uses of ' || c.code, c.max_redemptions,
    (select count(*)::int from public.attendees a where a.promo_code_id = c.id and a.status <> 'cancelled')
  from public.promo_codes c where c.max_redemptions is not null`

export async function readState(
  database: pg.Client,
  { prefix, keys, received, mailed }: { prefix: string; keys: string[]; received: Set<string>; mailed: Mailed },
): Promise<Omit<State, 'copies' | 'courierCuts' | 'trespasses'>> {
  const rows = async <Row extends pg.QueryResultRow>(sql: string, values: unknown[] = []) =>
    (await database.query<Row>(sql, values)).rows
  type Found = { key: string; id: string; notifications: number; entries: number; total: number | null }
  const found = await rows<Found>(effectsSql, [`${prefix}-%`, keys])
  const notifications = await rows<{ id: string }>(
    "select id from public.notifications where type <> 'webhook_endpoint.test' and subject_id is not null and type not in ('event.published', 'event.updated')",
  )
  // Tickets that went together have the id of the first.
  const emails = await rows<{ id: string; lead: string; to: string; status: string; isTest: boolean; isKept: boolean }>(
    `select e.id, coalesce(e.sent_with, e.id) as lead, e.sent_to as to, concat_ws(' ', e.status, e.kind, e.last_error) as status,
       o.is_test as "isTest", e.content is not null or e.sent_with is not null as "isKept"
     from public.emails e join public.organisations o on o.id = e.organisation_id
     where e.status <> 'cancelled' and not e.id = any (api.erased_emails(array[e.id]))`,
  )
  const attempts = await rows<{ id: string; attempts: number }>('select id, attempts from public.emails')
  const withoutTicket = await rows<{ id: string }>(
    `select a.id from public.attendees a join public.orders o on o.id = a.order_id
     where a.status = 'active' and a.erased_at is null and a.ticket_email_status <> 'not_requested'
       and not exists (select from public.emails m where m.attendee_id = a.id and m.kind = 'ticket' and m.status = 'sent')`,
  )
  const isSent = ({ lead, to, status, isTest, isKept }: (typeof emails)[number]) =>
    status.startsWith('sent') && (isTest ? isKept : mailed.get(lead)?.some((mail) => mail.to.includes(to)))
  return {
    effects: found.map(({ entries, total, ...effect }) => ({
      ...{ ...effect, auditEntries: entries },
      ...(total !== null && { total }),
    })),
    limits: await rows(limitsSql),
    money: (
      await rows<{ id: string; kept: string }>(
        `select o.id, coalesce((select sum(p.amount) from public.payments p where p.order_id = o.id), 0)
           - coalesce((select sum(p.amount) from public.payment_voids v join public.payments p on p.id = v.payment_id where p.order_id = o.id), 0)
           - o.amount_refunded as kept
         from public.orders o`,
      )
    ).map(({ id, kept }) => ({ orderId: id, kept: Number(kept) })),
    undelivered: notifications.map(({ id }) => id).filter((id) => !received.has(id)),
    unsent: [
      ...emails.filter((email) => !isSent(email)).map(({ id, status }) => `${id} ${status}`),
      ...withoutTicket.map(({ id }) => `ticket of ${id}`),
    ],
    leaked: emails.filter(({ isTest, id }) => isTest && mailed.has(id)).map(({ id }) => id),
    mails: attempts.map(({ id, attempts }) => ({ id, attempts, at: (mailed.get(id) ?? []).map(({ at }) => at) })),
    disagreements: await rows(disagreementsSql, [null]),
  }
}
