// A sign-in step by step without a browser, so that a test can do each step wrongly.

import { createHash, randomBytes, randomInt } from 'node:crypto'
import { scopes } from '../../../src/operations/operation.ts'

export const callback = 'http://127.0.0.1:1717/callback'

/** Somebody somewhere: limits by address are for a test of their own. */
export const elsewhere = () => ({
  'X-Forwarded-For': [11, ...Array.from({ length: 3 }, () => randomInt(256))].join('.'),
})

/** What a browser keeps, and how it asks: redirects are not followed. */
export class Jar {
  readonly apiUrl: string
  readonly cookies = new Map<string, string>()
  readonly address = elsewhere()
  constructor(apiUrl: string) {
    this.apiUrl = apiUrl
  }

  async ask(
    to: string | URL,
    {
      form,
      headers = {},
    }: { form?: Record<string, string | string[]> | undefined; headers?: Record<string, string> } = {},
  ) {
    const response = await fetch(new URL(to, this.apiUrl), {
      redirect: 'manual',
      headers: {
        Accept: 'text/html',
        ...this.address,
        Cookie: [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; '),
        ...headers,
      },
      ...(form && {
        method: 'POST',
        body: new URLSearchParams(
          Object.entries(form).flatMap(([name, values]) =>
            [values].flat().map((value): [string, string] => [name, value]),
          ),
        ),
      }),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      if (value === '') this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return {
      status: response.status,
      location: response.headers.get('location') ?? '',
      headers: response.headers,
      text: await response.text(),
    }
  }
}

export type Answered = Awaited<ReturnType<Jar['ask']>>

export const formTokenOf = ({ text }: { text: string }): string =>
  /name="form_token" value="([^"]+)"/.exec(text)?.[1] ?? ''

export async function register(apiUrl: string, metadata: Record<string, unknown> = {}, address = elsewhere()) {
  const response = await fetch(`${apiUrl}/oauth/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...address },
    body: JSON.stringify({ client_name: 'Walker', redirect_uris: [callback], ...metadata }),
  })
  return { status: response.status, body: (await response.json()) as Record<string, string> }
}

export const pkce = () => {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}

type Request = Record<string, string | undefined>

const pairsOf = (members: Request) =>
  Object.entries(members).flatMap(([name, value]): [string, string][] => (value === undefined ? [] : [[name, value]]))

export const requestUrl = (clientId: string, challenge: string, more: Request = {}): string => {
  const members: Request = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: callback,
    scope: scopes.join(' '),
    state: 'the-state',
    code_challenge: challenge,
    code_challenge_method: 'S256',
    ...more,
  }
  return `/oauth/auth?${new URLSearchParams(pairsOf(members))}`
}

export type Walk = { jar: Jar; clientId: string; verifier: string; at: string; page: Answered }

/** To the page where the person decides. */
export async function walkToConsent(
  key: string,
  { jar, clientId, ...more }: { jar: Jar; clientId?: string; scope?: string },
): Promise<Walk> {
  const id = clientId ?? ((await register(jar.apiUrl)).body.client_id as string)
  const { verifier, challenge } = pkce()
  const { location } = await jar.ask(requestUrl(id, challenge, more))
  const login = await jar.ask(location)
  if (login.text.includes('name="key"'))
    await jar.ask(location, { form: { action: 'sign_in', key, form_token: formTokenOf(login) } })
  return { jar, clientId: id, verifier, at: location, page: await jar.ask(location) }
}

/** @returns what the client is returned to with. */
export async function decide({ jar, at, page }: Walk, form: Record<string, string | string[]> = {}): Promise<URL> {
  const decided = await jar.ask(at, {
    form: { action: 'allow', scope: ['events:read'], form_token: formTokenOf(page), ...form },
  })
  if (decided.status !== 303) throw new Error(decided.text)
  return new URL((await jar.ask(decided.location)).location)
}

async function exchange(apiUrl: string, form: Record<string, string | undefined>) {
  const body = new URLSearchParams(pairsOf(form))
  const response = await fetch(`${apiUrl}/oauth/token`, { method: 'POST', headers: elsewhere(), body })
  return { status: response.status, body: (await response.json()) as Record<string, string> }
}

export const codeGrant = (walk: Walk, answer: URL, more: Record<string, string | undefined> = {}) =>
  exchange(walk.jar.apiUrl, {
    grant_type: 'authorization_code',
    code: answer.searchParams.get('code') ?? '',
    client_id: walk.clientId,
    redirect_uri: callback,
    code_verifier: walk.verifier,
    ...more,
  })

export const refreshGrant = (walk: Walk, refreshToken: string) =>
  exchange(walk.jar.apiUrl, { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: walk.clientId })

/** From the request to the tokens. */
export async function signIn(apiUrl: string, key: string, form: Record<string, string | string[]> = {}) {
  const walk = await walkToConsent(key, { jar: new Jar(apiUrl) })
  const answer = await decide(walk, form)
  const { body } = await codeGrant(walk, answer)
  return { walk, answer, ...(body as { access_token: string; refresh_token: string }) }
}

/** The status of a call with a token, and what is said of it. */
export async function callWith(
  token: string | undefined,
  apiUrl: string,
  path = '/api/mcp/connect',
  tool = 'list_events',
  args: object = {},
) {
  const response = await fetch(apiUrl + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(token !== undefined && { Authorization: `Bearer ${token}` }) },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: tool, arguments: args } }),
  })
  const left = /r=(\d+)/.exec(response.headers.get('ratelimit') ?? '')?.[1]
  const challenge = response.headers.get('www-authenticate')
  return { status: response.status, challenge, left: Number(left), text: await response.text() }
}
