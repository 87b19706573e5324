// One request over an interface, as bytes: status, headers and body, and what is left of them that may differ between two requests for
// things that are not there.

import { Agent, request } from 'undici'
import { restRequestOf } from '../../../scripts/support/rest-request.ts'
import type { Operation } from '../../../src/operations/operation.ts'
import { elsewhere } from '../../http/oauth/walk.ts'
import type { Interface } from './credentials.ts'

export type Answer = { status: number; headers: Record<string, string>; text: string }
export type Arguments = Record<string, unknown>

const dispatcher = new Agent({ connections: 4 })

type Sent = { method: string; path: string; body?: unknown; headers?: Record<string, string> }

/** From an address of its own, where the API trusts the header: limits by address are tested elsewhere. */
export async function send(
  apiUrl: string,
  key: string | undefined,
  { method, path, body, headers = {} }: Sent,
): Promise<Answer> {
  const response = await request(apiUrl + path, {
    dispatcher,
    method: method as 'GET',
    headers: {
      ...(key !== undefined && { Authorization: `Bearer ${key}` }),
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...elsewhere(),
      ...headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const isText = /json|text|svg/.test(String(response.headers['content-type'] ?? 'text'))
  const text = isText ? await response.body.text() : Buffer.from(await response.body.arrayBuffer()).toString('base64')
  const lines = Object.entries(response.headers).map(([name, value]): [string, string] => [name, String(value)])
  return { status: response.statusCode, headers: Object.fromEntries(lines), text }
}

/** Where an operation can be called. */
export function interfacesOf({ pictures, csv, mcp }: Operation): Interface[] {
  return [
    'rest',
    ...(Object.keys(pictures ?? {}) as Interface[]),
    ...(csv === undefined ? [] : (['csv'] as const)),
    ...(mcp === false ? [] : (['mcp', 'connect'] as const)),
  ]
}

/** The operation over an interface. Over MCP the status of a refusal is that of its result: 200. */
export function ask(
  through: Interface,
  apiUrl: string,
  key: string | undefined,
  name: string,
  args: Arguments,
  headers: Record<string, string> = {},
): Promise<Answer> {
  if (through !== 'mcp' && through !== 'connect') {
    const { path, ...rest } = restRequestOf(name, args)
    const own = { ...rest.headers, ...headers }
    if (through === 'rest') return send(apiUrl, key, { ...rest, path: `/api/v1${path}`, headers: own })
    const query = new URLSearchParams(
      Object.entries(rest.body ?? {}).map(([field, value]): [string, string] => [field, String(value)]),
    )
    const file = through === 'csv' ? `${path}?${query}` : `${path}.${through}`
    return send(apiUrl, key, { method: 'GET', path: `/api/v1${file}`, headers })
  }
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }
  return send(apiUrl, key, { method: 'POST', path: through === 'mcp' ? '/api/mcp' : '/api/mcp/connect', body, headers })
}

export type Refusal = { code: string; param?: string; status: number }

/** What refused it: over MCP, that of the result. */
export function refusalOf({ status, text }: Answer): Refusal | undefined {
  const body = parsed(text) as
    | { error?: Refusal; result?: { isError?: boolean; content: { text: string }[] } }
    | undefined
  if (body?.error?.code !== undefined) return { ...body.error, status }
  const { isError, content } = body?.result ?? {}
  return isError ? { ...(JSON.parse(content?.[0]?.text ?? '{}') as { error: Refusal }).error, status } : undefined
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

// What differs between any two requests: when they were sent, how many went before, and what each is called.
const varying = ['date', 'x-request-id', 'ratelimit', 'ratelimit-policy', 'content-length', 'etag', 'keep-alive']

/** What is left of an answer once what was sent, and everything that is made anew for each object, is taken out. */
export function comparable({ status, headers, text }: Answer, sent: string): string {
  const kept = Object.entries(headers).filter(([name]) => !varying.includes(name))
  const inText = JSON.stringify(JSON.stringify(sent).slice(1, -1)).slice(1, -1)
  const body = [sent, JSON.stringify(sent).slice(1, -1), inText]
    .flatMap((form) => [form, form.toUpperCase(), form.toLowerCase()])
    .reduce((left, form) => left.replaceAll(form, '<sent>'), text)
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi, '<id>')
    .replace(/\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)/g, '<time>')
    // In words, over MCP: an event of its own for each call may begin a minute later.
    .replace(/\b[A-Z][a-z]{2} \d{1,2} [A-Z][a-z]{2} \d{4}\b/g, '<day>')
    .replace(/\b\d\d:\d\d\b/g, '<clock>')
    .replace(/(whsec_)[A-Za-z0-9+/=]+|\b[0-9a-f]{32,64}\b|\b[0-9A-HJKMNP-TV-Z]{16}\b/g, '<secret>')
    .replace(/(plan_id\\*":\\*")[0-9a-z]{10}|\b[0-9A-HJKMNP-TV-Z]{8}\b/g, '$1<reference>')
  return `${status}\n${kept
    .map(([name, value]) => `${name}: ${value}`)
    .toSorted()
    .join('\n')}\n\n${body}`
}
