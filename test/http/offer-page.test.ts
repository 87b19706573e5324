// The page of an offer as a browser meets it: what reads it changes nothing, each button does what it says once, and no other link opens it.

import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { expect, inject, test } from 'vitest'
import { studio } from '../support/database.ts'
import { offering, offerUrl } from '../support/offers.ts'
import { ownApp } from '../support/own-app.ts'
import { pendingEmail } from '../support/pending-email.ts'

const press = (url: string, button: 'take' | 'order' | 'decline', init: RequestInit = {}) =>
  fetch(`${url}/${button}`, { method: 'POST', redirect: 'manual', ...init })
const shown = async (url: string) => (await fetch(url)).text()

const registered = async (ticketTypeId: string) =>
  (
    await studio.query(
      "select id, order_id, status from public.attendees where ticket_type_id = $1 and status <> 'cancelled'",
      [ticketTypeId],
    )
  ).rows
const audited = async (organisationId: string) =>
  (
    await studio.query(
      "select actor, source, object_type, action from public.audit_entries where organisation_id = $1 and source = 'page' order by object_type",
      [organisationId],
    )
  ).rows

test('reading shows the offer with its buttons, and changes nothing', async () => {
  const { url, statuses, ticketTypeId } = await offering()
  expect(url).toMatch(new RegExp(`^${inject('apiUrl')}/w/[0-9a-f]{64}$`))
  for (const method of ['HEAD', 'GET', 'GET']) expect((await fetch(url, { method })).status).toBe(200)
  const page = await shown(url)
  expect(page).toContain('Good news, Ann: a place has become available, and we are holding it for you until')
  expect(page).toMatch(/Test event[\s\S]*General[\s\S]*<button class="main">Take the place<\/button>/)
  expect(page).not.toMatch(/Total|ann@example\.com|<script/)
  for (const button of ['take', 'decline'])
    for (const method of ['GET', 'HEAD', 'PUT']) expect((await fetch(`${url}/${button}`, { method })).status).toBe(404)
  for (const method of ['POST', 'DELETE']) {
    const refused = await fetch(url, { method })
    expect([refused.status, refused.headers.get('Allow')]).toEqual([405, 'GET, HEAD'])
  }
  expect((await fetch(`${url}/`)).url).toBe(url)
  expect([await statuses(), await registered(ticketTypeId)]).toEqual([['offered', 'waiting'], []])
})

test('who takes a free place is registered at once, with the same e-mail, and the page says so to whoever presses again', async () => {
  const { organisation, url, statuses, ticketTypeId } = await offering({ fields: { external_id: undefined } })
  const answer = await press(url, 'take', { body: new URLSearchParams({ name: 'Mallory', price: '0' }) })
  expect([answer.status, new URL(answer.headers.get('Location') ?? '', `${url}/take`).href]).toEqual([303, url])
  expect(await shown(url)).toContain('The place is yours.')
  for (const button of ['take', 'decline'] as const) expect((await press(url, button)).status).toBe(303)
  expect(await shown(url)).not.toContain('<button')
  const [guest, ...others] = await registered(ticketTypeId)
  expect([guest.status, others, await statuses()]).toEqual(['active', [], ['accepted', 'waiting']])
  expect(await pendingEmail('ticket', guest.id)).toMatchObject({ attendee: { name: 'Ann' } })
  await expect(pendingEmail('order_confirmation', guest.order_id)).rejects.toThrow('no e-mail')
  expect(await audited(organisation.id)).toEqual([
    { actor: 'guest', source: 'page', object_type: 'order', action: 'created' },
  ])
})

test('a place with a price is ordered on invoice, and the page says what is due by when', async () => {
  const { event, send, url, ticketTypeId } = await offering({ price: 4900 })
  await send('PATCH', `/events/${event.id}`, { payment_due_days: 14 })
  expect(await shown(url)).toMatch(/€49\.00[\s\S]*paid by invoice[\s\S]*Order with obligation to pay/)
  // Of a page from before the place had a price.
  const outdated = await press(url, 'take')
  expect([outdated.status, await outdated.text()]).toEqual([409, expect.stringContaining(`${url.slice(-64)}/order`)])
  const headers = { 'Sec-Fetch-Site': 'cross-site' }
  for (const button of ['order', 'decline'] as const) expect((await press(url, button, { headers })).status).toBe(404)
  expect(await registered(ticketTypeId)).toEqual([])
  await press(url, 'order')
  const [guest] = await registered(ticketTypeId)
  const { data: order } = (await send('GET', `/orders/${guest.order_id}`)).body
  expect(order).toMatchObject({ payment_method: 'invoice', status: 'pending', amount_due: 4900, source: 'page' })
  expect(await shown(url)).toMatch(
    new RegExp(`Please pay €49\\.00 by \\d[^.]+, quoting the reference ${order.reference}\\.`),
  )
  expect(await pendingEmail('order_confirmation', order.id)).toMatchObject({ order: { amount_due: 4900 } })
  await send('POST', `/orders/${order.id}/payments`, { amount: 4900, method: 'bank_transfer' })
  expect(await shown(url)).toContain('The place is yours.')
  await send('POST', `/attendees/${guest.id}/cancel`)
  expect(await shown(url)).toContain('no longer being held for you')
})

