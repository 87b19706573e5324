// What a scenario is run against: Usher over REST or MCP, and the baselines. Each makes a request of its own from the same call, so that a
// scenario declares only the operation and its arguments.

import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { restRequestOf } from '../scripts/support/rest-request.ts'
import { createTokens } from '../src/gateway/tokens.ts'
import { operations } from '../src/operations/index.ts'
import { type Operation, roleOf } from '../src/operations/operation.ts'
import { driveDatabase } from './database.ts'
import type { HttpRequest, load } from './load.ts'
import type { Organiser, Stack } from './stack.ts'

export type Call = { operation: string; args: Record<string, unknown> }

export type Subject = {
  url: string
  /** Process that answers HTTP in Node. */
  node?: number
  /** Makes requests with the key of an organisation; to be called before each run, because tokens expire. */
  open(organiser: Organiser): Promise<(call: Call) => HttpRequest>
  /** What makes the load, if not HTTP. */
  drive?: typeof load
  close?(): Promise<void>
}

const all = {
  usher: async ({ url, pids }: Stack): Promise<Subject> => ({
    url,
    node: pids.node,
    open:
      async ({ key }) =>
      (call) =>
        restRequest(key, call),
  }),

  mcp: async ({ url, pids }: Stack): Promise<Subject> => ({
    url,
    node: pids.node,
    open: async ({ key }) => {
      const headers = {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2025-06-18',
      }
      return ({ operation, args }) => {
        const params = operation === 'tools/list' ? {} : { name: operation, arguments: args }
        const method = operation === 'tools/list' ? operation : 'tools/call'
        const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
        return { method: 'POST', path: '/api/mcp', headers, body }
      }
    },
  }),

  /** PostgREST called directly with a ready token: what a client of Supabase does. */
  postgrest: async ({ dataApiUrl, jwtSecret }: Stack): Promise<Subject> => ({
    url: dataApiUrl,
    open: async ({ holder }) => {
      const tokens = await createTokens({ secret: jwtSecret })
      const headers = new Map<string, Record<string, string>>()
      for (const operation of operations) {
        const token = await tokens.forPrincipal(holder, roleOf(operation), 'api')
        headers.set(operation.name, {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'content-profile': 'api',
        })
      }
      return ({ operation, args }) => ({
        method: 'POST',
        path: `/rpc/${operation}`,
        headers: headers.get(operation) as Record<string, string>,
        body: JSON.stringify(withFingerprint(args)),
      })
    },
  }),

  /** The same function in the same transaction, without HTTP: the limit of the database. */
  database: async ({ databaseUrl }: Stack): Promise<Subject> => ({
    url: databaseUrl,
    open:
      async ({ holder }) =>
      ({ operation, args }) => ({
        method: 'POST',
        path: operation,
        headers: {
          ...holder,
          role: roleOf(operations.find(({ name }) => name === operation) as Operation),
          source: 'api',
        },
        body: JSON.stringify(withFingerprint(args)),
      }),
    drive: driveDatabase,
  }),

  /** A backend whose Data API is 20 ms away, as on a hosted project. */
  hosted: async ({ dataApiUrl, jwtSecret }: Stack): Promise<Subject> => {
    const dataApi = spawn(process.execPath, [join(import.meta.dirname, 'far-data-api.ts'), dataApiUrl, '20'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const [supabaseUrl] = await once(dataApi.stdout, 'data')
    const usher = spawn(process.execPath, ['bin/usher.js', 'start'], {
      cwd: join(import.meta.dirname, '..'),
      env: {
        ...process.env,
        PORT: '0',
        LOG_FORMAT: 'json',
        DELIVERIES: 'false',
        SUPABASE_URL: String(supabaseUrl).trim(),
        SUPABASE_PUBLISHABLE_KEY: 'sb_publishable_bench',
        SUPABASE_JWT_SECRET: jwtSecret,
      },
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    const ended = once(usher, 'exit')
    let printed = ''
    for await (const chunk of usher.stdout) {
      printed += chunk
      if (/ready at http:\S+/.test(printed)) break
    }
    return {
      url: /ready at (http:\S+)/.exec(printed)?.[1] ?? '',
      ...(usher.pid !== undefined && { node: usher.pid }),
      open:
        async ({ key }) =>
        (call) =>
          restRequest(key, call),
      async close() {
        usher.kill('SIGTERM')
        await ended
        dataApi.stdin.end()
      },
    }
  },

  fastify: async ({ databaseUrl }: Stack): Promise<Subject> => {
    const server = spawn(process.execPath, [join(import.meta.dirname, 'fastify-server.ts')], {
      env: { ...process.env, DATABASE_URL: databaseUrl, NODE_ENV: 'production' },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const ended = once(server, 'exit')
    const [line] = await once(server.stdout, 'data')
    return {
      url: String(line).trim(),
      ...(server.pid !== undefined && { node: server.pid }),
      open:
        async ({ key }) =>
        (call) =>
          restRequest(key, call),
      async close() {
        server.stdin.end()
        await ended
      },
    }
  },
} satisfies Record<string, (stack: Stack) => Promise<Subject>>

/** Those of another checkout, with `--base`. */
const ofBase = { 'usher-before': all.usher, 'postgrest-before': all.postgrest }
export const subjects = { ...all, ...ofBase }

export type SubjectName = keyof typeof subjects
export const isOfBase = (name: SubjectName): boolean => name in ofBase

function restRequest(key: string, { operation, args }: Call): HttpRequest {
  const { method, path, body, headers } = restRequestOf(operation, args)
  return {
    method: method as HttpRequest['method'],
    path: `/api/v1${path}`,
    headers: {
      authorization: `Bearer ${key}`,
      ...(body && { 'content-type': 'application/json' }),
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
    },
    ...(body && { body: JSON.stringify(body) }),
  }
}

/** The gateway sends a fingerprint of the request with each idempotency key. */
function withFingerprint(args: Call['args']): Call['args'] {
  if (args.idempotency_key === undefined) return args
  return { ...args, request_fingerprint: createHash('sha256').update(JSON.stringify(args)).digest('hex') }
}

/** Without ticket e-mail, so that the courier does not work on one subject's e-mails in the turn of the next. */
export const registration = ({ eventId, ticketTypeIds }: Organiser, nth: number, more: Call['args'] = {}): Call => ({
  operation: 'register_attendee',
  args: {
    event_id: eventId,
    ticket_type_id: ticketTypeIds[nth % ticketTypeIds.length],
    name: `Guest ${nth}`,
    email: `guest-${nth}@example.com`,
    send_email: false,
    ...more,
  },
})
