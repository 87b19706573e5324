// Different reads of a key that arrive together share RPCs, and each is answered as if it had come alone.

import { expect, onTestFinished, test } from 'vitest'
import { studio } from '../support/database.ts'
import { jsonHeaders, post, toolCall } from '../support/mcp.ts'
import { createOrganiser } from '../support/organiser.ts'
import { ownApp } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'
import { type Breaks, raised, watchedDataApi } from '../support/watched-data-api.ts'

type Calls = { operation: string; args: Record<string, unknown> }[]

/** The app in front of PostgREST: notes what is asked, holds functions until they are released, and may break them. */
async function watched(breaks: Record<string, Breaks> = {}) {
  const asked: string[] = []
  const shared: Calls[] = []
  const held = new Map<string, PromiseWithResolvers<void>>()
  const dataApi = await watchedDataApi(async (fn, res, body) => {
    asked.push(fn)
    if (fn === 'read_calls') shared.push(JSON.parse(body).calls)
    await held.get(fn)?.promise
    breaks[fn]?.(res)
  })
  onTestFinished(dataApi.close)
  const hold = (fn: string) => {
    const gate = Promise.withResolvers<void>()
    held.set(fn, gate)
    return () => {
      held.delete(fn)
      gate.resolve()
    }
  }
  return { asked, shared, hold, ...(await ownApp({ dataApiUrl: dataApi.url })) }
}

/** Sends as often as it takes: on a busy machine all may be answered one by one. */
async function sendUntil<T>(isShared: () => boolean, send: () => Promise<T>): Promise<T> {
  for (let round = 0; round < 50; round++) {
    const answers = await send()
    if (isShared()) return answers
  }
  throw new Error('Nothing was shared.')
}

async function shop() {
  const { organisation, event, key } = await createOrganiser()
  const guest = { ticket_type_id: event.ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' }
  const { body } = await rest(key)('POST', `/events/${event.id}/registrations`, guest)
  return { organisation, event, key, order: body.data }
}

const unknown = '01a1fa45-8fac-7c28-a535-aaa9447abaa9'

const without = (body: { error?: object }) =>
  body.error === undefined ? body : { error: { ...body.error, request_id: undefined } }

test('each of different reads gets its own answer, list, refusal and error, over REST as over MCP', async () => {
  const { url, shared } = await watched()
  const { event, key, order } = await shop()
  const paths = [
    '/me',
    `/events/${event.id}`,
    `/events/${unknown}`,
    '/events?limit=1',
    '/events?limit=2&status=published',
    '/events?cursor=nonsense',
    `/events/${event.id}/ticket-types`,
    `/ticket-types/${event.ticketTypeId}`,
    `/ticket-types/${unknown}`,
    `/orders/${order.id}`,
    `/orders/${unknown}`,
    `/attendees/${order.attendees[0].id}`,
    `/attendees/${unknown}`,
    `/events/${event.id}/summary`,
    `/attendees?event_id=${event.id}`,
    '/events/not-an-id',
  ]
  const alone: unknown[] = []
  for (const path of paths) alone.push(without((await rest(key, url)('GET', path)).body))

  const many = [...paths, ...paths.toReversed(), ...paths]
  await sendUntil(
    () => new Set(shared.flat().map(({ operation }) => operation)).size > 1,
    async () => {
      const answers = await Promise.all(many.map((path) => rest(key, url)('GET', path)))
      answers.forEach(({ body }, i) => {
        expect(without(body), many[i]).toEqual(alone[paths.indexOf(many[i] as string)])
      })
    },
  )
  for (const calls of shared) {
    expect(new Set(calls.map((call) => JSON.stringify(call))).size).toBe(calls.length)
    expect(new Set(calls.map(({ operation }) => /^list_|_summary$/.test(operation))).size).toBe(1)
  }

  const ids = Array.from({ length: 24 }, (_, i) => [event.id, unknown, event.ticketTypeId][i % 3] as string)
  const tools = ['get_event', 'get_event', 'get_ticket_type']
  const results = await Promise.all(
    ids.map(async (id, i) => {
      const tool = tools[i % 3] as string
      const { body } = await post(toolCall(tool, { [`${tool.slice(4)}_id`]: id }), jsonHeaders(key), { apiUrl: url })
      const { content } = (body as { result: { content: [{ text: string }] } }).result
      const { data, error, code } = JSON.parse(content[0].text)
      return data?.id ?? error?.code ?? code
    }),
  )
  expect(results).toEqual(ids.map((id) => (id === unknown ? 'not_found' : id)))
})

test('a list that takes long holds neither objects nor other lists', async () => {
  const { url, hold, asked } = await watched()
  const { event, key } = await shop()
  const send = rest(key, url)
  await send('GET', '/me')
  const release = hold('list_ticket_types')
  let isAnswered = false
  const heavy: Promise<void>[] = []
  for (const limit of [1, 2]) {
    heavy.push(
      send('GET', `/events/${event.id}/ticket-types?limit=${limit}`).then(() => {
        isAnswered = true
      }),
    )
    // One after the other: two that come at once share an RPC.
    await expect.poll(() => asked.filter((name) => name === 'list_ticket_types').length).toBe(limit)
  }
  const light = await Promise.all([
    ...Array.from({ length: 10 }, (_, i) => send('GET', `/events?limit=${i + 1}`)),
    send('GET', '/me'),
    send('GET', `/events/${event.id}`),
  ])
  expect(light.map(({ status }) => status)).toEqual(light.map(() => 200))
  expect(isAnswered).toBe(false)
  release()
  await Promise.all(heavy)
})

test.each(['57014', 'PGRST202', '22P05'])('when shared reads meet %s, each is sent by itself', async (code) => {
  const { url, shared } = await watched({ read_calls: raised(500, code) })
  const { event, key } = await shop()
  const paths = Array.from({ length: 20 }, (_, i) => `/events/${i % 2 ? event.id : unknown.slice(0, -2) + (10 + i)}`)
  const answers = await sendUntil(
    () => shared.length > 0,
    () => Promise.all(paths.map((path) => rest(key, url)('GET', path))),
  )
  expect(answers.map(({ status }) => status)).toEqual(paths.map((_, i) => (i % 2 ? 200 : 404)))
})

test('a key that is revoked is refused in the middle of shared reads', async () => {
  const { url, hold, shared } = await watched()
  const { organisation, event, key } = await shop()
  const release = hold('read_calls')
  const paths = Array.from({ length: 20 }, (_, i) => `/events/${unknown.slice(0, -2) + (10 + i)}`)
  const { answers } = await sendUntil(
    () => shared.length > 0,
    async () => {
      let isAnswered = false
      const sent = Promise.all([...paths, `/events/${event.id}`].map((path) => rest(key, url)('GET', path)))
      void sent.then(() => {
        isAnswered = true
      })
      await expect.poll(() => isAnswered || shared.length > 0).toBe(true)
      return { answers: sent }
    },
  )
  await studio.query('update public.api_keys set revoked_at = now() where organisation_id = $1', [organisation.id])
  release()
  const calls = shared.flat().length
  const codes = (await answers).map(({ body }) => body.error?.code)
  expect(codes.filter((code) => code === 'api_key_revoked').length).toBeGreaterThanOrEqual(calls)
})
