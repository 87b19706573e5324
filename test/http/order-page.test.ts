// The page at /o/TOKEN as the buyer of an order meets it: what is due, what was paid, whose tickets it opens, and who gets its link.

import { pino } from 'pino'
import { beforeAll, expect, inject, test } from 'vitest'
import { languages } from '../../src/guests/words/index.ts'
import { visibleText } from '../courier/hostile.ts'
import { row, studio } from '../support/database.ts'
import { orderLinksOf, orderUrl } from '../support/order-links.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { ownApp } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'
import { fingerprint } from '../support/rows-of.ts'
import { edit } from '../support/studio.ts'

let organisation: TestOrganisation
let send: ReturnType<typeof rest>
beforeAll(async () => {
  organisation = await createOrganisation()
  send = rest(await organisation.key())
})

type Guest = { name: string; email: string }
const ada = { name: 'Ada Lovelace', email: 'ada@example.com' }
const bob = { name: 'Bob Kahn', email: 'bob@example.com' }
const child = { name: 'Little Ada', email: 'child@nobody.invalid' }

/** An order of Ada's at 49.00 a ticket. */
async function order(
  guests: Guest[] = [ada, bob, child],
  { event, ...body }: { event?: string; send_email?: false } = {},
) {
  const made = event === undefined ? await organisation.event() : undefined
  const eventId = event ?? (made?.id as string)
  const type = (await send('POST', `/events/${eventId}/ticket-types`, { name: 'Regular', price: 4900 })).body.data
  const registration = { ...ada, ticket_type_id: type.id, payment_method: 'invoice', attendees: guests, ...body }
  const { data } = (await send('POST', `/events/${eventId}/registrations`, registration)).body
  return {
    eventId,
    id: data.id as string,
    reference: data.reference as string,
    url: await orderUrl(data.id, inject('apiUrl')),
  }
}
const pay = async (id: string, amount: number, received_at = '2026-03-01T09:00:00Z') =>
  (await send('POST', `/orders/${id}/payments`, { amount, received_at })).body.data.payments.at(-1).id as string
const shown = async (url: string) => visibleText(await (await fetch(url)).text()).replace(/\s+/g, ' ')
const tokensIn = (page: string) => Array.from(page.matchAll(/href="\.\.\/([tg])\/([0-9a-f]+)"/g), ([, kind]) => kind)

test('an order to be paid says how much, by when, how, and with which reference', async () => {
  await edit('organisations', organisation.id, "payment_instructions = E'Acme Ltd\\nDE75 5121 0800 1245 1261 99'")
  const { id, url, reference } = await order()
  await send('PATCH', `/orders/${id}`, { payment_due_at: '2030-04-15T21:59:00Z' })
  const answer = await fetch(url)
  expect(answer.headers.get('Set-Cookie')).toBeNull()
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-security-policy': expect.stringMatching(
      /^default-src 'none'; script-src 'sha256-\S+'; style-src 'sha256-/,
    ),
    'x-robots-tag': 'noindex',
    'referrer-policy': 'no-referrer',
    'cache-control': 'private, no-store',
  })
  const page = await answer.text()
  for (const text of ['DE75512108001245126199', reference]) expect(page).toContain(`hidden data-copy="${text}"`)
  expect(await shown(url)).toContain('Please pay €147.00 by 15 April 2030 at 23:59')
  for (const part of [`Order ${reference}`, '3 × Regular €147.00', 'Total €147.00', 'Acme Ltd', 'Test event'])
    expect(await shown(url)).toContain(part)
  expect(page).not.toMatch(/receipt"|tickets"/)

  await pay(id, 4700)
  expect(await shown(url)).toContain('Paid €47.00 Still to pay €100.00')
  expect(await shown(url)).toContain('Payment received on 1 March 2026 €47.00')
  const mistaken = await pay(id, 10_000, '2026-03-02T09:00:00Z')
  expect(await shown(url)).toContain('This order is paid in full.')
  expect(await shown(url)).not.toContain('Acme Ltd')
  await send('POST', `/payments/${mistaken}/void`, {})
  // It was completed: its tickets stand, and there is no deadline.
  expect(await shown(url)).toContain(`Please pay €100.00 for order ${reference}`)
  expect(await shown(url)).not.toContain('2 March')
})

test("it opens the buyer's own tickets and those that take no mail, and of others shows who has which", async () => {
  const { eventId, id, url } = await order()
  expect(tokensIn(await (await fetch(url)).text())).toEqual(['t', 't'])
  await pay(id, 14_700)
  expect(tokensIn(await (await fetch(url)).text())).toEqual(['t', 't'])
  await edit('events', eventId, "guests_may = '{correct}'")
  const page = await (await fetch(url)).text()
  expect(tokensIn(page)).toEqual(['t', 'g', 't', 'g'])
  expect(await shown(url)).toMatch(
    /Ada Lovelace Regular – Valid Open ticket Change name or pass on Bob Kahn Regular – Valid Little Ada Regular – Valid Open ticket/,
  )
  expect(page).not.toMatch(/@example\.com|@nobody/)
  for (const [, path] of page.matchAll(/href="\.\.\/(t\/[0-9a-f]+)"/g))
    expect(await shown(`${inject('apiUrl')}/${path}`)).toMatch(/Ada/)
  const printed = await shown(`${url}/tickets`)
  expect([printed.includes('Little Ada'), printed.includes('Ada Lovelace'), printed.includes('Bob')]).toEqual([
    true,
    true,
    false,
  ])

  const quiet = await order([ada], { send_email: false })
  await pay(quiet.id, 4900)
  expect(tokensIn(await (await fetch(quiet.url)).text())).toEqual([])
})

