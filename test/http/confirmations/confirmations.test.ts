// What cannot be undone is carried out over MCP once a person has confirmed it on Usher's page, and not before.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { hasBrowser } from '../../../scripts/support/browser.ts'
import { operations } from '../../../src/operations/index.ts'
import { expectReadable } from '../../browser/accessibility.ts'
import { during, idOf, row, studio } from '../../support/database.ts'
import { bearing, type McpCaller, negotiating } from '../../support/mcp.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../../support/organisation.ts'
import { appOfThisFile, ownApp } from '../../support/own-app.ts'
import { Person } from '../../support/person.ts'
import { rest } from '../../support/rest.ts'
import { validator } from '../../support/schema-validators.ts'
import { edit } from '../../support/studio.ts'
import { openPerson, paste } from '../oauth/client.ts'
import { callWith, codeGrant, decide, formTokenOf, Jar, walkToConsent } from '../oauth/walk.ts'

// Each who asks is at an address of their own: see walk.ts.
const { url: apiUrl } = await appOfThisFile({ trustProxy: true })

let organisation: TestOrganisation
let event: TestEvent
let assistant: McpCaller
let key: string
let person: Person
beforeEach(async () => {
  organisation = await createOrganisation()
  event = await organisation.event()
  key = await organisation.askingKey()
  assistant = await negotiating(key, apiUrl)
  person = new Person(apiUrl, await organisation.personKey())
})

/** What the model is told instead of the answer. */
async function askedFor(tool: string, args: Record<string, unknown>, caller = assistant): Promise<string> {
  const error = await caller.refusal(tool, args)
  expect(error).toMatchObject({ code: 'confirmation_required', retryable: true })
  return (error.details as { url: string }).url
}

const statusOf = async (id = event.id) =>
  (await row<{ status: string }>('select status from public.events where id = $1', [id])).status

const moveTime = (minutes: number) =>
  studio.query(
    `update private.confirmations set asked_at = asked_at - $2::interval, expires_at = expires_at - $2::interval
     where organisation_id = $1`,
    [organisation.id, `${minutes} minutes`],
  )

const spent = async () =>
  (
    await studio.query(
      `select c.operation, c.arguments, k.name as by from private.confirmations c join public.api_keys k on k.id = c.confirmed_by
       where c.organisation_id = $1 and c.spent_at is not null`,
      [organisation.id],
    )
  ).rows

/** Guests who can be told, an order each. */
async function guests(count: number): Promise<void> {
  await studio.query(
    `with added as (
       insert into public.orders (event_id, name, email, send_email)
       select $1, 'Guest', 'guest-' || n || '@example.com', true from generate_series(1, $2) n returning id, email
     )
     insert into public.attendees (order_id, ticket_type_id, name, email) select id, $3, 'Guest', email from added`,
    [event.id, count, event.ticketTypeId],
  )
}

/** An order of several guests. */
async function group(name: string, emails: string[]): Promise<string> {
  const id = await idOf(
    'insert into public.orders (event_id, name, email, send_email) values ($1, $2, $3, true) returning id',
    [event.id, name, emails[0]],
  )
  await studio.query(
    `insert into public.attendees (order_id, ticket_type_id, name, email) select $1, $2, $3, email from unnest($4::text[]) email`,
    [id, event.ticketTypeId, name, emails],
  )
  return id
}

/** People who wait for a ticket type of which no place is free. */
const waiting = (count: number) =>
  studio.query(
    `with full_type as (
       insert into public.ticket_types (event_id, name, price, quantity) values ($1, 'Full', 0, 0) returning id
     )
     insert into public.waiting_list_entries (event_id, ticket_type_id, name, email)
     select $1, id, 'Guest', 'waits-' || n || '@example.com' from full_type, generate_series(1, $2) n`,
    [event.id, count],
  )

async function paid(price: number): Promise<string> {
  const { orderId } = await event.payer({ price })
  await studio.query('insert into public.payments (order_id, amount) values ($1, $2)', [orderId, price])
  return orderId
}

/** An order that was paid and cancelled. */
async function refundable(price: number): Promise<string> {
  const orderId = await paid(price)
  await edit('orders', orderId, "status = 'cancelled'")
  return orderId
}

/** A call that carries out a plan of changes. */
async function planned(args: Record<string, unknown>): Promise<[string, Record<string, unknown>]> {
  const { data } = (await assistant.call('apply_event', { event: event.id, ...args })) as {
    data: { plan_id: string; refusals: number }
  }
  expect(data.refusals).toBe(0)
  return ['apply_event', { plan_id: data.plan_id }]
}

const edits: Record<string, (args: Record<string, unknown>) => Promise<[string, Record<string, unknown>]>> = {
  update_event: async (args) => ['update_event', { event: event.id, ...args }],
  apply_event: planned,
}

