// Registrations and scans that arrive together share RPCs: counted on the way to PostgREST.

import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { ownApp } from '../support/own-app.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import { type Breaks, raised, watchedDataApi } from '../support/watched-data-api.ts'

/** The app in front of PostgREST: counts the calls of each function, and may break or delay them. */
async function counted(breaks: Record<string, Breaks> = {}, delayMs = 0) {
  const rpcs: Record<string, number> = {}
  const batches: Record<string, unknown>[][] = []
  const dataApi = await watchedDataApi(async (fn, res, body) => {
    rpcs[fn] = (rpcs[fn] ?? 0) + 1
    if (fn === 'register_attendees') batches.push(JSON.parse(body).calls)
    await breaks[fn]?.(res)
    await sleep(delayMs)
  })
  onTestFinished(dataApi.close)
  return { rpcs, batches, ...(await ownApp({ dataApiUrl: dataApi.url })) }
}

const times = <T>(n: number, work: (i: number) => Promise<T>) =>
  Promise.all(Array.from({ length: n }, (_, i) => work(i)))

async function onSale(quantity?: number) {
  const { organisation, event, key } = await createOrganiser(quantity === undefined ? {} : { quantity })
  const register = (url: string, i: number, headers: Record<string, string> = {}) =>
    rest(key, url)(
      'POST',
      `/events/${event.id}/registrations`,
      { ticket_type_id: event.ticketTypeId, name: `Guest ${i}`, email: `guest-${i}@example.com` },
      headers,
    )
  return { organisation, event, key, register }
}

const tally = (answers: RestAnswer[]) => {
  const counts: Record<string, number> = {}
  for (const { status, body } of answers) {
    const outcome = status < 300 ? String(status) : body.error.code
    counts[outcome] = (counts[outcome] ?? 0) + 1
  }
  return counts
}

test('registrations that arrive together share RPCs, and each gets its own order', async () => {
  const { url, rpcs } = await counted()
  const { event, register } = await onSale()
  const answers = await times(30, (i) => register(url, i))
  expect(tally(answers)).toEqual({ 201: 30 })
  expect(answers.map(({ body }) => body.data.name)).toEqual(answers.map((_, i) => `Guest ${i}`))
  expect(new Set(answers.map(({ body }) => body.data.id)).size).toBe(30)
  expect(await event.sold()).toBe(30)
  expect(rpcs.register_attendees).toBeGreaterThan(0)
  expect((rpcs.register_attendees ?? 0) + (rpcs.register_attendee ?? 0)).toBeLessThan(answers.length)
})

test('a registration that comes alone is a call of its own, at once', async () => {
  const { url, rpcs } = await counted()
  const { register } = await onSale()
  for (let i = 0; i < 3; i++) expect((await register(url, i)).status).toBe(201)
  expect([rpcs.register_attendee, rpcs.register_attendees]).toEqual([3, undefined])
})

test('when the last places go within a batch, as many get one as there are', async () => {
  const { url, rpcs } = await counted()
  const { event, register } = await onSale(17)
  expect(tally(await times(30, (i) => register(url, i)))).toEqual({ 201: 17, sold_out: 13 })
  expect(await event.sold()).toBe(17)
  expect(rpcs.register_attendees).toBeGreaterThan(0)
})

test('scans that arrive together share RPCs, and of two of one ticket one is accepted', async () => {
  const { url, rpcs } = await counted()
  const { event, key, register } = await onSale()
  const codes = (await times(10, (i) => register(url, i))).map(({ body }) => body.data.attendees[0].ticket_code)
  const answers = await times(20, (i) =>
    rest(key, url)('POST', '/check-ins', { event_id: event.id, code: codes[i % 10] }),
  )
  expect(tally(answers)).toEqual({ 200: 10, already_checked_in: 10 })
  expect(rpcs.check_in_many).toBeGreaterThan(0)
})

