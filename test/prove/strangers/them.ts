// The organisation that nobody else may learn anything of: a row in every table, and what each thing in it is called.

import { randomBytes } from 'node:crypto'
import { createTenant } from '../../database/tenant-fixture.ts'
import { row, studio } from '../../support/database.ts'
import { enqueued } from '../../support/outbox.ts'
import { rest } from '../../support/rest.ts'
import { idsOf } from '../../support/rows-of.ts'
import { issueKeyOf } from './credentials.ts'
import { type Kind, texts } from './positions.ts'

export type Them = {
  id: string
  key: string
  eventId: string
  /** What an object of theirs is called, its id first. */
  names: Record<Kind, string[]>
  /** Every identifier in their rows. */
  ids: Set<string>
  /** In every name, address and text of theirs. */
  word: string
}

const plural: Partial<Record<Kind, string>> = {
  waiting_list_entry: 'waiting_list_entries',
  webhook_delivery: 'webhook_deliveries',
}

/** Of letters that no name of another has, so that nothing resembles it. */
export const newWord = (): string => `vx${[...randomBytes(12)].map((byte) => 'jkqvwxyz'[byte % 8]).join('')}`

export async function createThem(): Promise<Them> {
  const tenant = await createTenant()
  const word = newWord()
  await rename(tenant.id, word)
  const key = await issueKeyOf(tenant.id)
  const call = rest(key)
  const idempotencyKey = `import-${word}`
  await call(
    'POST',
    `/events/${tenant.event.id}/registrations`,
    {
      ticket_type_id: tenant.event.ticketTypeId,
      name: `Guest ${word}`,
      email: `again@${word}.example`,
      send_email: false,
    },
    { 'Idempotency-Key': idempotencyKey, 'X-Request-Id': `request-${word}` },
  )
  const plan = await call('POST', '/event-plans', { event: tenant.event.id, ticket_types: [{ name: `More ${word}` }] })
  await call('POST', '/exports/attendees', {})

  const ids: Partial<Record<Kind, string>> = { plan: plan.body.data.plan_id }
  const kinds = [
    ...(['event', 'ticket_type', 'promo_code', 'order', 'attendee', 'waiting_list_entry', 'check_in_point'] as const),
    ...(['webhook_endpoint', 'payment', 'check_in', 'webhook_delivery', 'notification'] as const),
  ]
  for (const kind of kinds) {
    const table = plural[kind] ?? `${kind}s`
    const first = `select id from public.${table} where organisation_id = $1 order by id limit 1`
    ids[kind] = (await row<{ id: string }>(first, [tenant.id])).id
  }
  const of = <Row extends Record<string, string>>(table: string, columns: string, kind: Kind) =>
    row<Row>(`select ${columns} from public.${table} where id = $1`, [ids[kind]])
  const { slug } = await of<{ slug: string }>('events', 'slug', 'event')
  const attendee = await of<{ name: string; email: string; ticket_code: string; reference: string }>(
    'attendees a',
    'a.name, a.email, a.ticket_code, (select o.reference from public.orders o where o.id = a.order_id) as reference',
    'attendee',
  )
  const order = await of<{ reference: string; name: string; email: string }>(
    'orders',
    'reference, name, email',
    'order',
  )
  const { code } = await of<{ code: string }>('promo_codes', 'code', 'promo_code')
  const { url } = await of<{ url: string }>('webhook_endpoints', 'url', 'webhook_endpoint')
  const named: Partial<Record<Kind, string[]>> = {
    event: [slug, word, `Zyx ${word}`],
    ticket_type: [word, `Type ${word}`],
    promo_code: [code],
    order: [order.reference, word, order.name, order.email],
    attendee: [attendee.reference, word, attendee.name, attendee.email],
    waiting_list_entry: [word, `Waiter ${word}`, `waiter@${word}.example`],
    check_in_point: [`Gate ${word}`],
    webhook_endpoint: [url],
    slug: [slug],
    reference: [attendee.reference],
    external_id: [word],
    ticket_code: [attendee.ticket_code],
    promo_text: [code],
    email: [attendee.email],
    text: [word],
    url: [url],
    idempotency_key: [idempotencyKey],
    request_id: [`request-${word}`],
    cursor: [cursorOf(ids.event as string), cursorOf(ids.order as string)],
  }
  const names = {} as Record<Kind, string[]>
  for (const kind of [...kinds, 'plan', ...texts] as const) {
    names[kind] = [...(ids[kind] === undefined ? [] : [ids[kind]]), ...(named[kind] ?? [])]
  }
  // Otherwise a claim of another test would.
  await enqueued(tenant.id)
  return { id: tenant.id, key, eventId: tenant.event.id, names, ids: await idsOf(tenant.id), word }
}

/** As private.encode_cursor makes it. */
const cursorOf = (id: string) => Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64url')

async function rename(id: string, word: string): Promise<void> {
  const set = (table: string, assignments: string) =>
    studio.query(
      `update public.${table} t set ${assignments.replaceAll('WORD', word)} where ${table === 'organisations' ? 'id' : 'organisation_id'} = $1`,
      [id],
    )
  const isFirst = (table: string) =>
    `case when t.id = (select min(x.id::text)::uuid from public.${table} x where x.organisation_id = t.organisation_id) then 'WORD' end`
  await set('organisations', "name = 'Organisation WORD', payment_instructions = 'Pay WORD'")
  await set('events', "name = 'Zyx WORD', slug = 'slug-WORD', external_id = 'WORD', description = 'About WORD'")
  await set(
    'ticket_types',
    `name = case when t.id = (select min(x.id::text)::uuid from public.ticket_types x where x.organisation_id = t.organisation_id) then 'Type WORD' else 'Type ' || t.id || ' WORD' end, external_id = ${isFirst('ticket_types')}`,
  )
  await set('promo_codes', "code = upper('WORD')")
  await set('orders', `name = 'Buyer WORD', email = 'buyer@WORD.example', external_id = ${isFirst('orders')}`)
  await set('attendees', `name = 'Guest WORD', email = t.id || '@WORD.example', external_id = ${isFirst('attendees')}`)
  await set('waiting_list_entries', "name = 'Waiter WORD', email = 'waiter@WORD.example', external_id = 'WORD'")
  await set('check_in_points', "name = 'Gate WORD'")
  await set('webhook_endpoints', "url = 'https://WORD.example/hook', description = 'WORD'")
}