describe('to cancel an event', () => {
  test('a person sees what will happen, presses a button, and the same call goes through once', async () => {
    await event.payer()
    await event.guest()
    const args = { event: event.id, notify: 'everybody' }
    const refused = await assistant.refusal('cancel_event', args)
    expect(refused).toMatchObject({
      code: 'confirmation_required',
      details: { url: expect.stringMatching(`^${apiUrl}/confirm/[0-9a-f-]{36}$`), effect: { orders: 2, attendees: 2 } },
    })
    const { url } = refused.details as { url: string }
    expect(await askedFor('cancel_event', args), 'asked for once more').toBe(url)
    expect(await statusOf()).toBe('published')

    const page = await person.open(url)
    expect(page.text).toContain('Cancel “Test event”?')
    expect(page.text).toMatch(
      /Requested by<\/dt><dd><bdi>Assistant<.*2 tickets will be affected<.*2 people will be e-mailed<.*Signed in.*Jane Doe/s,
    )
    expect(page.text).toMatch(/This cannot be undone\.<.*<button class="main final" [^>]*>Cancel the event</s)
    expect(await statusOf()).toBe('published')
    expect(await askedFor('cancel_event', args)).toBe(url)

    expect((await person.press(url, page, 'confirm')).text).toContain('Go back to the assistant')
    expect(await statusOf()).toBe('published')
    expect(await assistant.call('cancel_event', args)).toMatchObject({ data: { status: 'cancelled' } })
    expect(await assistant.refusal('cancel_event', args)).toMatchObject({ code: 'invalid_transition' })
    expect(await spent()).toEqual([{ operation: 'cancel_event', arguments: {}, by: 'Jane Doe' }])
    const { body } = await rest(key, apiUrl)('GET', `/audit-entries?object_id=${event.id}&limit=2`)
    expect(body.data).toMatchObject([
      { action: 'confirmed', actor_name: 'Jane Doe', changes: { operation: { to: 'cancel_event' } } },
      { action: 'updated', actor_name: 'Assistant', changes: { status: { to: 'cancelled' } } },
    ])
    expect((await person.open(url)).text).toContain('was carried out')
  })

  test('the key that asks, and any other for a program, cannot sign in to confirm', async () => {
    const url = await askedFor('cancel_event', { event: event.id })
    for (const own of [key, await organisation.key()]) {
      const program = new Person(apiUrl, own)
      const page = await program.open(url)
      expect(page.text).not.toContain('Test event')
      const refused = await program.press(url, page, 'confirm')
      expect([refused.text.includes('Test event'), await statusOf()]).toEqual([false, 'published'])
    }
    expect(await askedFor('cancel_event', { event: event.id })).toBe(url)
  })

  test('the page shows the whole message that its guests will read', async () => {
    await event.guest()
    const message = `The hall is under water.\n\n${'We are sorry. '.repeat(60)}<b>End</b>`
    const args = { event: event.id, notify: 'everybody', message }
    const url = await askedFor('cancel_event', args)
    const { text } = await person.open(url)
    expect(text).toContain('Message to guests</dt><dd><bdi>The hall is under water.</bdi></dd><dd><bdi>We are sorry.')
    expect(text).toContain('&lt;b&gt;End&lt;/b&gt;</bdi></dd></div>')
    await person.confirm(url)
    expect(await askedFor('cancel_event', { ...args, message: 'Another' }), 'another message').not.toBe(url)
    expect(await assistant.call('cancel_event', args)).toMatchObject({ data: { status: 'cancelled' } })
  })

  test('a dry run, REST and a key for programs need nobody', async () => {
    expect(await assistant.call('cancel_event', { event: event.id, dry_run: true })).toMatchObject({
      effect: { dry_run: true },
    })
    expect((await rest(key, apiUrl)('POST', `/events/${event.id}/cancel`)).status).toBe(200)
    const other = await organisation.event()
    const program = await negotiating(await organisation.key(), apiUrl)
    expect(await program.call('cancel_event', { event: other.id })).toMatchObject({ data: { status: 'cancelled' } })
    expect(await spent()).toEqual([])
  })

  test('what a person refuses, or takes back, is not done', async () => {
    const first = await askedFor('cancel_event', { event: event.id })
    const refused = await person.press(first, await person.open(first), 'refuse')
    expect([refused.status, refused.text.includes('nothing to confirm')]).toEqual([404, true])
    const second = await askedFor('cancel_event', { event: event.id })
    expect(second).not.toBe(first)
    const confirmed = await person.confirm(second)
    await person.press(second, confirmed, 'refuse')
    await askedFor('cancel_event', { event: event.id })
    expect(await statusOf()).toBe('published')
  })

  test('a call that would affect more by far than the page said asks again: guests, those who wait, or money', async () => {
    const args = { event: event.id }
    for (const happens of [() => guests(60), () => waiting(21), () => paid(9900)]) {
      await person.confirm(await askedFor('cancel_event', args))
      await happens()
    }
    const url = await askedFor('cancel_event', args)
    await guests(2)
    expect((await person.confirm(url)).text).toContain('Confirmed')
    expect(await assistant.call('cancel_event', args)).toMatchObject({ data: { status: 'cancelled' } })
  })

  test('refunds are shown to whoever may see them, whatever the key that asks may', async () => {
    await paid(9900)
    const editor = await negotiating(await organisation.askingKey('events:read', 'events:write'), apiUrl)
    const refused = await editor.refusal('cancel_event', { event: event.id })
    expect(JSON.stringify(refused)).not.toContain('9900')
    const { url } = refused.details as { url: string }
    expect((await person.open(url)).text).toMatch(/To be refunded<\/dt><dd><bdi>€99\.00</)
    const colleague = new Person(apiUrl, await organisation.personKey('events:read', 'events:write'))
    const theirs = (await colleague.open(url)).text
    expect(theirs).toMatch(/To be refunded<\/dt><dd><bdi>Your key may not see this amount/)
    expect(theirs).not.toContain('99.00')
  })

  test('a name that the event had for a moment confirms nothing else', async () => {
    const args = { event: event.id }
    const rename = (name: string) => edit('events', event.id, 'name = $2', [name])
    const url = await askedFor('cancel_event', { event: 'Test event' })
    expect(await askedFor('cancel_event', args), 'by name and by id').toBe(url)
    await rename('Old draft')
    const page = await person.open(url)
    expect(page.text).toContain('Cancel “Test event”?')
    const { slug } = await row<{ slug: string }>('select slug from public.events where id = $1', [event.id])
    expect(page.text).toContain(`(${slug})`)
    await person.press(url, page, 'confirm')
    const again = await askedFor('cancel_event', args)
    expect((await person.open(again)).text).toContain('Cancel “Old draft”?')
    await person.confirm(again)
    await rename('Test event')
    expect(await assistant.call('cancel_event', args)).toMatchObject({ data: { status: 'cancelled' } })
  })
})

