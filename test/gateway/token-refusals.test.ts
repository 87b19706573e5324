// Tokens that PostgREST refuses because of their time: a machine was suspended, or a clock stepped, while they were kept.

import { randomUUID } from 'node:crypto'
import { expect, inject, onTestFinished, test, vi } from 'vitest'
import { createCourierRpc } from '../../src/gateway/courier-rpc.ts'
import { DataApi } from '../../src/gateway/data-api.ts'
import { createDatabaseHealth } from '../../src/gateway/database-health.ts'
import { createProbe } from '../../src/gateway/database-probe.ts'
import { createPrincipals } from '../../src/gateway/principals.ts'
import { createTokens, type Tokens } from '../../src/gateway/tokens.ts'
import { row } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { ownApp } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'

const aDay = 86_400_000

/** As long as the clock of this process, and of nothing else, is off. */
async function withClockOff<T>(offMs: number, work: () => Promise<T>): Promise<T> {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offMs })
  onTestFinished(() => void vi.useRealTimers())
  try {
    return await work()
  } finally {
    vi.useRealTimers()
  }
}

async function arrange() {
  const tokens = await createTokens({ secret: inject('jwtSecret') })
  const dataApi = new DataApi({ url: inject('dataApiUrl') }, tokens)
  const organisation = await createOrganisation()
  return { tokens, dataApi, key: await organisation.key(), event: await organisation.event() }
}

/** Which the clock made useless before anybody used them. */
async function keepTokens(tokens: Tokens, offMs: number, key: string): Promise<void> {
  const others = await createTokens({ secret: inject('jwtSecret') })
  const principal = await createPrincipals(new DataApi({ url: inject('dataApiUrl') }, others), others).resolve(key)
  await withClockOff(offMs, async () => {
    await tokens.forGateway()
    await tokens.forCourier()
    for (const scope of principal.scopes) {
      await tokens.forPrincipal(principal, `scope_${scope.replace(':', '_')}`, 'api')
    }
  })
}

test.each([
  ['has expired', -aDay],
  ['comes from the future', aDay],
])('a kept token that %s is signed again, wherever it is used', async (_, offMs) => {
  const { tokens, dataApi, key, event } = await arrange()
  const { attendeeId } = await event.guest()
  await keepTokens(tokens, offMs, key)
  const { url } = await ownApp({ tokens, dataApi })
  const send = rest(key, url)

  const probe = createProbe({ url: inject('dataApiUrl') }, tokens)
  expect(await createDatabaseHealth(probe).isReady()).toBe(true)
  const { ticket_token } = await row('select ticket_token from public.attendees where id = $1', [attendeeId])
  expect((await fetch(`${url}/t/${ticket_token}`)).status).toBe(200)
  expect(await createCourierRpc(dataApi, tokens)('outbox_depth', {})).toBeInstanceOf(Array)
  expect((await send('GET', `/events/${event.id}`)).status).toBe(200)
  // More than two, so that some share an RPC.
  const guest = { ticket_type_id: event.ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' }
  const registered = await Promise.all(
    Array.from({ length: 8 }, () => send('POST', `/events/${event.id}/registrations`, guest)),
  )
  expect(registered.map(({ status }) => status)).toEqual(Array(8).fill(201))
  expect(await event.sold()).toBe(9)
})

test('while no token is accepted a call may be repeated, and succeeds once the clock is right', async () => {
  const { tokens, dataApi, key } = await arrange()
  const send = rest(key, (await ownApp({ tokens, dataApi })).url)
  const refused = await withClockOff(-aDay, () => send('GET', '/me'))
  expect([refused.status, refused.body.error.code]).toEqual([503, 'temporarily_unavailable'])
  expect(refused.body.error.retryable).toBe(true)
  expect((await send('GET', '/me')).status).toBe(200)
})

test('a refused token is replaced once, for everybody who has it', async () => {
  const tokens = await createTokens({ secret: 'a secret of at least 32 characters' })
  const holder = { api_key_id: randomUUID(), family_id: randomUUID(), organisation_id: randomUUID() }
  const kept = await withClockOff(-aDay, () => tokens.forPrincipal(holder, 'scope_events_read', 'api'))
  const replaced = await Promise.all(Array.from({ length: 5 }, () => tokens.inPlaceOf(kept)))
  expect(new Set([kept, ...replaced, await tokens.forPrincipal(holder, 'scope_events_read', 'api')]).size).toBe(2)
})
