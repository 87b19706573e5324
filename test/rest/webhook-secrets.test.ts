// What webhooks are signed with: shown when it is made, and never again; replaced with an overlap.

import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { studio } from '../support/database.ts'
import { once } from '../support/once.ts'
import { createOrganisation } from '../support/organisation.ts'
import { addEndpoint } from '../support/outbox.ts'
import { invalid, problemOf, rest } from '../support/rest.ts'

async function arrange() {
  const organisation = await createOrganisation()
  const send = rest(await organisation.key())
  const create = (headers = {}) =>
    send('POST', '/webhook-endpoints', { url: 'https://hooks.example.com', types: ['order.created'] }, headers)
  return { organisation, send, create }
}

/** Newest first: how many hours each goes on signing, null for good. */
async function secretsOf(endpointId: string) {
  const { rows } = await studio.query<{ secret: string; hours: number | null }>(
    `select secret, round(extract(epoch from expires_at - now()) / 3600)::int as hours
     from private.webhook_secrets where webhook_endpoint_id = $1 order by id desc`,
    [endpointId],
  )
  return rows
}

function expectToSign(secret: string) {
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(Buffer.from(secret.slice('whsec_'.length), 'base64')).toHaveLength(32)
  const webhook = new Webhook(secret)
  const sentAt = new Date()
  const headers = {
    'webhook-id': 'id',
    'webhook-timestamp': String(Math.floor(sentAt.getTime() / 1000)),
    'webhook-signature': webhook.sign('id', sentAt, '{"type":"order.created"}'),
  }
  expect(webhook.verify('{"type":"order.created"}', headers)).toEqual({ type: 'order.created' })
}

test('a secret is shown when the endpoint is made, to sign with as it is, and never again', async () => {
  const { create, send } = await arrange()
  const { id, secret } = (await create()).body.data
  expectToSign(secret)
  expect(await secretsOf(id)).toEqual([{ secret, hours: null }])

  const path = `/webhook-endpoints/${id}`
  const answers = [
    await send('GET', path),
    await send('GET', '/webhook-endpoints'),
    await send('PATCH', path, { description: 'CRM' }),
    await send('POST', `${path}/test`),
    await send('GET', '/webhook-deliveries'),
    await send('GET', '/notifications'),
    await send('DELETE', path),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 201, 200, 200, 200])
  expect(JSON.stringify(answers.map(({ body }) => body))).not.toContain(secret)
})

test.each([
  [undefined, 24],
  [{}, 24],
  [{ overlap_hours: 1 }, 1],
  [{ overlap_hours: 168 }, 168],
  [{ overlap_hours: 0 }, 0],
])('rotation by %j shows a new secret, and the old one goes on for %i hours', async (body, hours) => {
  const { create, send } = await arrange()
  const { id, secret: old } = (await create()).body.data
  const rotated = await send('POST', `/webhook-endpoints/${id}/rotate-secret`, body)
  expect(rotated.status).toBe(200)
  const { secret } = rotated.body.data
  expectToSign(secret)
  expect(secret).not.toBe(old)
  expect(await secretsOf(id)).toEqual([
    { secret, hours: null },
    { secret: old, hours },
  ])
})

test('at most two secrets are alive, however often they are rotated', async () => {
  const { create, send } = await arrange()
  const { id } = (await create()).body.data
  const rotate = async () => (await send('POST', `/webhook-endpoints/${id}/rotate-secret`)).body.data.secret as string
  const [, second, third] = [await rotate(), await rotate(), await rotate()]
  expect(await secretsOf(id)).toEqual([
    { secret: third, hours: null },
    { secret: second, hours: 24 },
  ])
})

test('of rotations made at once each shows a secret of its own, and one of them signs', async () => {
  const { create, send } = await arrange()
  const { id } = (await create()).body.data
  const answers = await Promise.all(
    Array.from({ length: 6 }, () => send('POST', `/webhook-endpoints/${id}/rotate-secret`)),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200))
  const shown = answers.map(({ body }) => body.data.secret)
  expect(new Set(shown).size).toBe(6)
  const kept = await secretsOf(id)
  expect(kept.map(({ hours }) => hours)).toEqual([null, 24])
  expect(shown).toEqual(expect.arrayContaining(kept.map(({ secret }) => secret)))
})

test('an endpoint of Studio has its secret shown by a rotation', async () => {
  const { organisation, send } = await arrange()
  const id = await addEndpoint(organisation.id)
  const { body } = await send('POST', `/webhook-endpoints/${id}/rotate-secret`)
  expectToSign(body.data.secret)
})

const refusing = once(async () => {
  const { create, send } = await arrange()
  const { id, secret } = (await create()).body.data as { id: string; secret: string }
  return { id, secret, send }
})

test.each([-1, 169, 1.5, '24'])('an overlap of %j hours is refused, and nothing rotates', async (overlap_hours) => {
  const { id, secret, send } = await refusing()
  expect(problemOf(await send('POST', `/webhook-endpoints/${id}/rotate-secret`, { overlap_hours }))).toEqual(
    invalid('overlap_hours'),
  )
  expect(await secretsOf(id)).toEqual([{ secret, hours: null }])
})
