// The page at /u/TOKEN as a mail service and a browser meet it: what reads it changes nothing, a POST switches off, and no token gives more.

import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { beforeAll, expect, inject, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { pendingChange } from '../support/opt-outs.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { ownApp } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

let organisation: TestOrganisation
let send: ReturnType<typeof rest>
beforeAll(async () => {
  organisation = await createOrganisation()
  send = rest(await organisation.key())
})

/** Guests of an event of which they were just told that it changed, with the links of these e-mails. */
async function arrange(emails = ['ada@example.com'], apiUrl = inject('apiUrl')) {
  const event = await organisation.event()
  const guests = []
  for (const email of emails) {
    const guest = { ticket_type_id: event.ticketTypeId, name: 'Ada', email }
    const { body } = await send('POST', `/events/${event.id}/registrations`, guest)
    guests.push(body.data.attendees[0] as { id: string; ticket_url: string })
  }
  await send('PATCH', `/events/${event.id}`, { name: 'Another', notify: 'mailed' })
  const links = await Promise.all(guests.map(async ({ id }) => (await pendingChange(id, apiUrl)).opt_out_url))
  return { event, guests, links: links as [string, ...string[]] }
}

const optOuts = async (eventId: string): Promise<string[]> =>
  (
    await studio.query('select email_lower from public.email_opt_outs where event_id = $1 order by 1', [eventId])
  ).rows.map(({ email_lower }) => email_lower)

/** As RFC 8058 has it: no cookie, no confirmation, and no redirect is followed. */
const oneClick = (url: string) =>
  fetch(url, { method: 'POST', body: new URLSearchParams({ 'List-Unsubscribe': 'One-Click' }), redirect: 'manual' })

test('reading the link changes nothing, a POST switches off, and a second one changes nothing more', async () => {
  const { event, links, guests } = await arrange(['Ada@Example.com', 'bob@example.com'])
  const [url] = links
  expect(url).toMatch(new RegExp(`^${inject('apiUrl')}/u/[0-9a-f]{64}$`))
  for (const method of ['HEAD', 'GET', 'GET']) {
    const answer = await fetch(url, { method })
    expect(answer.status).toBe(200)
    const page = await answer.text()
    if (method === 'GET') expect(page.match(/<button\b/g)).toHaveLength(1)
  }
  expect(await optOuts(event.id)).toEqual([])

  for (let i = 0; i < 2; i++) {
    const answer = await oneClick(url)
    expect([answer.status, answer.headers.get('Set-Cookie')]).toEqual([200, null])
    expect(await answer.text()).toContain('You will receive no more news about this event.')
  }
  // Multipart, as the standard also has it.
  const form = new FormData()
  form.set('List-Unsubscribe', 'One-Click')
  expect((await fetch(links[1] as string, { method: 'POST', body: form })).status).toBe(200)
  expect(await optOuts(event.id)).toEqual(['ada@example.com', 'bob@example.com'])
  const after = await (await fetch(url)).text()
  expect(after).toContain('You will receive no more')
  expect(after).not.toContain('<button>')
  for (const method of ['PUT', 'DELETE', 'PATCH']) {
    const refused = await fetch(url, { method })
    expect([refused.status, refused.headers.get('Allow')]).toEqual([405, 'GET, HEAD, POST'])
  }
  expect(guests).toHaveLength(2)
})

test('the page is for its reader alone, and shows nothing of the ticket or the person', async () => {
  const { links, guests } = await arrange()
  const answer = await fetch(links[0])
  expect(Object.fromEntries(answer.headers)).toMatchObject({
    'content-security-policy': expect.stringMatching(/^default-src 'none'; style-src 'sha256-.*; form-action 'self'/),
    'x-robots-tag': 'noindex',
    'referrer-policy': 'no-referrer',
    'cache-control': 'private, no-store',
  })
  const page = await answer.text()
  expect(page).toContain('Another')
  expect(page).not.toMatch(/ada@example\.com|Ada|<script/)
  expect(page).not.toContain(guests[0]?.ticket_url.slice(-32))
})

test('the page of the ticket says which it is, and switches off and on again', async () => {
  const { event, guests, links } = await arrange()
  const { id, ticket_url: ticket } = guests[0] as { id: string; ticket_url: string }
  const press = (state: string) => fetch(`${ticket}/emails/${state}`, { method: 'POST' })
  const shown = async () =>
    /<form class="emails"[\s\S]*?<span>(.*?)<\/span>/.exec(await (await fetch(ticket)).text())?.[1]
  expect(await shown()).toBe('News by e-mail: on')
  const { url, status } = await press('off')
  expect([url, status]).toEqual([ticket, 200])
  expect([await shown(), await optOuts(event.id)]).toEqual(['News by e-mail: off', ['ada@example.com']])
  await press('on')
  await press('on')
  expect([await shown(), await optOuts(event.id)]).toEqual(['News by e-mail: on', []])

  await oneClick(links[0])
  expect(await shown()).toBe('News by e-mail: off')
  for (const [method, path, expected] of [
    ['POST', `${ticket}/emails/maybe`, 404],
    ['GET', `${ticket}/emails/on`, 404],
    ['POST', `${inject('apiUrl')}/t/${randomBytes(16).toString('hex')}/emails/on`, 404],
  ] as const)
    expect([path, (await fetch(path, { method })).status]).toEqual([path, expected])
  expect(await shown()).toBe('News by e-mail: off')
  await send('POST', `/attendees/${id}/cancel`)
  expect(await shown()).toBeUndefined()
})

test('the token opens no ticket, that of a ticket switches nothing off here, and no answer of the API has it', async () => {
  const { event, guests, links } = await arrange(['ada@example.com', 'bob@example.com'])
  const [ada, bob] = links.map((url) => url.slice(-64)) as [string, string]
  const base = inject('apiUrl')
  const attempts = [
    `${base}/t/${ada}`,
    `${base}/t/${ada.slice(32)}`,
    `${base}/t/${ada}/emails/off`,
    // Of another ticket, by the hash of this one.
    `${base}/u/${bob.slice(0, 32)}${ada.slice(32)}`,
    `${base}/u/${guests[0]?.ticket_url.slice(-32)}`,
    `${base}/u/${'0'.repeat(64)}`,
    `${base}/u/${ada.toUpperCase()}`,
    `${base}/u/${ada}x`,
    `${base}/u`,
    `${base}/u/%E0%A4%A`,
  ]
  for (const url of attempts)
    for (const method of ['GET', 'POST'])
      expect([method, url, (await fetch(url, { method })).status]).toEqual([
        method,
        url,
        expect.toSatisfy((status) => status === 404 || (status === 405 && url.includes('/t/'))),
      ])
  expect(await optOuts(event.id)).toEqual([])
  const answers = await Promise.all([
    send('GET', `/attendees/${guests[0]?.id}`),
    send('GET', `/events/${event.id}`),
    send('GET', '/notifications'),
  ])
  expect(JSON.stringify(answers)).not.toContain(ada.slice(32))
})

test('a link is for one address: it dies when this is corrected or erased, and not when the ticket is reissued', async () => {
  const { event, guests, links } = await arrange(['a@example.com', 'b@example.com', 'c@example.com'])
  const [reissued, corrected, erased] = guests.map(({ id }) => id)
  await send('PATCH', `/attendees/${reissued}`, { reissue_ticket: true })
  await send('PATCH', `/attendees/${corrected}`, { email: 'right@example.com' })
  await send('POST', `/attendees/${erased}/erase`)
  const answers = []
  for (const url of links) answers.push((await oneClick(url)).status)
  expect(answers).toEqual([200, 404, 404])
  expect(await optOuts(event.id)).toEqual(['a@example.com'])
  const german = await fetch(links[2] as string, { headers: { 'Accept-Language': 'de' } })
  expect(await german.text()).toContain('Dieser Link ist ungültig')
})

test('a link works at one event of one organisation, and long after it', async () => {
  const [here, next] = [await arrange(), await arrange()]
  await edit('events', here.event.id, "starts_at = '2020-01-01', ends_at = '2020-01-02'")
  expect((await fetch(here.links[0])).status).toBe(200)
  expect((await oneClick(here.links[0])).status).toBe(200)
  expect([await optOuts(here.event.id), await optOuts(next.event.id)]).toEqual([['ada@example.com'], []])
  // There is nothing more to switch.
  expect(await (await fetch(here.guests[0]?.ticket_url as string)).text()).not.toContain('class="emails"')
})

test('the token is in no log, and a database that is away is no dead link', async () => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const { url } = await ownApp({ log })
  const { links } = await arrange(['ada@example.com'], url)
  const token = links[0].slice(-64)
  await fetch(links[0])
  await oneClick(links[0])
  await fetch(links[0], { method: 'PUT' })
  const broken = await ownApp({ log, dataApiUrl: 'http://127.0.0.1:9' })
  for (const method of ['GET', 'POST']) {
    const answer = await fetch(`${broken.url}/u/${token}`, { method })
    expect([answer.status, await answer.text()]).toEqual([503, expect.stringContaining('Please try again in a minute')])
  }
  await expect.poll(() => lines.join('')).toContain('"status":503')
  expect(lines.join('')).toContain('"path":"/u/{token}","status":200')
  expect(lines.join('')).not.toContain(token)
})

test('the key of the links is one for the installation, and stays', async () => {
  const { guests, links } = await arrange()
  await arrange()
  const again = await pendingChange(guests[0]?.id as string, inject('apiUrl'))
  expect(again.opt_out_url).toBe(links[0])
  expect((await row<{ n: number }>('select count(*)::integer as n from private.link_keys')).n).toBe(1)
})