describe('what guests are told', () => {
  const told = { notify: 'everybody', changes: {} }
  const rename = (name: string, more = {}) => ['update_event', { event: event.id, changes: { name }, ...more }] as const

  test('is what was confirmed, or it asks again', async () => {
    await guests(21)
    await assistant.call(...rename('Gala by night'))
    const args = { event: event.id, ...told }
    const url = await askedFor('update_event', args)
    await person.confirm(url)
    await assistant.call(...rename('Buy now'))
    expect(await askedFor('update_event', args)).not.toBe(url)
    await assistant.call(...rename('Gala by night'))
    expect(await assistant.call('update_event', args)).toMatchObject({ effect: { told: 21 } })
  })

  test.each(Object.entries(edits))('is not replaced by %s while it waits to be sent', async (_operation, prepare) => {
    await guests(21)
    const first = rename('Gala by night', { notify: 'everybody' })
    await person.confirm(await askedFor(...first))
    await assistant.call(...first)
    // What they do not read may change.
    await assistant.call('update_event', { event: event.id, changes: { description: 'Doors at eight' } })
    const [tool, args] = await prepare({ changes: { name: 'Buy now' } })
    const url = await askedFor(tool, args)
    expect((await person.open(url)).text).toMatch(/21 people will be e-mailed<.*name: Gala by night → Buy now</s)
    await person.confirm(url)
    await assistant.call(tool, args)
    expect(await row('select name from public.events where id = $1', [event.id])).toEqual({ name: 'Buy now' })
  })

  test('comes with the steps of its plan, in words', async () => {
    await guests(21)
    const plan = await planned({
      changes: { name: 'Gala by night' },
      ticket_types: [{ name: 'Balcony', price: 2900 }, ...Array.from({ length: 25 }, (_, n) => ({ name: `Row ${n}` }))],
      notify: 'everybody',
    })
    const { text } = await person.open(await askedFor(...plan))
    expect(text).toMatch(/Steps<.*Event “Test event”: changed \(name: Test event → Gala by night\)</s)
    expect(text).toMatch(/Ticket type “Balcony”: new \(price: EUR 29\.00\)</)
    expect(text).toContain('7 more')
    expect(text).not.toContain('Row 24')
  })

  test('in a message is shown whole, as they will read it, and confirmed whatever their number', async () => {
    await group('Ann', ['ann@example.com', 'bea@example.com'])
    await group('Cay', ['cay@nobody.invalid'])
    const message = `Bring a **lamp**.\n\n${'It is dark. '.repeat(300)}<b>End</b>`
    const args = { event: event.id, subject: 'The way home', message, status: 'active' }
    expect(await assistant.call('message_attendees', { ...args, dry_run: true })).toMatchObject({ data: { told: 2 } })
    const url = await askedFor('message_attendees', args)
    const { text } = await person.open(url)
    expect(text).toContain('Send this message to the guests of “Test event”?')
    expect(text).toMatch(/2 people will be e-mailed<.*1 person will not be e-mailed \(no e-mail address: 1\)</s)
    expect(text).toMatch(/Only guests with<\/dt><dd><bdi>status: active<.*Subject<\/dt><dd><bdi>The way home</s)
    expect(text).toContain('<p dir="auto">Bring a <strong>lamp</strong>.</p>')
    expect(text).toContain('It is dark. &lt;b&gt;End&lt;/b&gt;</p>')
    await person.confirm(url)
    for (const changed of [{ message: 'Buy now' }, { subject: 'Buy now' }, { status: 'awaiting_payment' }])
      expect(await askedFor('message_attendees', { ...args, ...changed })).not.toBe(url)
    expect(await assistant.call('message_attendees', args)).toMatchObject({ effect: { told: 2 } })
    expect(await askedFor('message_attendees', args), 'once more').not.toBe(url)
  })

  test('by an import is asked for as well', async () => {
    const guestsOf = (count: number) =>
      Array.from({ length: count }, (_, n) => ({ name: `Guest ${n}`, email: `guest-${count}-${n}@example.com` }))
    const args = (count: number) => ({
      event: event.id,
      ticket_type: event.ticketTypeId,
      attendees: guestsOf(count),
      send_email: true,
    })
    expect(await assistant.call('import_attendees', args(20))).toMatchObject({ data: { created: 20 } })
    expect(await assistant.call('import_attendees', { ...args(22), send_email: false })).toMatchObject({
      data: { created: 22 },
    })
    const url = await askedFor('import_attendees', args(21))
    expect((await person.open(url)).text).toMatch(/Test event.*21 people will be e-mailed</s)
    await person.confirm(url)
    const others = { ...args(21), attendees: guestsOf(23) }
    expect(await askedFor('import_attendees', others)).not.toBe(url)
    expect(await assistant.call('import_attendees', args(21))).toMatchObject({ data: { created: 21 } })
  })

  // Why each other operation that sends e-mails does not ask: docs/contribute/decisions/confirmed-operations-are-few.md.
  const unasked: Record<string, string> = {
    register_attendee: 'the tickets of one order, at most 50, as an order in a shop has them',
    add_attendee: 'one',
    record_invoice_payment: 'the tickets of one order',
    update_attendee: 'one',
    resend_ticket: 'one',
    resend_email: 'one',
    send_payment_reminder: 'one',
    void_payment: 'one',
    update_order: 'one',
    reopen_order: 'one',
    join_waiting_list: 'none but an offer',
    accept_waiting_list_offer: 'one order',
    update_waiting_list_entry: 'an offer to the next',
    cancel_waiting_list_entry: 'an offer to the next',
    update_ticket_type: 'offers to those who asked for one',
    publish_event: 'offers to those who asked for one',
    unpublish_event: 'nobody: there are no orders',
    delete_event: 'nobody: there are no orders',
  }

  test('in numbers is asked for by every operation that says more to more than twenty', () => {
    // Scans send webhooks alone.
    const sends = operations.filter(
      ({ mcp, hints, toolset }) => mcp !== false && hints?.openWorld && !['webhooks', 'door'].includes(toolset ?? ''),
    )
    const silent = sends.filter(({ confirmed, name }) => confirmed === undefined && !(name in unasked))
    expect(silent.map(({ name }) => name)).toEqual([])
    const known = sends.map(({ name }) => name)
    expect(Object.keys(unasked).filter((name) => !known.includes(name))).toEqual([])
  })
})

