import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganiser } from '../support/organiser.ts'
import { problemOf, rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

const guest = { name: 'Mary Jackson', email: 'mary@example.com' }

async function arrange() {
  const { organisation, event, send } = await createOrganiser()
  const register = (idempotencyKey: string, body: Record<string, unknown> = {}, as = send) =>
    as(
      'POST',
      `/events/${event.id}/registrations`,
      { ticket_type_id: event.ticketTypeId, ...guest, ...body },
      { 'Idempotency-Key': idempotencyKey },
    )
  return { organisation, event, register }
}

test('the same key with another body is refused and registers nobody', async () => {
  const { event, register } = await arrange()
  await register('crm-1')
  expect(problemOf(await register('crm-1', { email: 'other@example.com' }))).toEqual([
    422,
    'idempotency_key_reused',
    'Idempotency-Key',
  ])
  expect(await event.sold()).toBe(1)
})

test('a key that is no ASCII is refused for that, and for no control characters that it has not', async () => {
  const { event, register } = await arrange()
  // As bytes of UTF-8 arrive.
  const { status, body } = await register(Buffer.from('Gr\u00f6\u00dfe \u00c4').toString('latin1'))
  expect([status, body.error.param, body.error.message]).toEqual([
    422,
    'Idempotency-Key',
    'Idempotency-Key must be written in ASCII',
  ])
  expect(await event.sold()).toBe(0)
})

test('the same body with its members in another order is the same request, and a list in another order is not', async () => {
  const { event, register } = await arrange()
  const [mary, dorothy] = [guest, { name: 'Dorothy Vaughan', email: 'dorothy@example.com' }]
  const body = (guests: object[], metadata: object) => ({
    ...{ name: 'A', email: 'a@example.com' },
    attendees: guests,
    metadata,
  })
  await register('crm-1', body([mary, dorothy], { seat: 1, diet: 'none' }))
  const again = await register('crm-1', {
    ...body([{ email: mary.email, name: mary.name }, dorothy], { diet: 'none', seat: 1 }),
  })
  expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
  const turned = await register('crm-1', body([dorothy, mary], { seat: 1, diet: 'none' }))
  expect([turned.status, turned.body.error.code]).toEqual([422, 'idempotency_key_reused'])
  expect(await event.sold()).toBe(2)
})

test('20 concurrent requests with one key make one order, and all get it', async () => {
  const { event, register } = await arrange()
  const answers = await Promise.all(Array.from({ length: 20 }, () => register('crm-1')))
  expect(answers.map((a) => a.status)).toEqual(Array(20).fill(201))
  expect(new Set(answers.map((a) => a.body.data.id)).size).toBe(1)
  expect(answers.filter((a) => a.headers.get('idempotent-replayed') === null)).toHaveLength(1)
  expect(await row('select count(*)::int as orders from public.orders where event_id = $1', [event.id])).toEqual({
    orders: 1,
  })
  expect(await event.sold()).toBe(1)
})

test('a refusal leaves no record: the same key works once the reason is gone', async () => {
  const { event, register } = await arrange()
  await edit('ticket_types', event.ticketTypeId, 'quantity = 0')
  expect((await register('crm-1')).body.error.code).toBe('sold_out')
  await edit('ticket_types', event.ticketTypeId, 'quantity = 1')
  const { status, headers } = await register('crm-1')
  expect([status, headers.get('idempotent-replayed')]).toEqual([201, null])
})

test('keys of other organisations, and of other integrations of the same one, do not collide', async () => {
  const [ours, theirs] = await Promise.all([arrange(), arrange()])
  const other = rest(await ours.organisation.key())
  const answers = [await ours.register('1'), await theirs.register('1'), await ours.register('1', {}, other)]
  expect(answers.map((a) => a.headers.get('idempotent-replayed'))).toEqual([null, null, null])
  expect(await ours.event.sold()).toBe(2)
})

test('a record holds for 24 hours, and gives way after', async () => {
  const { organisation, event, register } = await arrange()
  await register('crm-1')
  const hours = await row(
    'select round(extract(epoch from expires_at - created_at) / 3600)::int as kept from private.idempotency_records where organisation_id = $1',
    [organisation.id],
  )
  expect(hours).toEqual({ kept: 24 })
  await studio.query('update private.idempotency_records set expires_at = now() where organisation_id = $1', [
    organisation.id,
  ])
  const { headers } = await register('crm-1')
  expect(headers.get('idempotent-replayed')).toBeNull()
  expect(await event.sold()).toBe(2)
})

test('an idempotency key of 255 characters is fine, whatever is in it', async () => {
  const { register } = await arrange()
  const key = `${randomUUID()}'"\\;--`.padEnd(255, '~')
  expect((await register(key)).status).toBe(201)
  expect((await register(key)).headers.get('idempotent-replayed')).toBe('true')
})