test('a declined place goes to the next, whose link is another', async () => {
  const { organisation, url, entryIds, statuses, ticketTypeId } = await offering()
  expect(await shown(url)).toMatch(/<details>[\s\S]*cannot be undone[\s\S]*Decline the place<\/button>/)
  expect((await press(url, 'decline')).status).toBe(303)
  expect(await shown(url)).toContain('no longer being held for you')
  for (const button of ['decline', 'take'] as const) expect((await press(url, button)).status).toBe(303)
  expect([await statuses(), await registered(ticketTypeId)]).toEqual([['cancelled', 'offered'], []])
  const next = await offerUrl(entryIds[1] as string)
  expect(next.slice(-64)).not.toBe(url.slice(-64))
  expect(await shown(next)).toContain('Good news, Bea: a place has become available')
  expect(await audited(organisation.id)).toEqual([
    { actor: 'guest', source: 'page', object_type: 'waiting_list_entry', action: 'updated' },
  ])
})

test('of many who press at once one registers', async () => {
  const { url, ticketTypeId, event, statuses } = await offering({ price: 100 })
  const taken = await Promise.all(Array.from({ length: 8 }, () => press(url, 'order')))
  expect(taken.map(({ status }) => status)).toEqual(Array(8).fill(303))
  expect(await registered(ticketTypeId)).toHaveLength(1)
  const mixed = await offering()
  await Promise.all(Array.from({ length: 8 }, (_, i) => press(mixed.url, i % 2 === 0 ? 'take' : 'decline')))
  const [first] = await mixed.statuses()
  expect(['accepted', 'cancelled']).toContain(first)
  expect(await registered(mixed.ticketTypeId)).toHaveLength(first === 'accepted' ? 1 : 0)
  expect([await statuses(), await event.sold(ticketTypeId)]).toEqual([['accepted', 'waiting'], 1])
})

test('after its deadline an offer is neither taken nor declined', async () => {
  const { url, send, entryId, statuses, ticketTypeId } = await offering({ names: ['Ann'] })
  await send('PATCH', `/waiting-list-entries/${entryId}`, { offer_expires_at: '2026-01-01T00:00:00Z' })
  for (const button of ['take', 'decline'] as const) expect((await press(url, button)).status).toBe(303)
  const page = await shown(url)
  expect(page).toContain('This offer has expired.')
  expect(page).not.toContain('<button')
  expect([await statuses(), await registered(ticketTypeId)]).toEqual([[expect.stringMatching(/offered|expired/)], []])
})

test('a person who is offered a place again has another link, and the old one says that it is over', async () => {
  const { event, send, url, entryId, ticketTypeId } = await offering({ names: ['Ann'] })
  await send('POST', `/waiting-list-entries/${entryId}/cancel`)
  const guest = await event.guest({ ticketTypeId })
  const person = { ticket_type_id: ticketTypeId, name: 'Ann', email: 'ann@example.com' }
  const { data: again } = (await send('POST', `/events/${event.id}/waiting-list`, person)).body
  await send('POST', `/attendees/${guest.attendeeId}/cancel`)
  const now = await offerUrl(again.id)
  expect(now).not.toBe(url)
  expect((await press(url, 'take')).status).toBe(303)
  expect(await shown(url)).toContain('no longer being held for you')
  expect(await registered(ticketTypeId)).toEqual([])
  await press(now, 'take')
  expect(await registered(ticketTypeId)).toHaveLength(1)
})