test('completing an event is confirmed before it has begun, and not after', async () => {
  await waiting(1)
  const args = { event: event.id }
  const url = await askedFor('complete_event', args)
  const { text } = await person.open(url)
  expect(text).toMatch(/Complete “Test event” before it starts\?.*1 person on the waiting list.*>Close registrations</s)
  expect(text).not.toContain('This cannot be undone')
  expect(await statusOf()).toBe('published')
  await person.confirm(url)
  expect(await assistant.call('complete_event', args)).toMatchObject({ data: { status: 'completed' } })

  await assistant.call('publish_event', args)
  await edit('events', event.id, "starts_at = now() - interval '1 minute'")
  expect(await assistant.call('complete_event', args)).toMatchObject({ data: { status: 'completed' } })
})

describe('what was confirmed', () => {
  const endKey = () =>
    studio.query("update public.api_keys set revoked_at = now() where organisation_id = $1 and name = 'Jane Doe'", [
      organisation.id,
    ])

  test.each<[string, () => Promise<{ changed?: Record<string, unknown>; caller?: McpCaller }>]>([
    ['by another key', async () => ({ caller: await negotiating(await organisation.askingKey(), apiUrl) })],
    ['with one argument changed', async () => ({ changed: { notify: 'mailed' } })],
    ['for another event', async () => ({ changed: { event: (await organisation.event()).id } })],
    ['after eleven minutes', () => moveTime(11).then(() => ({}))],
    ['once the key of whoever confirmed has ended', () => endKey().then(() => ({}))],
  ])('is not carried out %s', async (_how, change) => {
    const args = { event: event.id, notify: 'everybody' }
    const url = await askedFor('cancel_event', args)
    await person.confirm(url)
    const { changed, caller } = await change()
    expect(await askedFor('cancel_event', { ...args, ...changed }, caller)).not.toBe(url)
    expect(await statusOf()).toBe('published')
    expect(await spent()).toEqual([])
  })

  test('is spent once by two calls at the same time', async () => {
    await edit('organisations', organisation.id, 'confirm_refunds_above = 0')
    const orderId = await refundable(9900)
    const args = { order: orderId, amount: 1000 }
    await person.confirm(await askedFor('record_refund', args))
    const post = async () => {
      const answer = await rpcOf(key, 'record_refund', args)
      return JSON.parse(answer.content[0].text).error?.code ?? 'done'
    }
    expect((await Promise.all([post(), post()])).sort()).toEqual(['confirmation_required', 'done'])
    expect(await studio.query('select from public.refunds where order_id = $1', [orderId])).toMatchObject({
      rowCount: 1,
    })
    expect(await spent()).toHaveLength(1)
    await askedFor('record_refund', args)
  })

  test('has the outcome of its idempotency key, which a lacking confirmation is not', async () => {
    const args = { event: event.id, idempotency_key: 'cancel-it' }
    await person.confirm(await askedFor('cancel_event', args))
    const first = await assistant.call('cancel_event', args)
    expect(await assistant.call('cancel_event', args)).toEqual(first)
    expect(await spent()).toHaveLength(1)
  })

  test('of a person everywhere says whose address it is, and keeps it no longer than the request', async () => {
    await event.guest()
    const args = { email: 'guest@example.com' }
    const url = await askedFor('erase_person', args)
    expect((await person.open(url)).text).toMatch(
      /guest@example\.com.*1 ticket will be affected<.*Erase guest@example\.com’s data<\/button>/s,
    )
    await person.confirm(url)
    expect(await askedFor('erase_person', { ...args, everyone: true })).not.toBe(url)
    expect(await assistant.call('erase_person', args)).toMatchObject({ data: { attendees: 1 } })
    expect(await spent()).toMatchObject([{ operation: 'erase_person', arguments: {} }])
  })

  test('of people everywhere names each, and is not of others', async () => {
    await guests(1)
    const emails = ['guest-1@example.com', 'guest-1@example.com']
    const id = await group('Mary Jackson', emails)
    const args = { email: 'guest-1@example.com', everyone: true }
    const url = await askedFor('erase_person', args)
    const { text } = await person.open(url)
    expect(text).toMatch(/Mary Jackson \(tickets: 2, orders: 1\)/)
    expect(text).toMatch(/Guest \(tickets: 1, orders: 1\)/)

    // As many as before, and not the same.
    await studio.query("update public.attendees set email = 'other@example.com' where order_id = $1", [id])
    await edit('orders', id, "email = 'other@example.com'")
    await group('Ada Lovelace', emails)
    expect((await person.open(url)).text).toContain('nothing to confirm')
    await person.confirm(url)
    expect(await askedFor('erase_person', args)).not.toBe(url)
  })

  test('keeps personal data out of errors of the database, which it may log', async () => {
    await event.guest()
    const args = { email: 'guest@example.com', names: ['Guest'] }
    const claims = await row<{ id: string; family_id: string }>(
      "select id, family_id from public.api_keys where organisation_id = $1 and confirmations = 'asked'",
      [organisation.id],
    )
    const role = { role: 'scope_attendees_write', source: 'mcp', organisation_id: organisation.id }
    const error = await during(async (client) => {
      await client.query("select set_config('request.jwt.claims', $1, true)", [
        JSON.stringify({ ...role, api_key_id: claims.id, family_id: claims.family_id }),
      ])
      return client.query('select api.erase_person($1, $2)', [args.email, args.names])
    }).catch((refusal) => refusal)
    expect(error).toMatchObject({ code: 'PT428' })
    expect(JSON.stringify({ ...error })).not.toMatch(/guest@example|Guest/)
    expect((await person.open(await askedFor('erase_person', args))).text).toMatch(/guest@example\.com/)
  })

  test('is not spent by a call that fails', async () => {
    const { attendeeId } = await event.guest()
    await person.confirm(await askedFor('erase_attendee', { attendee: attendeeId }))
    expect(await assistant.refusal('erase_attendee', { attendee: 'Guest' })).toMatchObject({ code: 'id_needed' })
    expect(await spent()).toEqual([])
    expect(await assistant.call('erase_attendee', { attendee: attendeeId })).toMatchObject({ data: { attendees: 1 } })
    const { rows } = await studio.query(
      'select c::text as text from private.confirmations c where organisation_id = $1',
      [organisation.id],
    )
    expect(JSON.stringify(rows)).not.toContain(attendeeId)
  })
})

