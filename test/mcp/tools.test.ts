// Every operation as a tool, called through each official client. The helper holds each answer against the declaration.

import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { beforeAll, describe, expect, test } from 'vitest'
import { restRequestOf } from '../../scripts/support/rest-request.ts'
import { operations as all } from '../../src/operations/index.ts'
import { isList, isRead } from '../../src/operations/operation.ts'
import { row, studio } from '../support/database.ts'
import { clients, connectForAll, connectV1, type McpCaller, negotiating, speaking } from '../support/mcp.ts'
import { examples } from '../support/operation-arguments.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { differences } from '../support/projection.ts'
import { rest } from '../support/rest.ts'

const operations = all.filter(({ mcp }) => mcp !== false)

const isListed = (name: string) => operations.some((operation) => operation.name === name && isList(operation))

async function arrange() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  return { organisation, event, key: await organisation.key() }
}

const mary = { name: 'Mary Jackson', email: 'mary@example.com' }

test('every operation has an example here', () => {
  expect(Object.keys(examples).sort()).toEqual(all.map(({ name }) => name).sort())
})

// What the examples do not show.
const sendsAtTimes: Record<string, string> = {
  apply_event: 'the example is a plan, which changes nothing',
  update_order: 'the courier reminds of the deadline and cancels after it',
  update_ticket_type: 'places that become free are offered to whoever waits',
  record_invoice_payment: 'the payment that covers the order completes it',
  resend_ticket: 'the ticket of the example is to be e-mailed already',
  resend_email: 'it, too',
  update_webhook_endpoint: 'an endpoint that is enabled again is sent what was pending',
  update_waiting_list_entry: 'an offer that is ended goes to the next',
  redeliver_webhooks: 'nothing has failed in the example',
}

// The list of tools is the same for every client (registry.test.ts), so is how the server answers: one client calls all of them, the
// others what stands below. The v1 client validates by itself what it is answered.
describe('each operation', () => {
  let organisation: TestOrganisation
  let key: string
  let mcp: McpCaller

  beforeAll(async () => {
    organisation = await createOrganisation()
    key = await organisation.key()
    const connected = await connectForAll(connectV1, key, 'toolsets=all')
    mcp = connected.mcp
    return connected.close
  })

  /** What waits to be sent, or is to be told. */
  const outgoing = async () =>
    (
      await studio.query(
        `select jsonb_build_array(
           (select count(*) from public.notifications n where n.organisation_id = o.id),
           (select jsonb_agg(d order by d.id) from public.webhook_deliveries d where d.organisation_id = o.id),
           (select jsonb_agg(e order by e.id) from public.emails e where e.organisation_id = o.id)) as queued
         from public.organisations o where o.id = $1`,
        [organisation.id],
      )
    ).rows

  test.each(operations.filter(isRead).map(({ name }) => name))(
    '%s answers less than REST, and nothing else',
    async (name) => {
      const args = (await examples[name]?.(await organisation.event())) ?? {}
      const { method, path } = restRequestOf(name, args)
      const whole = async () => (await rest(key)(method, path)).body
      // A notification is listed when every older transaction has ended, which may be between the two calls.
      await expect.poll(async () => differences(await mcp.call(name, args), await whole())).toEqual([])
      if (!isListed(name)) return
      await expect
        .poll(async () => differences(await mcp.call(name, { ...args, fields: ['*'] }), await whole()))
        .toEqual([])
    },
  )

  test.each(operations.filter((operation) => !isRead(operation)).map(({ name }) => name))(
    '%s answers as declared, and says whether it may send an e-mail or a webhook, which is what it does',
    async (name) => {
      const { dry_run: _, ...args } = (await examples[name]?.(await organisation.event())) ?? {}
      const before = await outgoing()
      expect(await mcp.call(name, args)).toHaveProperty('data')
      const sends = !isDeepStrictEqual(await outgoing(), before) || name in sendsAtTimes
      const { openWorldHint = true } = mcp.tools.find((tool) => tool.name === name)?.annotations ?? {}
      expect(openWorldHint).toBe(sends)
    },
  )
})

