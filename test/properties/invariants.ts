// What must be true of an event whatever happened to it, counted anew from its rows. Every transaction leaves all of it
// true, so it may be asked in the midst of things: one statement sees one moment.
//
// Each rule is a query that finds what breaks it. Tables are unqualified, so that invariants.test.ts can put broken copies of
// them in front and see every rule fail.

import type pg from 'pg'
import { studio } from '../support/database.ts'

const standing = "a.status <> 'cancelled'"

const standingOf = (row: string) => `(select count(*) from attendees a where ${row} and ${standing})`

const offersOf = (row: string) => `(select count(*) from waiting_list_entries w where ${row} and w.status = 'offered')`

const linesOf = (amount: string, which: string) =>
  `(select coalesce(sum(${amount}), 0) from attendees a where a.order_id = o.id and ${which})`

/** A cancelled ticket was a line of its order until then, hence those cancelled together with it. */
const totalsAre = (which: string) =>
  `(o.subtotal, o.discount_total, o.total) = (${linesOf('a.price', which)}, ${linesOf('a.discount', which)}, ${linesOf('a.price - a.discount', which)})`

const hasAttendee = (status: string) =>
  `exists (select from attendees a where a.order_id = o.id and a.status = '${status}')`

const entries = `c.attendee_id = a.id and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null`

