// The story of an invoice order that nobody pays in time: confirmation, reminder, expiry, a payment that comes too late, the place offered
// to whoever waits, and their registration; over REST and in Studio. Every e-mail that it makes is read. Where time must pass, dates
// are set in the past, as an organiser could; the courier of this stack does the rest, and what it does every ten seconds a second one does
// as it starts.

import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'
import PostalMime, { type Email } from 'postal-mime'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readConfig } from '../../src/config.ts'
import { createCourierRpc } from '../../src/courier/courier-rpc.ts'
import { startHousekeeping } from '../../src/courier/housekeeping.ts'
import { findRunningStack } from '../../src/embedded/stack.ts'
import { createDataApi } from '../../src/gateway/data-api.ts'
import { createTokens } from '../../src/gateway/tokens.ts'
import { createLog } from '../../src/process/log.ts'
import { type Running, start } from '../../src/start.ts'
import { makeDataDirectory } from '../support/data-directory.ts'
import { readPng } from '../support/qr.ts'
import { rest } from '../support/rest.ts'

let usher: Running
let dataDir: string
let send: ReturnType<typeof rest>
let studio: pg.Client
let anotherCourierStarts: () => void
let housekeeping: { stop(): void } | undefined
beforeAll(async () => {
  dataDir = await makeDataDirectory()
  const [config, log] = [readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('silent')]
  usher = await start(config, log, () => {})
  if (usher.demo === null) throw new Error('a first start has a demo')
  send = rest(usher.demo.key, usher.url)
  const stack = await findRunningStack(dataDir)
  if (stack === null) throw new Error('the stack runs')
  studio = new pg.Client({ connectionString: stack.databaseUrl })
  await studio.connect()
  const tokens = await createTokens({ secret: stack.jwtSecret })
  const rpc = createCourierRpc(createDataApi(stack.dataApiUrl, tokens), tokens)
  anotherCourierStarts = () => {
    housekeeping?.stop()
    housekeeping = startHousekeeping(rpc, config, log)
  }
})
afterAll(async () => {
  housekeeping?.stop()
  await studio?.end()
  await usher.stop()
  await rm(dataDir, { recursive: true, force: true })
})

const sql = async (text: string, values: unknown[] = []) => (await studio.query(text, values)).rows

/** The e-mails to an address, the oldest first. */
async function mailbox(address: string): Promise<Email[]> {
  const names = await readdir(join(dataDir, 'mail')).catch(() => [])
  const all = await Promise.all(
    names.map(async (name) => PostalMime.parse(await readFile(join(dataDir, 'mail', name)))),
  )
  return all
    .filter(({ to }) => to?.some((mailbox) => mailbox.address === address))
    .sort((a, b) => `${a.date}`.localeCompare(`${b.date}`))
}

/** The next e-mail to an address that was not read yet. */
const read: Record<string, string[]> = {}
async function next(address: string): Promise<Email> {
  let found: Email | undefined
  await expect
    .poll(async () => {
      found = (await mailbox(address)).find(({ messageId }) => !read[address]?.includes(`${messageId}`))
      return found
    })
    .toBeDefined()
  const email = found as unknown as Email
  read[address] = [...(read[address] ?? []), `${email.messageId}`]
  return email
}

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