test.each(clients)(
  '$client speaking $revision reads, walks pages by next_cursor, and registers and scans as MCP',
  async ({ revision, connect }) => {
    const { organisation, event, key } = await arrange()
    const newer = await organisation.event()
    const mcp = await connect(key)
    expect(mcp.revision).toBe(revision)
    // No extension.
    expect(mcp.capabilities).toEqual({ tools: {}, prompts: {}, resources: {} })
    const { body } = await rest(key)('GET', `/events/${event.id}`)
    expect(differences(await mcp.call('get_event', { event_id: event.id }), body)).toEqual([])

    const first = await mcp.call('list_events', { limit: 1 })
    const second = await mcp.call('list_events', { limit: 1, cursor: first.next_cursor })
    expect([first.data, second.data]).toMatchObject([[{ id: newer.id }], [{ id: event.id }]])
    expect(second).toMatchObject({ has_more: false })
    expect(second).not.toHaveProperty('next_cursor')

    const guest = { event_id: event.id, ticket_type_id: event.ticketTypeId, ...mary }
    const { data: order } = (await mcp.call('register_attendee', guest)) as {
      data: { id: string; attendees: [{ id: string; ticket_code: string }] }
    }
    const [{ id, ticket_code: code }] = order.attendees
    expect(order).toMatchObject({ status: 'completed', total: 0, attendees: [{ name: mary.name }] })
    expect(await row('select source from public.orders where id = $1', [order.id])).toEqual({ source: 'mcp' })
    const { data: scan } = await mcp.call('check_in', { event_id: event.id, code })
    expect(scan).toMatchObject({ result: 'accepted', attendee: { id } })
    expect(await row('select source from public.check_ins where attendee_id = $1', [id])).toEqual({ source: 'mcp' })
  },
)

test('an idempotency key used over REST is known over MCP: a retry may change interface', async () => {
  const { event, key } = await arrange()
  const idempotencyKey = randomUUID()
  const { body } = await rest(key)(
    'POST',
    `/events/${event.id}/registrations`,
    { ticket_type_id: event.ticketTypeId, ...mary },
    { 'Idempotency-Key': idempotencyKey },
  )
  const mcp = await negotiating(key)
  const args = { event_id: event.id, ticket_type_id: event.ticketTypeId, ...mary, idempotency_key: idempotencyKey }
  expect(differences(await mcp.call('register_attendee', args), body)).toEqual([])
  expect(await event.sold()).toBe(1)
})

test('a client that asks what the server speaks is told 2026-07-28', async () => {
  const { key } = await arrange()
  expect((await negotiating(key)).revision).toBe('2026-07-28')
})

test.each(['2025-11-25', '2025-03-26', '2024-11-05'])(
  'a client that speaks only %s is served in it',
  async (revision) => {
    const { event, key } = await arrange()
    const mcp = await speaking(revision)(key)
    expect(mcp.revision).toBe(revision)
    expect(await mcp.call('list_events')).toMatchObject({ data: [{ id: event.id }] })
  },
)

// Of the arguments that REST takes too: test/gateway/absent.unit.test.ts.
test('arguments of MCP that a model filled in with nothing are left out, and a page is as short as without them', async () => {
  const { event, key } = await arrange()
  for (let i = 0; i < 21; i++) await event.guest()
  const mcp = await connectV1(key)
  const nothing = { status: null, search: '', order: '', fields: null, limit: null, cursor: null }
  const page = await mcp.call('list_attendees', { event: event.id, ...nothing })
  const [{ id }, ...others] = page.data as [{ id: string }]
  expect([others.length, page.has_more]).toEqual([19, true])
  // An event beside what it is about, too.
  expect(await mcp.call('get_attendee', { attendee: id, event: null })).toMatchObject({ data: { id } })
  const guest = { event: event.id, ticket_type: event.ticketTypeId, ...mary }
  await mcp.call('register_attendee', { ...guest, idempotency_key: null })
  // Whoever sends an idempotency_key relies on it.
  expect(await mcp.refusal('register_attendee', { ...guest, idempotency_key: '' })).toMatchObject({
    param: 'idempotency_key',
  })
  expect(await event.sold()).toBe(22)
})