test('a receipt has the seller, the buyer, what was bought and paid and when, and nothing unpaid has one', async () => {
  const seller = "seller_details = E'Acme Ltd\\n1 Market Square\\nVAT GB 123', tax_note = 'Prices include 20% VAT.'"
  await edit('organisations', organisation.id, seller)
  const { eventId, id, url, reference } = await order([ada])
  const unpaid = await fetch(`${url}/receipt`, { redirect: 'manual' })
  expect([unpaid.status, new URL(unpaid.headers.get('Location') ?? '', `${url}/receipt`).href]).toEqual([302, url])
  await pay(id, 4900)
  expect(await (await fetch(url)).text()).toContain(`href="${url.slice(-64)}/receipt"`)
  const receipt = await shown(`${url}/receipt`)
  expect(receipt).toMatch(
    /Seller Acme Ltd 1 Market Square VAT GB 123 Buyer Ada Lovelace .*1 × Regular €49\.00 Total €49\.00 Paid €49\.00 Payments Payment received on 1 March 2026 €49\.00 Prices include 20% VAT\./,
  )
  expect(receipt).toContain(`Order ${reference}`)
  expect(receipt).not.toContain('Bob')
  for (const locale of Object.keys(languages)) {
    await edit('events', eventId, 'locale = $2', [locale])
    expect(await shown(`${url}/receipt`)).toContain(languages[locale]?.orderPage.seller)
    for (const path of ['', '/receipt']) expect(await shown(url + path)).not.toMatch(/invoice|rechnung|factur|factuur/i)
  }
})

test('a cancelled order says what becomes of the money, and opens no ticket', async () => {
  const [unpaid, paid] = [await order(), await order([ada, bob])]
  await pay(paid.id, 9800)
  for (const { id } of [unpaid, paid]) await send('POST', `/orders/${id}/cancel`, {})
  expect(await shown(unpaid.url)).toContain('This order has been cancelled. Please do not make a payment now.')
  expect(await shown(paid.url)).toContain('The €98.00 you have paid will be refunded.')
  await send('PATCH', `/orders/${paid.id}`, { amount_retained: 1000 })
  expect(await shown(paid.url)).toContain('we keep €10.00. €88.00 will be refunded.')
  await send('POST', `/orders/${paid.id}/refunds`, { amount: 8800, refunded_at: '2026-04-01T09:00:00Z' })
  expect(await shown(paid.url)).toContain('Refund made on 1 April 2026 \u2212€88.00')
  expect(await shown(paid.url)).not.toContain('will be refunded')
  expect(tokensIn(await (await fetch(paid.url)).text())).toEqual([])
  expect((await fetch(`${paid.url}/tickets`)).url).toBe(paid.url)

  const partly = await order([ada, bob])
  await pay(partly.id, 9800)
  const { attendees } = (await send('GET', `/orders/${partly.id}`)).body.data
  await send('POST', `/attendees/${attendees[1].id}/cancel`, {})
  expect(await shown(partly.url)).toContain('This order is paid in full. €49.00 will be refunded.')
})

test('its link stands in e-mails to the buyer, and in nobody else’s', async () => {
  const { eventId, id, url } = await order([ada, bob])
  await pay(id, 9800)
  // Bob bought one as well, and each is told of their own.
  const other = await order([bob], { event: eventId })
  await edit('orders', other.id, "email = 'bob@example.com'")
  await pay(other.id, 4900)
  await send('POST', `/events/${eventId}/cancel`, { notify: 'mailed' })
  const own = `https://tickets.example/o/${url.slice(-64)}`
  const links = await orderLinksOf(eventId)
  const toBob = await orderUrl(other.id, 'https://tickets.example')
  for (const { kind, to, order_url } of links) {
    if (kind === 'ticket') expect([to, order_url]).toEqual([to, null])
    else if (to === ada.email) expect([kind, order_url]).toEqual([kind, own])
    // Told with Ada's order, whose page is hers.
    else expect([null, toBob]).toContain(order_url)
  }
  expect(new Set(links.filter(({ order_url }) => order_url === own).map(({ kind }) => kind))).toEqual(
    new Set(['order_confirmation', 'payment_received', 'event_cancelled']),
  )
  const secret = url.slice(-32)
  const { rows } = await studio.query(
    `select n.data::text from public.notifications n where n.organisation_id = $1
     union all select a::text from public.audit_entries a where a.organisation_id = $1`,
    [organisation.id],
  )
  const answers = [await send('GET', `/orders/${id}`), await send('GET', `/attendees?event_id=${eventId}`), ...rows]
  expect(JSON.stringify(answers)).not.toContain(secret)
})