test('keys of two organisations never share an RPC, nor do calls that may be repeated with others', async () => {
  const { url, batches } = await counted()
  const [one, other] = [await onSale(), await onSale()]
  const answers = await times(30, (i) =>
    (i % 2 === 0 ? one : other).register(url, i, i % 3 === 0 ? { 'Idempotency-Key': `${i}` } : {}),
  )
  expect(tally(answers)).toEqual({ 201: 30 })
  expect([await one.event.sold(), await other.event.sold()]).toEqual([15, 15])
  expect(batches.length).toBeGreaterThan(0)
  for (const calls of batches) {
    expect(new Set(calls.map((call) => call.event_id)).size).toBe(1)
    expect(new Set(calls.map((call) => 'idempotency_key' in call)).size).toBe(1)
  }
})

test('a batch whose answer is lost tells each of its callers so, and repeating them with their keys registers nobody twice', async () => {
  const broken: Record<string, Breaks> = { register_attendees: (res) => res.destroy() }
  const { url } = await counted(broken)
  const { event, register } = await onSale()
  const send = (i: number) => register(url, i, { 'Idempotency-Key': `${i}` })
  const answers = await times(30, send)
  const { 201: alone = 0, outcome_unknown: lost = 0 } = tally(answers)
  expect(lost).toBeGreaterThan(0)
  expect(alone + lost).toBe(30)
  expect(answers.filter(({ status }) => status !== 201).every(({ body }) => body.error.retryable)).toBe(true)
  delete broken.register_attendees
  expect(tally(await times(30, send))).toEqual({ 201: 30 })
  expect(await event.sold()).toBe(30)
})

test('a batch that runs out of its time may be sent again: each call alone had the time', async () => {
  const { url } = await counted({ register_attendees: raised(500, '57014') })
  const { event, register } = await onSale()
  const answers = await times(12, (i) => register(url, i))
  const refused = answers.filter(({ status }) => status !== 201)
  expect(refused.length).toBeGreaterThan(0)
  for (const { body } of refused) expect(body.error).toMatchObject({ code: 'temporarily_unavailable', retryable: true })
  expect(await event.sold()).toBe(12 - refused.length)
})

test('a key that is revoked is refused in the middle of a batch, and nothing of the batch is done', async () => {
  const { organisation, event, register } = await onSale()
  const revoke = 'update public.api_keys set revoked_at = now() where organisation_id = $1 and revoked_at is null'
  const { url } = await counted({ register_attendees: () => studio.query(revoke, [organisation.id]) })
  const answers = await times(30, (i) => register(url, i))
  const counts = tally(answers)
  expect(Object.keys(counts).every((outcome) => ['201', 'api_key_revoked'].includes(outcome))).toBe(true)
  expect(await event.sold()).toBe(counts[201] ?? 0)
})

test('reads of the same thing share RPCs; none is answered from before it arrived, and no other key gets the answer', async () => {
  const { url, rpcs } = await counted({}, 50)
  const { event, key, organisation } = await onSale()
  const read = (by = key) => rest(by, url)('GET', `/events/${event.id}`)
  await read()
  rpcs.get_event = 0
  const names = (await times(30, () => read())).map(({ body }) => body.data.name)
  expect(names).toEqual(Array(30).fill('Test event'))
  expect(rpcs.get_event).toBeLessThan(30)

  // Each writes, and then reads what it has written, or something later, while the others do the same.
  const versions = await times(8, async () => {
    const { body } = await rest(key, url)('PATCH', `/events/${event.id}`, { description: 'Edited' })
    return [body.data.version, (await read()).body.data.version]
  })
  for (const [written, seen] of versions) expect(seen).toBeGreaterThanOrEqual(written)

  const stranger = await (await createOrganisation()).key()
  const narrow = await organisation.key('orders:read')
  const answers = await times(30, (i) => read([key, stranger, narrow][i % 3]))
  expect(answers.map(({ status }) => status)).toEqual(answers.map((_, i) => [200, 404, 403][i % 3]))
})
