// Links to order pages, which stand in e-mails alone.

import { row, studio } from './database.ts'

/** The page of an order, as its buyer is sent it. */
export async function orderUrl(orderId: string, publicUrl: string): Promise<string> {
  const { token } = await row<{ token: string }>(
    'select private.order_token(o) as token from public.orders o where o.id = $1',
    [orderId],
  )
  return `${publicUrl}/o/${token}`
}

/** The links in all e-mails of an event, by kind and recipient, as a courier with a PUBLIC_URL claims them. */
export async function orderLinksOf(eventId: string): Promise<{ kind: string; to: string; order_url: string | null }[]> {
  const { rows } = await studio.query(
    `select j.pending ->> 'kind' as kind, coalesce(j.pending -> 'attendee' ->> 'email', j.pending -> 'order' ->> 'email') as "to",
       j.pending ->> 'order_url' as order_url
     from (select set_config('request.jwt.claims', '{"public_url": "https://tickets.example"}', true)) c
     cross join lateral (
       select private.pending_email_json(e) as pending
       from public.emails e
       left join public.attendees a on a.id = e.attendee_id
       join public.orders o on o.id = coalesce(e.order_id, a.order_id)
       where o.event_id = $1 order by e.id
     ) j`,
    [eventId],
  )
  return rows
}