test('an order that is not paid in time, and the place that it gives back', async () => {
  const [buyer, waiting] = ['accounts@buyer.example', 'katherine@nasa.example']
  await sql(
    `update public.organisations set payment_instructions = E'DE75 5121 0800 1245 1261 99\\nBIC SOGEDEFF', accent_colour = '#8A1C3B'
     where slug = 'demo'`,
  )
  const event = (
    await send('POST', '/events', {
      name: 'Night of Numbers',
      starts_at: inDays(60),
      ends_at: inDays(61),
      timezone: 'Europe/Berlin',
      payment_due_days: 14,
    })
  ).body.data
  const type = (await send('POST', `/events/${event.id}/ticket-types`, { name: 'Seat', price: 4900, quantity: 1 })).body
    .data
  await send('POST', `/events/${event.id}/publish`)
  const guest = (name: string, email: string) => ({ ticket_type_id: type.id, name, email, payment_method: 'invoice' })

  // The order is confirmed.
  const registered = await send('POST', `/events/${event.id}/registrations`, guest('Grace Hopper', buyer))
  const { id: orderId, reference, payment_due_at: dueAt } = registered.body.data
  expect(Date.parse(dueAt) - Date.now()).toBeGreaterThan(13.9 * 86_400_000)
  const confirmation = await next(buyer)
  expect(confirmation.subject).toBe(`Your order ${reference}: Night of Numbers`)
  for (const part of [confirmation.text, confirmation.html]) {
    expect(part).toMatch(new RegExp(`Please pay €49\\.00 by .+ and give the reference ${reference}\\.`))
    expect(part).toContain('DE75 5121 0800 1245 1261 99')
  }
  expect(confirmation.html).toContain('background-color:#8a1c3b')

  // Sold out: somebody waits.
  const early = await send(
    'POST',
    `/events/${event.id}/registrations`,
    guest('Dorothy Vaughan', 'dorothy@nasa.example'),
  )
  expect([early.status, early.body.error.code]).toEqual([409, 'sold_out'])
  const joined = await send('POST', `/events/${event.id}/waiting-list`, {
    ticket_type_id: type.id,
    name: 'Katherine Johnson',
    email: waiting,
  })
  const entryId = joined.body.data.id
  expect(joined.body.data).toMatchObject({ status: 'waiting', position: 1 })

  // The deadline comes near.
  await send('PATCH', `/orders/${orderId}`, { payment_due_at: inDays(1) })
  anotherCourierStarts()
  const reminder = await next(buyer)
  expect(reminder.subject).toMatch(/^Please pay by .+: Night of Numbers$/)
  expect(reminder.text).toContain('€49.00 is still to be paid')

  // It passes, and the place is held for whoever waits.
  await sql("update public.orders set payment_due_at = now() - interval '1 minute' where id = $1", [orderId])
  anotherCourierStarts()
  const expired = await next(buyer)
  expect(expired.subject).toBe('Your order was cancelled: Night of Numbers')
  expect(expired.text).toContain('Please do not pay it any more.')
  expect((await send('GET', `/orders/${orderId}`)).body.data).toMatchObject({
    status: 'cancelled',
    cancellation_reason: 'expired',
    amount_due: 0,
  })
  const offer = await next(waiting)
  expect(offer.subject).toBe('A place for you: Night of Numbers')
  expect(offer.text).toContain('Katherine Johnson: a place has become free')
  const late = await send('POST', `/orders/${orderId}/payments`, { amount: 4900 })
  expect([late.status, late.body.error.code]).toEqual([409, 'order_expired'])
  await expect(
    sql("insert into public.payments (order_id, amount, method) values ($1, 4900, 'invoice')", [orderId]),
  ).rejects.toThrow('has expired')
  const direct = await send(
    'POST',
    `/events/${event.id}/registrations`,
    guest('Dorothy Vaughan', 'dorothy@nasa.example'),
  )
  expect([direct.status, direct.body.error.code]).toEqual([409, 'sold_out'])

  // The offer is accepted, and paid in Studio.
  const accepted = await send('POST', `/waiting-list-entries/${entryId}/accept`, { payment_method: 'invoice' })
  expect(accepted.status).toBe(201)
  expect((await next(waiting)).subject).toBe(`Your order ${accepted.body.data.reference}: Night of Numbers`)
  await sql("insert into public.payments (order_id, amount, method) values ($1, 4900, 'bank_transfer')", [
    accepted.body.data.id,
  ])
  const both = [await next(waiting), await next(waiting)]
  const receipt = both.find(({ subject }) => subject === 'Payment received: Night of Numbers')
  expect(receipt?.text).toContain('We received €49.00')
  const ticket = both.find(({ subject }) => subject === 'Your ticket: Night of Numbers')
  const picture = ticket?.attachments.find(({ filename }) => filename === 'qr-code.png')
  const code = readPng(Buffer.from(picture?.content as ArrayBuffer))
  const link = /https?:\/\/\S+\/t\/\w+/.exec(ticket?.text ?? '')?.[0] ?? ''
  expect(await (await fetch(link)).text()).toContain('Katherine Johnson')

  // The event moves; asked for, its guests are told.
  const moved = await send('PATCH', `/events/${event.id}`, { venue: { city: 'Köln' }, notify_attendees: true })
  expect(moved.body.effect).toEqual({ dry_run: false, orders: 1, attendees: 1, emails: 1 })
  await sql("update public.emails set next_attempt_at = now() where kind = 'event_changed'")
  const changed = await next(waiting)
  expect(changed.subject).toBe('Changed: Night of Numbers')
  expect(changed.text).toMatch(/Where – Before +To be announced\nWhere – Now +Köln/)
  const calendar = changed.attachments.find(({ filename }) => filename?.endsWith('.ics'))
  expect(Buffer.from(calendar?.content as ArrayBuffer).toString()).toMatch(/SEQUENCE:\d+/)
  expect((await send('POST', '/check-ins', { event_id: event.id, code })).status).toBe(200)

  // Nobody got anything else, and the CRM heard of it all.
  for (const address of [buyer, waiting]) {
    expect((await mailbox(address)).map(({ messageId }) => `${messageId}`).sort()).toEqual(read[address]?.toSorted())
  }
  const types = (await send('GET', '/notifications?limit=100')).body.data
    .filter(({ data }: { data: { event_id?: string } }) => data.event_id === event.id)
    .map(({ type }: { type: string }) => type)
  expect(types).toEqual(
    expect.arrayContaining(['order.expired', 'waiting_list_entry.offered', 'waiting_list_entry.accepted']),
  )
})
