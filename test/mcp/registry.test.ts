// What must hold for every tool, whichever operation it is made from: a model sees nothing but this list.

import { expect, test } from 'vitest'
import { operations } from '../../src/operations/index.ts'
import { studio } from '../support/database.ts'
import { clients, type Tool } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'

const [current = clients[0]] = clients.filter(({ revision }) => revision === '2026-07-28')

async function toolsOf(connect = current?.connect): Promise<Tool[]> {
  const organisation = await createOrganisation()
  const mcp = await connect?.(await organisation.key('events:read'))
  return mcp?.tools ?? []
}

type Property = { description?: unknown }

test('the tools are the operations, in the same order, whatever the scopes of the key', async () => {
  expect((await toolsOf()).map(({ name }) => name)).toEqual(operations.map(({ name }) => name))
})

test.each(clients)('the list is the same for $client speaking $revision', async ({ connect }) => {
  expect(await toolsOf(connect)).toEqual(await toolsOf())
})

test('every tool has a title, and a description that names the scope it needs', async () => {
  const tools = await toolsOf()
  for (const { name, scope, title } of operations) {
    const tool = tools.find((t) => t.name === name)
    expect(tool?.title, name).toBe(title)
    expect(tool?.title?.length, name).toBeGreaterThan(3)
    expect(tool?.description, name).toContain(scope === null ? 'any valid key' : `Needs scope ${scope}.`)
    expect(tool?.description?.length, name).toBeGreaterThan(60)
  }
})

test('every tool takes an object of known fields, each with a description', async () => {
  for (const { name, inputSchema } of await toolsOf()) {
    expect(inputSchema.type, name).toBe('object')
    expect(inputSchema.additionalProperties, name).toBe(false)
    for (const [field, property] of Object.entries((inputSchema.properties ?? {}) as Record<string, Property>)) {
      expect(property.description, `${name}.${field}`).toEqual(expect.stringMatching(/^\S.{9,}/))
    }
  }
})

test('no tool wants one of several forms: hosts refuse a list with such a schema at its top', async () => {
  for (const { name, inputSchema } of await toolsOf()) {
    for (const keyword of ['anyOf', 'oneOf', 'allOf']) expect(inputSchema, name).not.toHaveProperty(keyword)
  }
})

test('what REST takes as a header is an argument here, and is called so', async () => {
  const said = JSON.stringify((await toolsOf()).map(({ description, inputSchema }) => [description, inputSchema]))
  expect(said).not.toMatch(/Idempotency-Key|If-Match|header/)
  expect(said).toMatch(/Send an idempotency_key/)
})

test('every field of the declared input is advertised, and writes take an idempotency_key besides', async () => {
  const tools = await toolsOf()
  for (const { name, input, method } of operations) {
    const schema = tools.find((t) => t.name === name)?.inputSchema
    const advertised = Object.keys((schema?.properties ?? {}) as Record<string, Property>)
    expect(advertised, name).toEqual([...Object.keys(input.shape), ...(method === 'GET' ? [] : ['idempotency_key'])])
    expect(schema?.required ?? [], name).not.toContain('idempotency_key')
  }
})

test('every tool advertises the object it answers', async () => {
  for (const { name, outputSchema } of await toolsOf()) {
    expect(outputSchema, name).toMatchObject({ type: 'object', properties: { data: expect.anything() } })
    expect(outputSchema?.required, name).toContain('data')
  }
})

// readOnlyHint, destructiveHint, idempotentHint. Registering adds, so does scanning; undoing takes a check-in back.
const writes: Record<string, [boolean, boolean, boolean]> = {
  create_event: [false, false, false],
  update_event: [false, true, true],
  publish_event: [false, false, false],
  unpublish_event: [false, true, false],
  cancel_event: [false, true, false],
  complete_event: [false, true, false],
  create_ticket_type: [false, false, false],
  update_ticket_type: [false, true, true],
  create_promo_code: [false, false, false],
  update_promo_code: [false, true, true],
  record_invoice_payment: [false, false, false],
  cancel_order: [false, true, false],
  update_attendee: [false, true, false],
  cancel_attendee: [false, true, false],
  resend_ticket: [false, false, false],
  register_attendee: [false, false, false],
  check_in: [false, false, false],
  check_in_batch: [false, false, true],
  undo_check_in: [false, true, false],
  create_webhook_endpoint: [false, false, false],
  update_webhook_endpoint: [false, true, true],
  delete_webhook_endpoint: [false, true, false],
  rotate_webhook_secret: [false, true, false],
  test_webhook_endpoint: [false, false, false],
  redeliver_webhook: [false, false, false],
  redeliver_webhooks: [false, false, false],
}

test('every tool says what it does to the world: only what the database calls stable is read-only', async () => {
  const { rows } = await studio.query<{ name: string; stable: boolean }>(
    `select p.proname as name, p.provolatile = 's' as stable
     from pg_proc p where p.pronamespace = 'api'::regnamespace`,
  )
  for (const { name, title, annotations } of await toolsOf()) {
    const stable = rows.find((fn) => fn.name === name)?.stable
    const [readOnlyHint, destructiveHint, idempotentHint] = writes[name] ?? [true, false, true]
    expect(readOnlyHint, `${name} is stable in SQL; a write has a line in writes in this file`).toBe(stable)
    expect(annotations, name).toEqual({ title, readOnlyHint, destructiveHint, idempotentHint, openWorldHint: false })
  }
})