describe('by what it would do', () => {
  test.each(Object.entries(edits))('%s asks before it tells more than twenty people', async (_operation, prepare) => {
    const changes = { name: 'Moved event' }
    await guests(20)
    const [tool, few] = await prepare({ changes, notify: 'everybody' })
    const told = (await assistant.call(tool, few)) as { effect: { told: number } }
    expect(told.effect.told).toBe(20)

    await guests(1)
    changes.name = `${changes.name} again`
    const [, many] = await prepare({ changes, notify: 'everybody' })
    const url = await askedFor(tool, many)
    expect((await person.open(url)).text).toMatch(/21 people will be e-mailed<.*name: .*Moved event again/s)
    await person.confirm(url)
    expect(await assistant.call(tool, many)).toMatchObject({ effect: { told: 21 } })
  })

  test('a group of more than twenty is told that it is cancelled only then', async () => {
    const id = await group(
      'Guest',
      Array.from({ length: 21 }, (_, n) => `guest-${n}@example.com`),
    )
    const args = { order: id, notify: 'everybody' }
    const url = await askedFor('cancel_order', args)
    await person.confirm(url)
    await assistant.call('update_event', { event: event.id, changes: { name: 'Buy now' } })
    expect(await askedFor('cancel_order', args), 'its event has another name').not.toBe(url)
    await assistant.call('update_event', { event: event.id, changes: { name: 'Test event' } })
    expect(await assistant.call('cancel_order', args)).toMatchObject({ data: { status: 'cancelled' } })
    // Those e-mails wait to be sent.
    await askedFor('update_event', { event: event.id, changes: { name: 'Buy now' } })
  })

  test('a refund asks above the amount of the organisation, in parts as well, and without one never', async () => {
    const orderId = await refundable(99900)
    const args = { order: orderId, amount: 5000 }
    expect(await assistant.call('record_refund', args)).toMatchObject({ data: { amount_refunded: 5000 } })
    await edit('organisations', organisation.id, 'confirm_refunds_above = 10000')
    expect(await assistant.call('record_refund', args)).toMatchObject({ data: { amount_refunded: 10000 } })
    const url = await askedFor('record_refund', { ...args, amount: 1 })
    expect((await person.open(url)).text).toMatch(/Refund<\/dt><dd><bdi>€0\.01</)
  })
})

