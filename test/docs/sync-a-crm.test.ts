// The programs of docs/guides/sync-a-crm.md and hubspot.md at work: many contacts, a network that breaks, two events, an erased person;
// webhooks that arrive late, again and at once.

import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, expect, inject, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/cli/config.ts'
import { start } from '../../src/cli/start.ts'
import { createLog } from '../../src/process/log.ts'
import { cleanUp, end, freePort, repository, spawnUsher, temporaryFolder } from '../cli/support.ts'
import { makeDataDirectory } from '../support/data-directory.ts'
import { startHubspot } from '../support/hubspot.ts'
import { createOrganisation, type TestEvent } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { behindTrouble, errorPage, lostRequest } from '../support/trouble.ts'
import { type ReceivedWebhook, startWebhookReceiver } from '../support/webhook-receiver.ts'
import { fencesOf, makeProject, savePrograms } from './samples.ts'

afterAll(cleanUp)

const read = (page: string) => readFileSync(join(repository, 'docs/guides', page), 'utf8')

/** The programs of a page, saved as it says. */
function save(page: string): string {
  const folder = temporaryFolder()
  makeProject(folder)
  savePrograms(fencesOf(page), folder)
  return folder
}

test('the sync with a CRM brings contacts in, and changes back, for each of two events', async () => {
  const { createSync } = await import(pathToFileURL(join(save(read('sync-a-crm.md')), 'sync.ts')).href)
  const organisation = await createOrganisation()
  const key = await organisation.key('attendees:write', 'attendees:read')
  const send = rest(key)
  const event = await organisation.event({ quantity: 305 })
  const sync = (url: string, { id: eventId, ticketTypeId }: TestEvent) =>
    createSync({ url, key, eventId, ticketTypeId })
  const { push, pull } = sync(await behindTrouble(lostRequest, errorPage), event)

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

/** What a CRM hears of a few guests: real webhooks, signed and sent by a courier, to be delivered in any order. */
async function recordWebhooks(types: string[]) {
  const dataDir = await makeDataDirectory()
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
  const usher = await start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('silent'), () => {})
  onTestFinished(() => usher.stop())
  const receiver = await startWebhookReceiver()
  onTestFinished(() => receiver.close())
  const { key, eventId, ticketTypeId } = usher.demo ?? expect.fail('a first start has a demo')
  const send = rest(key, usher.url)
  const { secret } = (await send('POST', '/webhook-endpoints', { url: `${receiver.url}/hooks`, types })).body.data
  const arrived = (n: number) => expect.poll(() => receiver.received.length, { timeout: 30_000 }).toBe(n)
  const register = async (...emails: string[]) => {
    const attendees = emails.map((email) => ({ ticket_type_id: ticketTypeId, name: 'A guest', email }))
    return (await send('POST', `/events/${eventId}/registrations`, { attendees })).body.data
  }

  const [mary] = (await register('Mary@example.com')).attendees
  const annie = await register('annie@example.com')
  const [katherine] = (await register('katharine@example.com')).attendees
  const [dorothy] = (await register('dorothy@example.com', 'dorothy@example.com')).attendees
  const [gladys] = (await register('gladys@example.com')).attendees
  await register('a.child@acme.invalid', 'refused@acme.test')
  await arrived(6)
  await send('POST', '/check-ins', { event_id: eventId, code: mary.ticket_code })
  await send('POST', `/orders/${annie.id}/cancel`)
  await send('PATCH', `/attendees/${katherine.id}`, { email: 'katherine@example.com' })
  await send('POST', `/attendees/${dorothy.id}/cancel`)
  await send('POST', `/attendees/${gladys.id}/erase`, {})
  await arrived(12)
  return { eventId, secret, webhooks: receiver.received }
}

test('HubSpot shows who registered, attended and cancelled, in whatever order webhooks arrive', async () => {
  const page = read('hubspot.md')
  const [, types = ''] = /"types": (\[[^\]]*\])/.exec(page) ?? []
  const { eventId, secret, webhooks } = await recordWebhooks(JSON.parse(types))

  const hubspot = await startHubspot()
  onTestFinished(hubspot.close)
  const port = await freePort()
  const program = page.replace('4100', `${port}`).replaceAll('https://api.hubapi.com', hubspot.url)
  const run = async (cwd: string) => {
    const env = { WEBHOOK_SECRET: secret, HUBSPOT_TOKEN: 'pat-eu1-1' }
    const { child, stderr } = spawnUsher(['hubspot.ts'], { dataDir: '', command: [process.execPath], cwd, env })
    await expect.poll(() => deliver([{ headers: {}, body: '' }]).catch(() => []), { timeout: 30_000 }).toEqual([400])
    return { stderr, stop: () => end(child) }
  }
  const deliver = (chosen: Pick<ReceivedWebhook, 'headers' | 'body'>[]): Promise<number[]> =>
    Promise.all(
      chosen.map(async ({ headers, body }) => {
        const signed = Object.entries(headers).filter(([name]) => name.startsWith('webhook-')) as [string, string][]
        return (await fetch(`http://127.0.0.1:${port}`, { method: 'POST', headers: signed, body })).status
      }),
    )
  const all = (status: number) => webhooks.map(() => status)
  const names = ['mary', 'annie', 'katherine', 'dorothy']
  const shown = () => names.map((name) => hubspot.stateOf(eventId, `${name}@example.com`))
  const truth = ['ATTENDED', 'CANCELLED', 'REGISTERED', 'REGISTERED']

  for (const order of [webhooks, webhooks.toReversed()]) {
    hubspot.startAfresh(eventId)
    const folder = save(program)
    const { stderr, stop } = await run(folder)
    for (const webhook of order) expect(await deliver([webhook, webhook])).toEqual([204, 204])
    expect(shown()).toEqual(truth)
    expect(stderr()).toContain('HubSpot refused a contact: refused@acme.test')
    // The old address, and who was forgotten: without a ticket, and not written to again.
    expect(hubspot.stateOf(eventId, 'katharine@example.com')).not.toBe('REGISTERED')
    expect(hubspot.stateOf(eventId, 'gladys@example.com')).not.toBe('CANCELLED')
    await stop()

    const calls = hubspot.calls()
    const again = await run(folder)
    expect(await deliver(order.toReversed())).toEqual(all(204))
    expect(hubspot.calls(), 'what was sent before the restart is not sent again').toBe(calls)
    await again.stop()
  }

  hubspot.startAfresh(eventId)
  const { stop } = await run(save(program))
  hubspot.failWith(503)
  expect(await deliver(webhooks)).toContain(502)
  hubspot.failWith(undefined)
  expect(await deliver(webhooks)).toEqual(all(204))
  expect(shown()).toEqual(truth)
  const forged = webhooks.map(({ headers, body }) => ({ headers, body: `${body} ` }))
  expect(await deliver(forged)).toEqual(all(400))
  await stop()
})
