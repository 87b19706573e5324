// The program of docs/guides/sync-a-crm.md at work: many contacts, a network that breaks, two events, an erased person.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, inject, onTestFinished, test } from 'vitest'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import { createOrganisation, type TestEvent } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { fencesOf } from './samples.ts'

/** The program, saved as the page says. */
async function importProgram() {
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs/guides/sync-a-crm.md'), 'utf8')
  const folder = mkdtempSync(join(tmpdir(), 'usher-docs-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'sync.ts')
  writeFileSync(path, fencesOf(page).find(({ text }) => text.startsWith('// sync.ts\n'))?.text ?? '')
  return import(pathToFileURL(path).href)
}

/** The API behind a network that breaks, and a proxy with an error page: each once, then never. */
async function behindTrouble(): Promise<string> {
  const target = new URL(inject('apiUrl'))
  const troubles = [
    (req: IncomingMessage) => req.socket.destroy(),
    (_: IncomingMessage, res: ServerResponse) =>
      res.writeHead(502, { 'Retry-After': '0' }).end('<html>Bad Gateway</html>'),
  ]
  const server = createServer((req, res) => {
    const trouble = troubles.shift()
    if (trouble !== undefined) return void trouble(req, res)
    const { hostname, port } = target
    const upstream = request({ hostname, port, method: req.method, path: req.url, headers: req.headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(res)
    })
    req.pipe(upstream)
  })
  const { url, close } = await listenOnLoopback(server)
  onTestFinished(close)
  return url
}

test('the sync with a CRM brings contacts in, and changes back, for each of two events', async () => {
  const { createSync } = await importProgram()
  const organisation = await createOrganisation()
  const key = await organisation.key('attendees:write', 'attendees:read')
  const send = rest(key)
  const event = await organisation.event({ quantity: 305 })
  const sync = (url: string, { id: eventId, ticketTypeId }: TestEvent) =>
    createSync({ url, key, eventId, ticketTypeId })
  const { push, pull } = sync(await behindTrouble(), event)

  const contacts = Array.from({ length: 1203 }, (_, n) => ({
    id: `contact-${n}`,
    name: `Contact ${n}`,
    // More than one import takes, of which most cost nothing.
    email: n >= 3 && n < 900 ? 'none' : `contact-${n}@example.com`,
  }))
  const refused = await push(contacts)
  expect(refused).toMatchObject([
    ...contacts
      .slice(3, 900)
      .map(({ id }) => ({ contact: { id }, error: { code: 'validation_failed', param: 'email' } })),
    { contact: { id: 'contact-1202' }, error: { code: 'sold_out' } },
  ])

  const saved = new Map<string, { id: string; name: string }>()
  const crm = {
    save: async (id: string, attendee: { id: string; name: string }) => void saved.set(id, attendee),
    forget: async (attendeeId: string) => {
      for (const [id, attendee] of saved) if (attendee.id === attendeeId) saved.delete(id)
    },
  }
  await pull(null, crm)
  expect(saved.size).toBe(305)

  const other = await organisation.event()
  const elsewhere = sync(inject('apiUrl'), other)
  expect(await elsewhere.push(contacts.slice(1000, 1002))).toEqual([])
  saved.clear()
  const started = await elsewhere.pull(null, crm)
  await elsewhere.push([{ ...contacts[1000], name: 'Renamed' }])
  // One person asks to be forgotten: the CRM is told before it sends what it has.
  await send('POST', `/attendees/${saved.get('contact-1001')?.id}/erase`, {})
  await elsewhere.pull(started, crm)
  expect([...saved].map(([id, { name }]) => [id, name])).toEqual([['contact-1000', 'Renamed']])
  expect(await elsewhere.push(contacts.filter(({ id }) => saved.has(id)))).toEqual([])
  const { body } = await send('GET', `/attendees?event_id=${other.id}&email=contact-1001@example.com`)
  expect(body.data, 'she is no guest again').toEqual([])
})