describe('a page', () => {
  test('is of nobody, of another organisation, or of a key that may not', async () => {
    const url = await askedFor('cancel_event', { event: event.id })
    const stranger = new Person(apiUrl, await (await createOrganisation()).personKey())
    const clerk = new Person(apiUrl, await organisation.personKey('events:read', 'orders:write'))

    const nobody = await new Jar(apiUrl).ask(url)
    expect([nobody.status, nobody.text.includes('Test event')]).toEqual([200, false])
    const never = url.replace(/[^/]+$/, '00000000-0000-4000-8000-000000000000')
    const [of, without] = [await stranger.open(url), await stranger.open(never)]
    const same = (text: string) => text.replace(/value="[^"]*"/g, '')
    expect([of.status, same(of.text)]).toEqual([404, same(without.text)])
    const page = await clerk.open(url)
    expect(page.text).toContain('may not do this')
    expect(page.text).not.toMatch(/Test event|value="confirm"/)
    for (const other of [stranger, clerk]) await other.press(url, await other.open(url), 'confirm')
    for (const other of [stranger, clerk]) await other.press(url, await other.open(url), 'refuse')
    expect(await askedFor('cancel_event', { event: event.id })).toBe(url)
  })

  test('confirms nothing by being looked at, by another site, by another form, or for a session that has ended', async () => {
    const args = { event: event.id }
    const url = await askedFor('cancel_event', args)
    const page = await person.open(url)
    const stillAsks = async (what: string) => expect(await askedFor('cancel_event', args), what).toBe(url)

    for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']) {
      const { jar } = person
      const Cookie = [...jar.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
      await fetch(`${url}?action=confirm&form_token=${formTokenOf(page)}`, {
        method,
        headers: { Cookie, ...jar.address },
      })
      await stillAsks(method)
    }
    for (const site of ['cross-site', 'same-site', 'none']) {
      expect((await person.press(url, page, 'confirm', { 'Sec-Fetch-Site': site })).status).toBe(400)
      await stillAsks(site)
    }
    const other = await person.open(await askedFor('cancel_event', { event: (await organisation.event()).id }))
    expect((await person.press(url, other, 'confirm')).status).toBe(400)
    await stillAsks('the form of another request')
    const neighbour = new Person(apiUrl, person.key)
    expect((await person.press(url, await neighbour.open(url), 'confirm')).status).toBe(400)
    await stillAsks('the form of another browser')

    await moveTime(11)
    await person.press(url, page, 'confirm')
    await moveTime(-11)
    await stillAsks('a confirmation that is too late')
    await studio.query(
      'delete from private.oauth_sign_ins where api_key_id in (select id from public.api_keys where organisation_id = $1)',
      [organisation.id],
    )
    expect((await person.press(url, page, 'confirm')).text).toContain('name="key"')
    await stillAsks('a session that has ended')
    expect(await statusOf()).toBe('published')
  })

  test('is in no frame, no cache and no Referer, and loads nothing', async () => {
    const url = await askedFor('cancel_event', { event: event.id })
    for (const page of [await new Jar(apiUrl).ask(url), await person.open(url), await person.confirm(url)]) {
      const { headers } = page
      expect(headers.get('content-security-policy')).toMatch(
        /^default-src 'none'; style-src 'sha256-[^;]+; base-uri 'none'; form-action 'self'; frame-ancestors 'none'$/,
      )
      expect([headers.get('x-frame-options'), headers.get('cache-control'), headers.get('referrer-policy')]).toEqual([
        'DENY',
        'no-store',
        'no-referrer',
      ])
      expect(page.text).not.toContain('<script')
    }
  })

  test.skipIf(!hasBrowser)('can be read by everybody, by day and by night, and its button is red', async () => {
    const { page } = await openPerson({ javaScriptEnabled: true, bypassCSP: true })
    await page.goto(await askedFor('cancel_event', { event: event.id }))
    await paste(page, person.key)
    await expectReadable(page, {
      hasOutline: true,
      also: async () => {
        const colour = await page.evaluate("getComputedStyle(document.querySelector('button.main')).backgroundColor")
        const [red = 0, green = 0, blue = 0] = String(colour).match(/\d+/g)?.map(Number) ?? []
        expect(red - Math.max(green, blue)).toBeGreaterThan(80)
      },
    })
    await page.getByRole('button', { name: 'Cancel the event' }).click()
    await expectReadable(page, { hasOutline: true })
  })

  test('shows what others wrote as text', async () => {
    const name = '<b>Gala</b> {person} \u202etxt'
    await edit('events', event.id, 'name = $2', ['<b>Gala</b> {person}'])
    const { text } = await person.open(await askedFor('cancel_event', { event: event.id }))
    expect(text).toContain('&lt;b&gt;Gala&lt;/b&gt; {person}')
    expect(text).not.toContain(name.slice(0, 7))
  })

  test('asks a question of its own for each operation', async () => {
    const url = await askedFor('cancel_event', { event: event.id })
    for (const { name } of operations.filter((operation) => operation.confirmed)) {
      await studio.query('update private.confirmations set operation = $2 where organisation_id = $1', [
        organisation.id,
        name,
      ])
      expect((await person.open(url)).text, name).toMatch(/<h1>(?!Carry out).*\?<\/h1>.*value="confirm">(?!Confirm<)/s)
    }
  })

  test('is there without OAuth, and where nobody could sign in there is none', async () => {
    const without = await ownApp({ oauth: false, trustProxy: true })
    const caller = await negotiating(key, without.url)
    const url = await askedFor('cancel_event', { event: event.id }, caller)
    expect((await new Person(without.url, person.key).confirm(url)).text).toContain('Confirmed')

    const open = await ownApp({ publicUrl: 'http://usher.example' })
    const refused = await (await negotiating(await organisation.askingKey(), open.url)).refusal('cancel_event', {
      event: event.id,
    })
    expect(refused).toMatchObject({
      code: 'confirmation_required',
      retryable: false,
      hint: expect.stringContaining('PUBLIC_URL'),
    })
  })
})

