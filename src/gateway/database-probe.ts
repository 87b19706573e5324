// Probes the database with one cheap call: resolving a key that cannot exist must be refused by `api.resolve_api_key`, in the role
// `gateway`. Any other answer shows which setting is wrong.

import type { Tokens } from './tokens.ts'

/** See createDataApi. */
export type DataApiAddress = { url: string; projectKey?: string | undefined }

export type ProbeResult =
  | { kind: 'answered' }
  /** May answer later. */
  | { kind: 'away'; reason: string }
  /** Will not answer until a setting is changed. */
  | { kind: 'misconfigured'; message: string }

/** Never rejects. */
export type Probe = (signal: AbortSignal) => Promise<ProbeResult>

// The length of a SHA-256, but the hash of no known text.
const impossibleHash = '0'.repeat(64)

export function createProbe({ url, projectKey }: DataApiAddress, tokens: Tokens): Probe {
  return async (signal) => {
    try {
      const response = await fetch(`${url}/rpc/resolve_api_key`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          'Content-Profile': 'api',
          Authorization: `Bearer ${await tokens.forGateway()}`,
          ...(projectKey !== undefined && { apikey: projectKey }),
        },
        body: JSON.stringify({ key_hash: impossibleHash }),
        redirect: 'manual',
        signal,
      })
      return resultOf(response.status, bodyOf(await response.text()))
    } catch (error) {
      return { kind: 'away', reason: reasonOf(error) }
    }
  }
}

type Body = { code?: unknown; message?: unknown; details?: unknown }

function resultOf(status: number, body: Body | null): ProbeResult {
  const code = String(body?.code ?? '')
  const message = String(body?.message ?? '')
  if (code === 'PT401' && String(body?.details).includes('invalid_api_key')) return { kind: 'answered' }
  // PostgREST answers 400 without a code when its connection to Postgres breaks during a request.
  if (status >= 500 || status === 429 || (status === 400 && body !== null && code === '')) {
    return { kind: 'away', reason: `it answers ${status}${code === '' ? '' : ` ${code}`}` }
  }
  return { kind: 'misconfigured', message: complaint(status, code, message, body !== null) }
}

/** Codes: https://docs.postgrest.org/en/stable/references/errors.html */
function complaint(status: number, code: string, message: string, isJson: boolean): string {
  if (/^PGRST30[0-3]$/.test(code) && /expired|not yet valid|issued at future/i.test(message)) {
    return 'The project refuses tokens because of their time: correct the clock of this machine.'
  }
  if (code === 'PGRST302' || code === 'PGRST301' || code === 'PGRST300') {
    return (
      'The project refuses the tokens that Usher signs: SUPABASE_JWT_SECRET must be the JWT secret of the project, or ' +
      'SUPABASE_SIGNING_KEY a private signing key that was imported into it.'
    )
  }
  if (code === 'PGRST106') {
    return 'The project does not expose the schema api: add api to the exposed schemas in its Data API settings.'
  }
  // No such function, schema or role, or no privilege on it: the migrations create all of them.
  if (['PGRST202', '3F000', '42883', '42501', '22023'].includes(code)) {
    return 'The database lacks what Usher needs: apply the migrations with `npx supabase db push`.'
  }
  if (isJson && code === '' && (status === 401 || status === 403)) {
    return (
      'The project refuses its key: SUPABASE_PUBLISHABLE_KEY must be the publishable (or anon) key of the project that ' +
      'SUPABASE_URL names.'
    )
  }
  return `SUPABASE_URL does not lead to the Data API of a Supabase project: it answers ${status}${code === '' ? '' : ` ${code}`}.`
}

function bodyOf(text: string): Body | null {
  try {
    const body: unknown = JSON.parse(text)
    return typeof body === 'object' ? body : null
  } catch {
    return null
  }
}

/** Never contains the URL, which may hold credentials. */
function reasonOf(error: unknown): string {
  const { name, message, cause } = error as {
    name?: string
    message?: string
    cause?: { code?: string; message?: string }
  }
  if (name === 'TimeoutError' || name === 'AbortError') return 'it does not answer in time'
  return cause?.code ?? cause?.message ?? message ?? 'it cannot be reached'
}
