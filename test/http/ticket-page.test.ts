// The ticket page as a client without a browser sees it: who gets its address, what it answers, and what is not written down.

import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pino } from 'pino'
import { beforeAll, expect, inject, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { ownApp } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

let organisation: TestOrganisation
let event: TestEvent
let send: ReturnType<typeof rest>
beforeAll(async () => {
  organisation = await createOrganisation()
  event = await organisation.event()
  send = rest(await organisation.key())
})

const register = async (by = send): Promise<{ id: string; ticket_url: string; ticket_code: string }> => {
  const guest = { ticket_type_id: event.ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' }
  return (await by('POST', `/events/${event.id}/registrations`, guest)).body.data.attendees[0]
}
const unknownUrl = (apiUrl = inject('apiUrl')) => `${apiUrl}/t/${randomBytes(16).toString('hex')}`

test('whoever may read the ticket code gets the address of the ticket page, and nobody else', async () => {
  const { id, ticket_url: url } = await register()
  expect(url).toMatch(new RegExp(`^${inject('apiUrl')}/t/[0-9a-f]{32}$`))
  const { order_id } = (await send('GET', `/attendees/${id}`)).body.data
  const reader = rest(await organisation.key('attendees:read'))
  expect((await reader('GET', `/attendees/${id}`)).body.data.ticket_url).toBe(url)
  const accountant = rest(await organisation.key('orders:read'))
  expect((await accountant('GET', `/orders/${order_id}`)).body.data.attendees[0].ticket_url).toBeNull()

  await send('PATCH', `/attendees/${id}`, { company: 'NASA' })
  const { rows } = await studio.query(
    `select coalesce(data ->> 'ticket_url', data -> 'attendees' -> 0 ->> 'ticket_url') as url,
       strpos(data::text, $2) as place
     from public.notifications where organisation_id = $1 and strpos(data::text, $3) > 0`,
    [organisation.id, url.slice(-32), id],
  )
  expect(rows.length).toBeGreaterThanOrEqual(2)
  for (const notification of rows) expect(notification).toEqual({ url: null, place: 0 })
})

test('the page is for its holder alone: no cookie, no index, no referrer, no cache, nothing loaded', async () => {
  const { ticket_url: url, ticket_code } = await register()
  const answer = await fetch(url)
  expect(answer.status).toBe(200)
  expect(answer.headers.get('Set-Cookie')).toBeNull()
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': expect.stringMatching(
      /^default-src 'none'; script-src 'sha256-\S+'; style-src 'sha256-/,
    ),
    'x-robots-tag': 'noindex',
    'referrer-policy': 'no-referrer',
    'cache-control': 'private, no-store',
  })
  const page = await answer.text()
  expect(page).toContain('Test event')
  expect(page).toContain(ticket_code.replace(/(.{4})(?=.)/g, '$1 '))
  // What leads elsewhere does not lead here.
  for (const [link] of page.matchAll(/href="https:[^"]+"/g)) {
    expect(link).not.toContain(url.slice(-32))
    expect(link).not.toContain(ticket_code)
  }
  const again = await fetch(url, { headers: { 'If-None-Match': `W/${answer.headers.get('ETag')}` } })
  expect([again.status, await again.text()]).toEqual([304, ''])
  expect((await fetch(url, { method: 'HEAD' })).status).toBe(200)
  expect((await fetch(`${url}/`)).url).toBe(url)
  for (const method of ['POST', 'PUT', 'DELETE']) {
    const refused = await fetch(url, { method })
    expect([refused.status, refused.headers.get('Allow')]).toEqual([405, 'GET, HEAD'])
  }
})

test('the calendar file is the one of the e-mail, and holds neither code nor token', async () => {
  const { ticket_url: url, ticket_code } = await register()
  const answer = await fetch(`${url}/ticket.ics`)
  expect(answer.headers.get('Content-Type')).toContain('text/calendar')
  const calendar = await answer.text()
  expect(calendar).toContain(`UID:${event.id}`)
  expect(calendar).not.toContain(ticket_code)
  expect(calendar).not.toContain(url.slice(-32))
})

test('the logo is loaded from its own address, whatever that is made of, and nothing else is', async () => {
  const { ticket_url: url } = await register()
  for (const [logo, sources] of [
    ['https://pictures.example:8443/a/logo.png?b=1', 'data: https://pictures.example:8443'],
    ['https://a.example;sandbox,b/logo.png', 'data: https://a.example%3Bsandbox%2Cb'],
    ['https://%/logo.png', 'data: '],
    [null, 'data:'],
  ]) {
    await edit('organisations', organisation.id, 'logo_url = $2', [logo])
    const policy = (await fetch(url)).headers.get('content-security-policy') ?? ''
    expect(policy).toContain(`; img-src ${sources}; connect-src 'self'; `)
  }
})

