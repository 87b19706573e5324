// Probes the database with one cheap call: resolving a key that cannot exist must be refused by `api.resolve_api_key`, in the role
// `gateway`. Any other answer shows which setting is wrong. A process without tokens of that role polls the queues.

import { refusedToken } from './database-error.ts'
import type { Tokens } from './tokens.ts'

/** `url` is the base URL of PostgREST, on Supabase with `/rest/v1`; its gateway requires `projectKey`, a publishable (or anon) key. */
export type DataApiAddress = { url: string; projectKey?: string | undefined }

/** What the probe can find wrong, in the order in which a request meets them. */
export const probed = ['data_api', 'project_key', 'clock', 'token', 'schemas', 'migrations'] as const

export type ProbeResult =
  /** `date`: when, by the clock of the other side, if it says so. */
  | { kind: 'answered'; date?: Date }
  /** May answer later. */
  | { kind: 'away'; reason: string }
  /** Will not answer until a setting is changed: what is wrong, and what mends it, a sentence each. */
  | { kind: 'misconfigured'; check: (typeof probed)[number]; message: string; fix: string }

/** Never rejects. */
export type Probe = (signal: AbortSignal) => Promise<ProbeResult>

/** An answer of the Data API; `code` and `message` are those of PostgREST's errors, or empty. */
export type DataApiAnswer = {
  status: number
  /** Undefined: it is no JSON. */
  body: unknown
  code: string
  message: string
  details: string
  date: string | null
}

export const applyMigrations = 'Apply the migrations: npx supabase db push --remote'

// The length of a SHA-256, but the hash of no known text.
const impossibleHash = '0'.repeat(64)

export function createProbe(address: DataApiAddress, tokens: Pick<Tokens, 'forGateway' | 'inPlaceOf'>): Probe {
  const isRefusal = ({ code, details }: DataApiAnswer) => code === 'PT401' && details.includes('invalid_api_key')
  const args = { key_hash: impossibleHash }
  return async (signal) => probe(address, tokens, tokens.forGateway(), 'resolve_api_key', args, isRefusal, signal)
}

export function createCourierProbe(address: DataApiAddress, tokens: Pick<Tokens, 'forCourier' | 'inPlaceOf'>): Probe {
  const isSuccess = ({ status }: DataApiAnswer) => status === 200
  return async (signal) => probe(address, tokens, tokens.forCourier(), 'poll_queues', {}, isSuccess, signal)
}

async function probe(
  address: DataApiAddress,
  { inPlaceOf }: Pick<Tokens, 'inPlaceOf'>,
  signing: Promise<string>,
  fn: string,
  args: Record<string, unknown>,
  isExpected: (answer: DataApiAnswer) => boolean,
  signal: AbortSignal,
): Promise<ProbeResult> {
  try {
    const token = await signing
    let answer = await callOnce(address, fn, args, token, signal)
    if (refusedToken(answer)) answer = await callOnce(address, fn, args, await inPlaceOf(token), signal)
    if (!isExpected(answer)) return failureOf(answer)
    return { kind: 'answered', ...(answer.date !== null && { date: new Date(answer.date) }) }
  } catch (error) {
    return { kind: 'away', reason: reasonOf(error) }
  }
}

/** One RPC with nothing in between that retries or translates. */
export async function callOnce(
  { url, projectKey }: DataApiAddress,
  fn: string,
  args: Record<string, unknown>,
  token: string,
  signal: AbortSignal,
): Promise<DataApiAnswer> {
  const response = await fetch(`${url}/rpc/${fn}`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'Content-Profile': 'api',
      Authorization: `Bearer ${token}`,
      ...(projectKey !== undefined && { apikey: projectKey }),
    },
    body: JSON.stringify(args),
    redirect: 'manual',
    signal,
  })
  const body = parsed(await response.text())
  const { code, message, details } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  const text = (value: unknown) => (value === undefined || value === null ? '' : String(value))
  return {
    status: response.status,
    body,
    code: text(code),
    message: text(message),
    details: text(details),
    date: response.headers.get('date'),
  }
}

/** Codes: https://docs.postgrest.org/en/stable/references/errors.html */
function failureOf({ status, body, code, message }: DataApiAnswer): ProbeResult {
  const isJson = body !== undefined
  const said = `it answers ${status}${code === '' ? '' : ` ${code}`}`
  // PostgREST answers 400 without a code when its connection to Postgres breaks during a request.
  if (status >= 500 || status === 429 || (status === 400 && isJson && code === '')) {
    return { kind: 'away', reason: said }
  }
  const wrong = (check: (typeof probed)[number], message: string, fix: string): ProbeResult => ({
    kind: 'misconfigured',
    check,
    message,
    fix,
  })
  // PostgREST 12 says JWTIssuedAtFuture, later ones "JWT issued at future".
  if (refusedToken({ code }) && /expired|not ?yet ?valid|issued ?at ?future/i.test(message)) {
    return wrong('clock', 'The project refuses tokens because of their time.', 'Correct the clock of this machine.')
  }
  if (code === 'PGRST302' || code === 'PGRST301' || code === 'PGRST300') {
    return wrong(
      'token',
      'The project refuses the tokens that Usher signs.',
      'Set SUPABASE_SIGNING_KEY to a private signing key that was imported into the project, or SUPABASE_JWT_SECRET to its JWT secret.',
    )
  }
  if (code === 'PGRST106') {
    return wrong(
      'schemas',
      'The project does not expose the schema api.',
      'Run `npx supabase config push`, or add api to the exposed schemas in its Data API settings.',
    )
  }
  // No such function, schema or role, or no privilege on it: the migrations create all of them.
  if (['PGRST202', '3F000', '42883', '42501', '22023'].includes(code)) {
    return wrong('migrations', 'The database lacks objects that Usher needs.', applyMigrations)
  }
  if (isJson && code === '' && (status === 401 || status === 403)) {
    return wrong(
      'project_key',
      'The project refuses its key.',
      'Set SUPABASE_PUBLISHABLE_KEY to the publishable (or anon) key of the project that SUPABASE_URL names.',
    )
  }
  return wrong(
    'data_api',
    `SUPABASE_URL does not lead to the Data API of a Supabase project: ${said}.`,
    'Set SUPABASE_URL to the address of the project, such as https://PROJECT.supabase.co.',
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Why a request failed. Never contains the URL, which may hold credentials. */
export function reasonOf(error: unknown): string {
  const { name, message, cause } = error as {
    name?: string
    message?: string
    cause?: { code?: string; message?: string }
  }
  if (name === 'TimeoutError' || name === 'AbortError') return 'it did not answer in time'
  return cause?.code ?? cause?.message ?? message ?? 'it cannot be reached'
}
