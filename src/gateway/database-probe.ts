// Probes the database with one cheap call: resolving a key that cannot exist must be refused by `api.resolve_api_key`, in the role
// `gateway`. Any other answer shows which setting is wrong. A process without tokens of that role polls the queues.

import { refusedToken } from './database-error.ts'
import type { Tokens } from './tokens.ts'

/** `url` is the base URL of PostgREST, on Supabase with `/rest/v1`; its gateway requires `projectKey`, a publishable (or anon) key. */
export type DataApiAddress = { url: string; projectKey?: string | undefined }

/** What the probe can find wrong, in the order in which a request meets them. */
export const probed = ['data_api', 'project_key', 'clock', 'token', 'schemas', 'migrations'] as const

/** A setting that is wrong, and what mends it: a sentence each. */
export type Complaint = { check: (typeof probed)[number]; message: string; fix: string }

export type ProbeResult =
  /** `date`: when, by the clock of the other side, if it says so. */
  | { kind: 'answered'; date?: Date }
  /** May answer later. */
  | { kind: 'away'; reason: string }
  /** Will not answer until a setting is changed. */
  | ({ kind: 'misconfigured' } & Complaint)

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
  const call = { fn: 'resolve_api_key', args: { key_hash: impossibleHash }, isExpected: isRefusal }
  return probeBy(call, address, tokens.forGateway, tokens.inPlaceOf)
}

export function createCourierProbe(address: DataApiAddress, tokens: Pick<Tokens, 'forCourier' | 'inPlaceOf'>): Probe {
  const call = { fn: 'poll_queues', args: {}, isExpected: ({ status }: DataApiAnswer) => status === 200 }
  return probeBy(call, address, tokens.forCourier, tokens.inPlaceOf)
}

type ProbeCall = { fn: string; args: Record<string, unknown>; isExpected: (answer: DataApiAnswer) => boolean }

function probeBy(
  { fn, args, isExpected }: ProbeCall,
  address: DataApiAddress,
  tokenFor: () => Promise<string>,
  inPlaceOf: Tokens['inPlaceOf'],
): Probe {
  return async (signal) => {
    try {
      const ask = (token: string) => callOnce(address, fn, args, token, signal)
      const token = await tokenFor()
      let answer = await ask(token)
      if (refusedToken(answer)) answer = await ask(await inPlaceOf(token))
      return isExpected(answer)
        ? { kind: 'answered', ...(answer.date !== null && { date: new Date(answer.date) }) }
        : failureOf(answer)
    } catch (error) {
      return { kind: 'away', reason: reasonOf(error) }
    }
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

function failureOf({ status, body, code, message }: DataApiAnswer): ProbeResult {
  // PostgREST answers 400 without a code when its connection to Postgres breaks during a request.
  if (status >= 500 || status === 429 || (status === 400 && body !== undefined && code === '')) {
    return { kind: 'away', reason: `it answers ${status}${code === '' ? '' : ` ${code}`}` }
  }
  return { kind: 'misconfigured', ...complaint(status, code, message, body !== undefined) }
}

/** Codes: https://docs.postgrest.org/en/stable/references/errors.html */
function complaint(status: number, code: string, message: string, isJson: boolean): Complaint {
  // PostgREST 12 says JWTIssuedAtFuture, later ones "JWT issued at future".
  if (refusedToken({ code }) && /expired|not ?yet ?valid|issued ?at ?future/i.test(message)) {
    return {
      check: 'clock',
      message: 'The project refuses tokens because of their time.',
      fix: 'Correct the clock of this machine.',
    }
  }
  if (code === 'PGRST302' || code === 'PGRST301' || code === 'PGRST300') {
    return {
      check: 'token',
      message: 'The project refuses the tokens that Usher signs.',
      fix: 'Set SUPABASE_SIGNING_KEY to a private signing key that was imported into the project, or SUPABASE_JWT_SECRET to its JWT secret.',
    }
  }
  if (code === 'PGRST106') {
    return {
      check: 'schemas',
      message: 'The project does not expose the schema api.',
      fix: 'Run `npx supabase config push`, or add api to the exposed schemas in its Data API settings.',
    }
  }
  // No such function, schema or role, or no privilege on it: the migrations create all of them.
  if (['PGRST202', '3F000', '42883', '42501', '22023'].includes(code)) {
    return { check: 'migrations', message: 'The database lacks what Usher needs.', fix: applyMigrations }
  }
  if (isJson && code === '' && (status === 401 || status === 403)) {
    return {
      check: 'project_key',
      message: 'The project refuses its key.',
      fix: 'Set SUPABASE_PUBLISHABLE_KEY to the publishable (or anon) key of the project that SUPABASE_URL names.',
    }
  }
  return {
    check: 'data_api',
    message: `SUPABASE_URL does not lead to the Data API of a Supabase project: it answers ${status}${code === '' ? '' : ` ${code}`}.`,
    fix: 'Set SUPABASE_URL to the address of the project, such as https://PROJECT.supabase.co.',
  }
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
  if (name === 'TimeoutError' || name === 'AbortError') return 'it does not answer in time'
  return cause?.code ?? cause?.message ?? message ?? 'it cannot be reached'
}