test('a token that died answers as one that never existed, and so does whatever is no token', async () => {
  const [reissued, erased, cancelled] = [await register(), await register(), await register()]
  const now = await send('PATCH', `/attendees/${reissued.id}`, { reissue_ticket: true })
  await send('POST', `/attendees/${erased.id}/erase`, {})
  await send('POST', `/attendees/${cancelled.id}/cancel`, {})
  const base = `${inject('apiUrl')}/t`
  const answers = await Promise.all(
    [
      unknownUrl(),
      reissued.ticket_url,
      erased.ticket_url,
      base,
      `${base}/${'A'.repeat(32)}`,
      `${base}/${'0'.repeat(4_000)}`,
      `${base}/%E0%A4%A`,
      `${base}/../t/%00`,
      `${unknownUrl()}/ticket.ics`,
      `${unknownUrl()}/others`,
      `${reissued.ticket_url}/ticket.ics`,
      `${cancelled.ticket_url}/ticket.ics`,
    ].map(async (url) => {
      const answer = await fetch(url)
      const { date: _, 'x-request-id': __, ...headers } = Object.fromEntries(answer.headers)
      return { status: answer.status, headers, body: await answer.text() }
    }),
  )
  for (const answer of answers) expect(answer).toEqual(answers[0])
  expect(answers[0]).toMatchObject({
    status: 404,
    body: expect.stringContaining('This link is not valid, or no longer valid.'),
  })
  const german = await fetch(unknownUrl(), { headers: { 'Accept-Language': 'de-AT,de;q=0.9,en;q=0.8' } })
  expect(await german.text()).toContain('Dieser Link ist ungültig oder nicht mehr gültig.')
  const { ticket_url: newUrl } = now.body.data
  expect(newUrl).not.toBe(reissued.ticket_url)
  expect((await fetch(newUrl)).status).toBe(200)
  expect((await send('GET', `/attendees/${erased.id}`)).body.data.ticket_url).toBeNull()
})

test('after sixty unknown tokens an address has to wait, but tickets still open', async () => {
  const { url } = await ownApp()
  const ticket = await register(rest(await organisation.key(), url))
  for (let i = 0; i < 60; i++) expect((await fetch(unknownUrl(url))).status).toBe(404)
  const refused = await fetch(unknownUrl(url))
  expect([refused.status, Number(refused.headers.get('Retry-After')) > 0]).toEqual([429, true])
  expect(await refused.text()).toContain('cannot be shown right now')
  expect((await fetch(ticket.ticket_url)).status).toBe(200)
})

test('one ticket that is opened without end has to wait, and holds up no other', async () => {
  const { url } = await ownApp()
  const send = rest(await organisation.key(), url)
  const [endless, other] = [await register(send), await register(send)]
  for (let i = 0; i < 120; i++) expect((await fetch(endless.ticket_url)).status).toBe(200)
  const refused = await fetch(endless.ticket_url)
  expect([refused.status, refused.headers.get('Retry-After')]).toEqual([429, '60'])
  expect((await fetch(other.ticket_url)).status).toBe(200)
})

test('the token is in no log: of requests, of errors, of PostgREST, of Postgres', async () => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const { url } = await ownApp({ log })
  const { ticket_url: page } = await register(rest(await organisation.key(), url))
  const token = page.slice(-32)
  for (const path of ['', '/ticket.ics', '/others', '?utm=1']) await fetch(page + path)
  await fetch(page, { method: 'POST' })
  await fetch(`${url}/t/${token}x`)
  const broken = await ownApp({ log, dataApiUrl: 'http://127.0.0.1:9' })
  const answer = await fetch(`${broken.url}/t/${token}`)
  expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('cannot be shown right now')])
  await expect.poll(() => lines.join('')).toContain('"status":503')
  expect(lines.join('')).toContain('"path":"/t/{token}","status":200')
  expect(lines.join('')).not.toContain(token)

  const { data_directory } = await row<{ data_directory: string }>('show data_directory')
  for (const name of ['postgres.log', 'postgrest.log']) {
    expect(await readFile(join(dirname(data_directory), name), 'utf8')).not.toContain(token)
  }
})