const rules = {
  'quantity_sold is how many hold a ticket': `
    select t.* from ticket_types t where t.event_id = $1 and t.quantity_sold <> ${standingOf('a.ticket_type_id = t.id')}`,
  'quantity_held is how many offers stand': `
    select t.* from ticket_types t where t.event_id = $1 and t.quantity_held <> ${offersOf('w.ticket_type_id = t.id')}`,
  'no more tickets and offers than there are of a type': `
    select t.* from ticket_types t
    where t.event_id = $1 and ${standingOf('a.ticket_type_id = t.id')} + ${offersOf('w.ticket_type_id = t.id')} > t.quantity`,
  'no more tickets and offers than the event has places': `
    select e.* from events e
    where e.id = $1 and ${standingOf('a.event_id = e.id')} + ${offersOf('w.event_id = e.id')} > e.capacity`,
  'nobody waits for a place that is free': `
    select w.* from waiting_list_entries w join ticket_types t on t.id = w.ticket_type_id join events e on e.id = w.event_id
    where w.event_id = $1 and w.status = 'waiting'
      and (t.quantity is null or ${standingOf('a.ticket_type_id = t.id')} + ${offersOf('w.ticket_type_id = t.id')} < t.quantity)
      and (e.capacity is null or ${standingOf('a.event_id = e.id')} + ${offersOf('w.event_id = e.id')} < e.capacity)`,
  'whoever waits joined after everybody who was offered the same': `
    select w.* from waiting_list_entries w
    where w.event_id = $1 and w.status = 'waiting' and exists (
      select from waiting_list_entries o where o.ticket_type_id = w.ticket_type_id and o.offered_at is not null and o.id > w.id
    )`,
  'an offer that was accepted has one attendee, and no other has any': `
    select w.* from waiting_list_entries w
    where w.event_id = $1
      and (select count(*) from attendees a where a.waiting_list_entry_id = w.id and a.ticket_type_id = w.ticket_type_id)
        <> case w.status when 'accepted' then 1 else 0 end`,
  'nobody waits for an event that is cancelled': `
    select w.* from waiting_list_entries w join events e on e.id = w.event_id
    where e.id = $1 and e.status = 'cancelled' and w.status in ('waiting', 'offered')`,
  'times_redeemed is how many tickets have the code': `
    select p.* from promo_codes p where p.event_id = $1 and p.times_redeemed <> ${standingOf('a.promo_code_id = p.id')}`,
  'no more uses of a code than it allows': `
    select p.* from promo_codes p where p.event_id = $1 and ${standingOf('a.promo_code_id = p.id')} > p.max_redemptions`,
  'totals are the sums of the tickets that stand': `
    select o.* from orders o where o.event_id = $1 and o.status <> 'cancelled' and not ${totalsAre(standing)}`,
  'totals of a cancelled order are those it had': `
    select o.* from orders o
    where o.event_id = $1 and o.status = 'cancelled' and not ${totalsAre('a.cancelled_at = o.cancelled_at')}`,
  'complimentary tickets cost nothing': `
    select o.* from orders o where o.event_id = $1 and o.payment_method is null and ${linesOf('a.price', 'true')} > 0`,
  'a discount is of a code and at most the price': `
    select a.* from attendees a
    where a.event_id = $1 and (a.discount not between 0 and a.price or a.discount > 0 and a.promo_code_id is null)`,
  // As long as nobody lowers the amount: an order keeps what it has.
  'an order has at most the amount off of its code': `
    select o.* from orders o join promo_codes p on p.id = o.promo_code_id
    where o.event_id = $1 and p.amount_off < ${linesOf('a.discount', standing)}`,
  'amount_paid is the sum of the payments that are not voided, and the rest is amount_voided': `
    select o.* from orders o
    where o.event_id = $1
      and (o.amount_paid, o.amount_voided) <> (
        select coalesce(sum(p.amount) filter (where v.id is null), 0), coalesce(sum(p.amount) filter (where v.id is not null), 0)
        from payments p left join payment_voids v on v.payment_id = p.id
        where p.order_id = o.id
      )`,
  'amount_refunded is the sum of the refunds, and at most what was paid': `
    select o.* from orders o
    where o.event_id = $1
      and (o.amount_refunded > o.amount_paid
        or o.amount_refunded <> (select coalesce(sum(r.amount), 0) from refunds r where r.order_id = o.id))`,
  'nobody paid more than the order ever cost': `
    select o.* from orders o where o.event_id = $1 and o.amount_paid - o.amount_refunded > ${linesOf('a.price - a.discount', 'true')}`,
  'an order is completed when nothing is due, and not before': `
    select o.* from orders o
    where o.event_id = $1
      and (o.status = 'pending' and o.amount_paid - o.amount_refunded >= o.total
        or o.status = 'completed' and o.amount_paid + o.amount_voided < o.total)`,
  'payment_status follows from status and amounts': `
    select o.* from orders o
    where o.event_id = $1 and o.payment_status::text <> case
      when o.status <> 'cancelled' and o.amount_paid - o.amount_refunded < o.total
        then case o.amount_paid - o.amount_refunded when 0 then 'awaiting_payment' else 'partially_paid' end
      when o.amount_paid - o.amount_refunded > case o.status when 'completed' then o.total else 0 end then 'refund_due'
      when o.amount_paid > o.amount_refunded then 'paid'
      when o.amount_paid > 0 then 'refunded'
      else 'not_required'
    end`,
  'a cancelled order says why, and one that expired had a deadline, which was over': `
    select o.* from orders o
    where o.event_id = $1
      and ((o.status = 'cancelled') <> (o.cancellation_reason is not null)
        or o.cancellation_reason = 'expired'
          and (o.completed_at is not null or o.payment_due_at is null or o.payment_due_at > o.cancelled_at))`,
  'the courier looks at each deadline of what is due, and at no other': `
    select o.* from orders o
    where o.event_id = $1 and o.payment_check_at is distinct from case
      when o.status = 'pending' and o.amount_paid - o.amount_refunded < o.total then least(o.payment_remind_at, o.payment_due_at)
    end`,
  'the buyer of an order that expired is told so once': `
    select o.* from orders o
    where o.event_id = $1
      and (select count(*) from emails e where e.order_id = o.id and e.kind = 'order_expired' and e.created_at = o.cancelled_at)
        <> case when o.cancellation_reason = 'expired' and o.send_email then 1 else 0 end`,
  'Usher reminds of a deadline before it, and not within a day of a reminder': `
    select o.* from orders o
    where o.event_id = $1
      and (o.payment_due_at is null and o.payment_remind_at is not null
        or o.payment_remind_at <= o.payment_reminded_at + interval '1 day'
        or o.payment_remind_at > o.payment_due_at)`,
  'an order has the moments of its status': `
    select o.* from orders o
    where o.event_id = $1
      and ((o.status = 'cancelled') <> (o.cancelled_at is not null) or o.status = 'completed' and o.completed_at is null
        or o.status = 'pending' and o.completed_at is not null)`,
  'tickets of a pending order wait': `
    select o.* from orders o where o.event_id = $1 and o.status = 'pending' and ${hasAttendee('active')}`,
  'tickets of a completed order are good': `
    select o.* from orders o where o.event_id = $1 and o.status = 'completed' and ${hasAttendee('awaiting_payment')}`,
  'tickets of a cancelled order are cancelled': `
    select o.* from orders o
    where o.event_id = $1 and o.status = 'cancelled' and (${hasAttendee('active')} or ${hasAttendee('awaiting_payment')})`,
  'an order that stands has a ticket that does': `
    select o.* from orders o
    where o.event_id = $1 and o.status <> 'cancelled' and ${standingOf('a.order_id = o.id')} = 0`,
  'a cancelled event has no order that stands': `
    select o.* from orders o join events e on e.id = o.event_id
    where e.id = $1 and e.status = 'cancelled' and o.status <> 'cancelled'`,
  'nobody came in twice at one point, on one day, without leaving where that lets in again': `
    select a.* from attendees a join events e on e.id = a.event_id
    where a.event_id = $1 and exists (
      select from check_ins c left join check_in_points p on p.id = c.check_in_point_id
      where ${entries} and (p.admission is distinct from 're_entry' or c.exited_at is null)
      group by c.check_in_point_id, case p.admission when 'once_per_day' then (c.scanned_at at time zone e.timezone)::date end
      having count(*) > 1
    )`,
  'checked_in_at is the first entry that stands': `
    select a.* from attendees a
    where a.event_id = $1 and a.checked_in_at is distinct from (select min(c.scanned_at) from check_ins c where ${entries})`,
  'who left has an exit that stands, and who is inside has none': `
    select c.* from check_ins c
    where c.event_id = $1 and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
      and (c.exited_at is not null) <> exists (
        select from check_ins x where x.earlier_check_in_id = c.id and x.direction = 'exit' and x.result = 'accepted' and x.undone_at is null
      )`,
  'no two tickets have one code': `
    select a.* from attendees a
    where a.event_id = $1 and exists (select from attendees b where b.id <> a.id and b.ticket_code = a.ticket_code)`,
}

export type Rule = keyof typeof rules
export const ruleNames = Object.keys(rules) as Rule[]

const brokenRulesSql = Object.entries(rules)
  .map(([rule, sql]) => `select '${rule}' as rule, to_jsonb(broken) as found from (${sql}) broken`)
  .join('\nunion all\n')

type Broken = { rule: Rule; found: Record<string, unknown> }

/** The rules that do not hold of an event at this moment, each with a row that breaks it. None, or something is wrong. */
export async function brokenRules(eventId: string): Promise<Broken[]> {
  // Named, so that a connection plans it once: planning so many rules takes many times as long as reading one event.
  return (await studio.query<Broken>({ name: 'broken rules', text: brokenRulesSql, values: [eventId] })).rows
}

/** The same, of whatever tables this connection finds under their names; with a name, as long as it finds the same ones. */
export async function brokenRulesOf(eventId: string, client: pg.PoolClient, name?: string): Promise<Broken[]> {
  return (await client.query<Broken>({ name, text: brokenRulesSql, values: [eventId] })).rows
}