test('a link ends with the address of the buyer, and with an erasure; one of another order opens nothing', async () => {
  const [moved, erased, other] = [await order(), await order(), await order()]
  await pay(other.id, 14_700)
  await send('PATCH', `/orders/${moved.id}`, { email: 'right@example.com' })
  const base = `${inject('apiUrl')}/o`
  const [a, b] = [moved.url.slice(-64), other.url.slice(-64)]
  const paths = [
    moved.url,
    `${base}/${a.slice(0, 32)}${b.slice(32)}`,
    `${base}/${b.slice(0, 32)}${a.slice(32)}`,
    `${base}/${b.toUpperCase()}`,
    `${base}/${b}x`,
    `${base}/${b}/`,
    `${base}/${b}/others`,
    `${base}/${b}/tickets?page=2`,
    `${base}/${b}/tickets?page=0`,
    `${base}/${b}/tickets?page=x`,
    `${inject('apiUrl')}/u/${b}`,
    base,
    `${base}/%E0%A4%A`,
  ]
  for (const path of paths) expect([path, (await fetch(path)).status]).toEqual([path, 404])
  expect((await fetch(other.url)).status).toBe(200)
  const erase = await send('POST', '/people/erase', { email: ada.email, everyone: true })
  expect(erase.status).toBe(200)
  for (const path of ['', '/receipt', '/tickets']) expect((await fetch(erased.url + path)).status).toBe(404)
  const german = await fetch(erased.url, { headers: { 'Accept-Language': 'de' } })
  expect(await german.text()).toContain('Dieser Link ist ungültig oder nicht mehr gültig.')
})

test('reading changes nothing, and nothing else is allowed', async () => {
  const { id, url } = await order()
  await pay(id, 14_700)
  const before = await fingerprint(organisation.id)
  for (const path of ['', '/receipt', '/tickets']) {
    for (const method of ['GET', 'HEAD']) expect((await fetch(url + path, { method })).status).toBe(200)
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const refused = await fetch(url + path, { method })
      expect([refused.status, refused.headers.get('Allow')]).toEqual([405, 'GET, HEAD'])
    }
  }
  expect(await fingerprint(organisation.id)).toEqual(before)
})

test('what people typed is text', async () => {
  const typed = '<script>alert(1)</script>"\'&'
  const { id, url } = await order([{ ...ada, name: typed }])
  await edit('orders', id, 'name = $2', [typed])
  await edit('organisations', organisation.id, 'payment_instructions = $2, seller_details = $2, tax_note = $2', [typed])
  const unpaid = await (await fetch(url)).text()
  await pay(id, 4900)
  const pages = await Promise.all(['', '/receipt', '/tickets'].map(async (path) => (await fetch(url + path)).text()))
  for (const page of [unpaid, ...pages]) {
    expect(page).not.toContain('<script>alert')
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;')
  }
})

test('an order of more than 1,000 tickets shows a thousand, and prints them by the hundred', async () => {
  const { id, url } = await order([ada])
  await studio.query(
    `insert into public.attendees (order_id, ticket_type_id, name, email)
     select a.order_id, a.ticket_type_id, 'Guest ' || n, 'ada@example.com' from public.attendees a, generate_series(1, 1004) n
     where a.order_id = $1`,
    [id],
  )
  const { due } = await row<{ due: string }>(
    'select private.amount_due(o) as due from public.orders o where o.id = $1',
    [id],
  )
  await pay(id, Number(due))
  const page = await (await fetch(url)).text()
  expect(page.match(/<p class="name"/g)).toHaveLength(1000)
  expect(page).toContain('<li>…</li>')
  const last = await (await fetch(`${url}/tickets?page=10`)).text()
  expect(last.match(/<figure>/g)).toHaveLength(100)
  expect(last.match(/href="tickets\?page=\d+">Page \d+ of 10</g)).toHaveLength(9)
  expect((await fetch(`${url}/tickets?page=11`)).status).toBe(404)
})

test('who guesses has to wait, orders still open, and no log has a token', async () => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const { url } = await ownApp({ log })
  const { url: page } = await order([ada])
  const token = page.slice(-64)
  const guess = (n: number) => fetch(`${url}/o/${token.slice(0, 32)}${`${n}`.padStart(32, '0')}`)
  for (let i = 0; i < 60; i++) expect((await guess(i)).status).toBe(404)
  const refused = await guess(60)
  expect([refused.status, await refused.text()]).toEqual([429, expect.stringContaining('cannot be shown right now')])
  for (const path of ['', '/receipt', '/tickets', '/others']) await fetch(`${url}/o/${token}${path}`)
  expect((await fetch(`${url}/o/${token}`)).status).toBe(200)
  expect(lines.join('')).toContain('"path":"/o/{token}","status":200')
  expect(lines.join('')).not.toContain(token)
})