test('what cannot be taken is said on the page, which keeps the offer', async () => {
  const { event, send, url, statuses } = await offering()
  expect((await send('POST', `/events/${event.id}/unpublish`)).status).toBe(409)
  await studio.query("update public.ticket_types set status = 'archived' where event_id = $1", [event.id])
  const answer = await press(url, 'take')
  expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining('cannot be taken at the moment')])
  expect(await statuses()).toEqual(['offered', 'waiting'])
  await send('POST', `/events/${event.id}/cancel`)
  expect((await press(url, 'take')).status).toBe(303)
  expect(await shown(url)).toContain('This event has been cancelled.')
})

test('an identifier that another ticket has got meanwhile keeps an offer from being taken', async () => {
  const { event, send, url, statuses } = await offering({ names: ['Ann'], fields: { external_id: 'crm-1' } })
  const other = { ticket_type_id: event.ticketTypeId, name: 'Ann', email: 'a@example.com', external_id: 'crm-1' }
  const { data: order } = (await send('POST', `/events/${event.id}/registrations`, other)).body
  expect((await press(url, 'take')).status).toBe(409)
  await send('POST', `/orders/${order.id}/cancel`)
  expect((await press(url, 'take')).status).toBe(303)
  expect(await statuses()).toEqual(['accepted'])
})

test('what people typed is escaped', async () => {
  const { url } = await offering({ names: ['<b>Ann'], fields: { email: 'ann@example.com' } })
  const page = await shown(url)
  expect(page).toContain('Good news, &lt;b&gt;Ann')
  expect(page).not.toContain('<b>')
})

test('the link dies with its address, is in no answer of the API, and opens nothing with the hash of another', async () => {
  const { organisation, send, event, url, entryIds, statuses } = await offering()
  const other = await offering()
  const [token, theirs] = [url, other.url].map((link) => link.slice(-64)) as [string, string]
  const base = inject('apiUrl')
  for (const path of [
    `/w/${theirs.slice(0, 32)}${token.slice(32)}`,
    `/w/${'0'.repeat(64)}`,
    `/w/${token.toUpperCase()}`,
    `/u/${token}`,
    `/w/${token}/keep`,
  ])
    for (const method of ['GET', 'POST'])
      expect([path, method, (await fetch(base + path, { method })).status]).toEqual([
        path,
        method,
        expect.toSatisfy((status) => status === 404 || (status === 405 && method === 'POST')),
      ])
  const told = await Promise.all([
    send('GET', `/waiting-list-entries/${entryIds[0]}`),
    send('GET', `/events/${event.id}/waiting-list`),
    send('GET', '/notifications'),
    send('GET', '/audit-entries'),
    send('GET', '/emails'),
  ])
  expect(told.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  expect(JSON.stringify(told)).not.toContain(token.slice(32))
  const { rows } = await studio.query('select e::text as e from public.emails e where e.organisation_id = $1', [
    organisation.id,
  ])
  expect(JSON.stringify(rows)).not.toContain(token.slice(32))
  await send('PATCH', `/waiting-list-entries/${entryIds[0]}`, { email: 'right@example.com' })
  for (const button of ['take', 'decline'] as const) expect((await press(url, button)).status).toBe(404)
  const german = await fetch(url, { headers: { 'Accept-Language': 'de' } })
  expect([german.status, await german.text()]).toEqual([404, expect.stringContaining('Dieser Link ist ungültig')])
  expect(await shown(await offerUrl(entryIds[0] as string))).toContain('we are holding')
  expect(await statuses()).toEqual(['offered', 'waiting'])
})

test('who guesses has to wait, and the offer still opens', async () => {
  const { url: apiUrl } = await ownApp()
  const { url } = await offering({ apiUrl })
  const guess = () => fetch(`${apiUrl}/w/${randomBytes(32).toString('hex')}`)
  for (let i = 0; i < 60; i++) expect((await guess()).status).toBe(404)
  expect((await guess()).status).toBe(429)
  expect((await fetch(url)).status).toBe(200)
})

test('the token is in no log, and a database that is away is no dead link', async () => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const { url: apiUrl } = await ownApp({ log })
  const { url } = await offering({ apiUrl })
  const token = url.slice(-64)
  expect((await press(url, 'take')).status).toBe(303)
  const broken = await ownApp({ log, dataApiUrl: 'http://127.0.0.1:9' })
  for (const answer of [await fetch(`${broken.url}/w/${token}`), await press(`${broken.url}/w/${token}`, 'decline')])
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('Please try again in a minute')])
  await expect.poll(() => lines.join('')).toContain('"status":503')
  expect(lines.join('')).toContain('"path":"/w/{token}/take","status":303')
  expect(lines.join('')).not.toContain(token)
})
