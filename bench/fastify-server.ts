// Baseline: what a competent engineer would write by hand for the hot routes, on Fastify and pg without PostgREST. It does the same work:
// cached key, validation, and one transaction with role, claims, check_request and the function. DATABASE_URL names the database.

import { createHash } from 'node:crypto'
import Fastify, { type FastifyRequest } from 'fastify'
import pg from 'pg'

type Principal = {
  api_key_id: string
  family_id: string
  organisation_id: string
  scopes: string[]
}

class Refusal extends Error {
  readonly status: number
  readonly code: string
  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 20 })
const principals = new Map<string, { principal: Principal; until: number }>()

async function principalOf({ headers }: FastifyRequest, scope: string | null): Promise<Principal> {
  const key = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1]
  if (key === undefined) throw new Refusal(401, 'missing_api_key', 'Send an API key.')
  const hash = createHash('sha256').update(key).digest('hex')
  let known = principals.get(hash)
  if (known === undefined || known.until < Date.now()) {
    const { rows } = await pool.query('select api.resolve_api_key($1) as principal', [hash])
    known = { principal: rows[0].principal, until: Date.now() + 60_000 }
    principals.set(hash, known)
  }
  if (scope !== null && !known.principal.scopes.includes(scope)) throw new Refusal(403, 'missing_scope', scope)
  return known.principal
}

async function call(principal: Principal, role: string, name: string, text: string, values: unknown[]) {
  const { api_key_id, family_id, organisation_id } = principal
  const claims = JSON.stringify({ role, source: 'api', organisation_id, api_key_id, family_id })
  const client = await pool.connect()
  try {
    await client.query('begin')
    await client.query({
      name: 'claims',
      text: "select set_config('request.jwt.claims', $1, true), set_config('role', $2, true)",
      values: [claims, role],
    })
    await client.query({ name: 'check', text: 'select private.check_request()' })
    const { rows } = await client.query({ name, text, values })
    await client.query('commit')
    return rows[0].answer
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}

const app = Fastify()

app.setErrorHandler((error, _request, reply) => {
  if (error instanceof Refusal) return reply.status(error.status).send({ error: { code: error.code } })
  if (error instanceof pg.DatabaseError && error.code?.startsWith('PT')) {
    return reply.status(Number(error.code.slice(2))).send({ error: JSON.parse(error.detail ?? '{}') })
  }
  return reply.send(error)
})

const uuid = { type: 'string', format: 'uuid' }
const text = { type: 'string', minLength: 1, maxLength: 200 }

type Registration = {
  ticket_type_id: string
  name: string
  email: string
  payment_method?: string
  promo_code?: string
  send_email?: boolean
}

app.post<{ Params: { event_id: string }; Body: Registration }>(
  '/api/v1/events/:event_id/registrations',
  {
    schema: {
      params: { type: 'object', properties: { event_id: uuid } },
      body: {
        type: 'object',
        required: ['ticket_type_id', 'name', 'email'],
        additionalProperties: false,
        properties: {
          ticket_type_id: uuid,
          name: text,
          email: { type: 'string', format: 'email' },
          payment_method: text,
          promo_code: text,
          send_email: { type: 'boolean' },
        },
      },
    },
  },
  async (request, reply) => {
    const { params, body, headers } = request
    const idempotencyKey = headers['idempotency-key']
    const fingerprint =
      idempotencyKey &&
      createHash('sha256')
        .update(JSON.stringify([params, body]))
        .digest('hex')
    const outcome = await call(
      await principalOf(request, 'attendees:write'),
      'scope_attendees_write',
      'register',
      `select api.register_attendee(event_id => $1, ticket_type_id => $2, name => $3, email => $4, payment_method => $5,
         promo_code => $6, send_email => $7, idempotency_key => $8, request_fingerprint => $9) as answer`,
      [
        params.event_id,
        body.ticket_type_id,
        body.name,
        body.email,
        body.payment_method,
        body.promo_code,
        body.send_email,
        idempotencyKey,
        fingerprint,
      ],
    )
    return reply.status(outcome.status).send(outcome.error ? { error: outcome.error } : { data: outcome.data })
  },
)

app.post<{ Body: { event_id: string; code: string; device?: string } }>(
  '/api/v1/check-ins',
  {
    schema: {
      body: {
        type: 'object',
        required: ['event_id', 'code'],
        additionalProperties: false,
        properties: { event_id: uuid, code: text, device: text },
      },
    },
  },
  async (request, reply) => {
    const { event_id, code, device } = request.body
    const outcome = await call(
      await principalOf(request, 'checkin:write'),
      'scope_checkin_write',
      'check-in',
      'select api.check_in(event_id => $1, code => $2, device => $3) as answer',
      [event_id, code, device],
    )
    return reply.status(outcome.status).send(outcome.error ? { error: outcome.error } : { data: outcome.data })
  },
)

app.get('/api/v1/me', async (request) => ({
  data: await call(await principalOf(request, null), 'api_key', 'me', 'select api.get_api_key() as answer', []),
}))

app.get('/api/v1/events', async (request) =>
  call(
    await principalOf(request, 'events:read'),
    'scope_events_read',
    'events',
    'select api.list_events() as answer',
    [],
  ),
)

console.log(await app.listen({ port: 0, host: '127.0.0.1' }))
// Ends with the benchmark, however that ends.
process.stdin.on('close', () => process.exit(0)).resume()
