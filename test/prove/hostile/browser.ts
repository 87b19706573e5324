// What a person and a client do before somebody means harm to them: call, register, sign in, open pages. From an address of their own.

import { createHash, randomBytes } from 'node:crypto'
import { Agent, request } from 'undici'

const redirectUri = 'http://127.0.0.1:1717/callback'

type Json = Record<string, unknown>
type Answer = { status: number; location: string; text: string; body: Json }

/** @param address of this machine. */
export function openBrowser(apiUrl: string, address: string) {
  const dispatcher = new Agent({ connect: { localAddress: address } })
  const cookies = new Map<string, string>()
  const cookie = () => [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')

  async function ask(method: string, to: string, headers: Record<string, string>, body?: string): Promise<Answer> {
    const answer = await request(new URL(to, apiUrl), {
      dispatcher,
      method: method as 'GET',
      headers: { cookie: cookie(), ...headers },
      ...(body !== undefined && { body }),
    })
    for (const line of [answer.headers['set-cookie'] ?? []].flat()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const text = await answer.body.text()
    const isJson = String(answer.headers['content-type']).includes('json')
    return {
      status: answer.statusCode,
      location: String(answer.headers.location ?? ''),
      text,
      body: isJson ? (JSON.parse(text) as Json) : {},
    }
  }

  const page = (path: string) => ask('GET', path, { accept: 'text/html' })
  const submit = (path: string, form: Record<string, string>) =>
    ask(
      'POST',
      path,
      { accept: 'text/html', 'content-type': 'application/x-www-form-urlencoded' },
      `${new URLSearchParams(form)}`,
    )
  const formTokenAt = async (path: string) =>
    /name="form_token" value="([^"]+)"/.exec((await page(path)).text)?.[1] ?? ''
  const withKey = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })

  return {
    cookie,
    formTokenAt,
    close: () => dispatcher.close(),
    call: (key: string, method: string, path: string, body?: unknown) =>
      ask(method, `/api/v1${path}`, withKey(key), body === undefined ? undefined : JSON.stringify(body)),

    /** @returns the path of the page that asks whether an event is to be cancelled. */
    async askToConfirm(key: string, event: string): Promise<string> {
      const params = { name: 'cancel_event', arguments: { event_id: event } }
      const { text } = await ask(
        'POST',
        '/api/mcp',
        withKey(key),
        JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
      )
      return /\/confirm\/[0-9a-f-]{36}/.exec(text)?.[0] ?? ''
    },

    async registerClient() {
      const metadata = { client_name: 'Hostile', redirect_uris: [redirectUri] }
      const json = { 'content-type': 'application/json' }
      const { body } = await ask('POST', '/oauth/register', json, JSON.stringify(metadata))
      const query = new URLSearchParams({
        response_type: 'code',
        client_id: String(body.client_id),
        redirect_uri: redirectUri,
        scope: 'events:read',
        state: 'the-state',
        code_challenge: createHash('sha256').update(randomBytes(32).toString('base64url')).digest('base64url'),
        code_challenge_method: 'S256',
      })
      return { id: String(body.client_id), redirectUri, request: `/oauth/auth?${query}` }
    },

    /** @returns the path of the page on which the person decides about a client. */
    async signIn(key: string, authorization: string): Promise<string> {
      const { location } = await page(authorization)
      await submit(location, { action: 'sign_in', key, form_token: await formTokenAt(location) })
      return location
    },
  }
}