test('a grant asks', async () => {
  const walk = await walkToConsent(person.key, { jar: new Jar(apiUrl) })
  const { body } = await codeGrant(walk, await decide(walk, { scope: ['events:read', 'events:write'] }))
  const cancel = () => rpcOf(body.access_token ?? '', 'cancel_event', { event: event.id }, '/api/mcp/connect')
  const { error } = JSON.parse((await cancel()).content[0].text)
  expect(error).toMatchObject({ code: 'confirmation_required' })
  await person.confirm(error.details.url)
  const again = await cancel()
  expect(again).not.toHaveProperty('isError')
})

/**
 * A host that can elicit.
 * @param answer what it does with a link, or its person does with a form, before it says that this is done.
 */
async function hostThat(
  elicitation: { [by in 'url' | 'form']?: Record<string, never> },
  answer: (url: string) => Promise<void>,
) {
  const client = new Client(
    { name: 'test', version: '1' },
    {
      jsonSchemaValidator: validator,
      capabilities: { elicitation },
      versionNegotiation: { mode: { pin: '2026-07-28' } },
    },
  )
  const asked: unknown[] = []
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    asked.push(params)
    const { url, message } = params as { url?: string; message: string }
    await answer(url ?? /https?:\S+/.exec(message)?.[0] ?? '')
    return { action: 'accept' as const, ...(elicitation.url === undefined && { content: {} }) }
  })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${apiUrl}/api/mcp`), { requestInit: bearing(key) }))
  onTestFinished(() => client.close())
  return {
    asked,
    cancel: async () =>
      (await client.callTool({ name: 'cancel_event', arguments: { event: event.id } })) as unknown as {
        content: { text: string }[]
      },
  }
}

describe.each([
  ['opens links', { url: {} }],
  ['opens links and shows forms', { form: {}, url: {} }],
  ['shows forms', { form: {} }],
  ['shows forms, as before there were links', {}],
])('a host that %s', (_what, elicitation) => {
  test('is given the link, and its call goes through once the person has confirmed', async () => {
    const links: string[] = []
    const { cancel, asked } = await hostThat(elicitation, async (url) => {
      if (links.push(url) > 1) await person.confirm(url)
    })
    const [answer] = (await cancel()).content
    expect(JSON.parse(answer?.text ?? '')).toMatchObject({
      error: { code: 'confirmation_required', details: { url: links[0] } },
    })
    expect(await statusOf()).toBe('published')
    expect(await cancel()).toMatchObject({ structuredContent: { data: { status: 'cancelled' } } })
    const shown =
      'url' in elicitation
        ? { mode: 'url', url: expect.stringContaining('/confirm/'), message: expect.any(String) }
        : { mode: 'form', message: expect.stringContaining('/confirm/'), requestedSchema: { properties: {} } }
    expect(asked).toMatchObject([shown, shown])
  })
})

test('a host cannot cancel by itself, whatever it posts of what it was told', async () => {
  const told: string[] = [key.slice(0, 19)]
  const { cancel } = await hostThat({ url: {} }, async (url) => {
    const jar = new Jar(apiUrl)
    for (let round = 0; round < 3; round++) {
      const page = await jar.ask(url)
      told.push(...[...page.text.matchAll(/value="([^"]+)"/g)].map(([, value = '']) => value), url)
      for (const action of ['confirm', 'sign_in', 'allow', 'sign_out']) {
        for (const value of new Set(told.flatMap((text) => [text, text.split('/').at(-1) ?? '']))) {
          await jar.ask(url, { form: { action, key: value, form_token: formTokenOf(page), confirmed: 'true' } })
        }
      }
    }
  })
  for (let attempt = 0; attempt < 2; attempt++) told.push(JSON.stringify(await cancel()))
  for (const tool of ['get_api_key', 'list_events', 'list_audit_entries'])
    told.push(JSON.stringify(await rpcOf(key, tool, {})))
  told.push(...told.flatMap((text) => [...text.matchAll(/[\w-]{19,}/g)].map(([word]) => word)))
  await cancel()
  expect(await statusOf()).toBe('published')
  expect(await spent()).toEqual([])
  expect(told.length).toBeGreaterThan(20)
})

test('requests are forgotten, those that nobody answered after an hour', async () => {
  await person.confirm(await askedFor('cancel_event', { event: event.id }))
  await assistant.call('cancel_event', { event: event.id })
  await askedFor('cancel_event', { event: (await organisation.event()).id })
  const leftAfter = async (interval: string) => {
    await studio.query(
      'update private.confirmations set forget_at = forget_at - $2::interval where organisation_id = $1',
      [organisation.id, interval],
    )
    await studio.query('select api.purge()')
    return (await studio.query('select from private.confirmations where organisation_id = $1', [organisation.id]))
      .rowCount
  }
  expect([await leftAfter('61 minutes'), await leftAfter('90 days')]).toEqual([1, 0])
})

const rpcOf = async (secret: string, tool: string, args: object, path = '/api/mcp') =>
  JSON.parse((await callWith(secret, apiUrl, path, tool, args)).text).result as { content: [{ text: string }] }
