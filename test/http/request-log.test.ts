// The log of requests keeps its bounds, whatever is sent, and costs no call: what does not fit is left out and counted.

import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { DataApi } from '../../src/gateway/data-api.ts'
import { type GatewayRpc, gatewayRpc } from '../../src/gateway/gateway-rpc.ts'
import { createTokens } from '../../src/gateway/tokens.ts'
import { createRequestLog, maximumLines, maximumShare, type RequestLine } from '../../src/http/request-log.ts'
import { rolledBack } from '../database/as-courier.ts'
import { row } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'

let rpc: GatewayRpc
beforeAll(async () => {
  const tokens = await createTokens({ secret: inject('jwtSecret') })
  rpc = gatewayRpc(new DataApi({ url: inject('dataApiUrl') }, tokens), tokens)
})

const lineOf = (organisation_id: string, code: string | null = null): RequestLine => ({
  organisation_id,
  api_key_id: randomUUID(),
  source: 'api',
  method: 'GET',
  route: '/api/v1/me',
  status: code === null ? 200 : 422,
  code,
  param: null,
  duration_ms: 1,
  request_id: randomUUID(),
  idempotency_key: null,
  created_at: new Date().toISOString(),
})

function start(call: GatewayRpc = rpc, intervalMs?: number) {
  const said: Record<string, unknown>[] = []
  const log = pino({ base: null }, { write: (text: string) => said.push(JSON.parse(text)) })
  const requestLog = createRequestLog(call, log, intervalMs)
  onTestFinished(requestLog.stop)
  return { ...requestLog, said }
}

const counted = (id: string) =>
  row<{ succeeded: number; failed: number }>(
    `select count(*) filter (where status = 200)::int as succeeded, count(*) filter (where status = 422)::int as failed
     from private.requests where organisation_id = $1`,
    [id],
  )

test('a busy organisation displaces neither its own refusals nor the lines of others', async () => {
  const [busy, quiet] = [(await createOrganisation()).id, (await createOrganisation()).id]
  const { add, stop, said } = start()
  for (let i = 0; i < maximumShare + 50; i++) add(lineOf(busy))
  add(lineOf(busy, 'sold_out'))
  add(lineOf(quiet))
  await stop()
  expect(await counted(busy)).toEqual({ succeeded: maximumShare, failed: 1 })
  expect(await counted(quiet)).toEqual({ succeeded: 1, failed: 0 })
  expect(said).toEqual([expect.objectContaining({ dropped: 50 })])
})

test('all organisations together have a limit, and one that was deleted meanwhile takes no line with it', async () => {
  const { id } = await createOrganisation()
  const { add, stop, said } = start()
  add(lineOf(id))
  for (let i = 1; i < maximumLines; i++) add(lineOf(randomUUID()))
  add(lineOf(id))
  await stop()
  expect(await counted(id)).toEqual({ succeeded: 1, failed: 0 })
  expect(said).toEqual([expect.objectContaining({ dropped: 1 })])
})

test('what cannot be written is dropped, which is logged once, and later lines are written', async () => {
  const { id } = await createOrganisation()
  let attempts = 0
  const { add, said } = start((fn, args) => {
    attempts += 1
    return attempts <= 2 ? Promise.reject(new Error('away')) : rpc(fn, args)
  }, 10)
  for (const attempt of [1, 2]) {
    add(lineOf(id))
    await expect.poll(() => attempts).toBe(attempt)
  }
  add(lineOf(id))
  await expect.poll(() => counted(id)).toEqual({ succeeded: 1, failed: 0 })
  expect(said).toEqual([expect.objectContaining({ err: expect.objectContaining({ message: 'away' }) })])
})

test('of an organisation the newest 20,000 lines are kept, and those of three days', async () => {
  const { id } = await createOrganisation()
  await rolledBack(async (client, asCourier) => {
    const kept = async () =>
      (await client.query('select count(*)::int as n from private.requests where organisation_id = $1', [id])).rows[0].n
    await client.query(
      `insert into private.requests (organisation_id, api_key_id, source, method, status, duration_ms, request_id, created_at)
       select $1, $1, 'api', 'GET', 200, 1, i::text, now() - make_interval(days => case when i <= 10 then 4 else 0 end)
       from generate_series(1, 20009) i`,
      [id],
    )
    await client.query('select api.record_requests($1)', [JSON.stringify([lineOf(id)])])
    const { rows } = await client.query(
      'select min(request_id::integer) as first from private.requests where organisation_id = $1 and length(request_id) < 9',
      [id],
    )
    expect([await kept(), rows[0].first]).toEqual([20_001, 10])
    await asCourier('select api.purge()')
    expect(await kept()).toBe(20_000)
  })
})
