// A client of MCP that knows nothing but an address, and the person in front of it: a browser that pastes a key and presses buttons.

import { createServer } from 'node:http'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { BrowserContext, Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { listenOnLoopback } from '../../../scripts/support/listen.ts'
import type { Scope } from '../../../src/operations/operation.ts'
import { sharedBrowser } from '../../support/browser.ts'

export type Tokens = { access_token: string; refresh_token?: string; scope?: string; expires_in?: number }

/** What a host keeps of a client between two starts. */
export class Host {
  readonly redirectUrl: string
  readonly clientMetadataUrl: string | undefined
  readonly name: string
  registered: { client_id: string } | undefined
  held: Tokens | undefined
  /** Where the client wants the person to go. */
  sentTo: URL | undefined
  #verifier = ''

  constructor(redirectUrl: string, name: string, clientMetadataUrl?: string) {
    this.redirectUrl = redirectUrl
    this.name = name
    this.clientMetadataUrl = clientMetadataUrl
  }
  get clientMetadata() {
    return {
      client_name: this.name,
      redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
    }
  }
  clientInformation = () => this.registered
  saveClientInformation = (information: { client_id: string }) => {
    this.registered = information
  }
  tokens = () => this.held as never
  saveTokens = (tokens: Tokens) => {
    this.held = tokens
  }
  redirectToAuthorization = (url: URL) => {
    this.sentTo = url
  }
  saveCodeVerifier = (verifier: string) => {
    this.#verifier = verifier
  }
  codeVerifier = () => this.#verifier
  invalidateCredentials = (scope: string) => {
    if (scope === 'all' || scope === 'tokens') this.held = undefined
    if (scope === 'all' || scope === 'client') this.registered = undefined
  }
}

export type Connected = {
  call(name: string, args?: Record<string, unknown>): Promise<unknown>
  tools(): Promise<string[]>
  /** Gives the client what the person was returned with. */
  finish(answer: URL): Promise<void>
}

/** Connects; where the client has to send the person somewhere, they go there. */
export async function connectBySigningIn(
  url: string,
  host: Host,
  goTo: (url: URL) => Promise<URL>,
): Promise<Connected> {
  const start = () => {
    const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode: 'auto' } })
    const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: host as never })
    return { client, transport }
  }
  const first = start()
  await first.client.connect(first.transport).catch((error) => {
    if (host.sentTo === undefined) throw error
  })
  await first.transport.finishAuth((await goTo(take(host))).searchParams)
  const { client, transport } = start()
  await client.connect(transport)
  onTestFinished(() => client.close())
  return {
    finish: ({ searchParams }) => transport.finishAuth(searchParams),
    call: (name, args = {}) => client.callTool({ name, arguments: args }),
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
  }
}

export function take(host: Host): URL {
  const { sentTo } = host
  if (sentTo === undefined) throw new Error('the client sent the person nowhere')
  host.sentTo = undefined
  return sentTo
}

/** Where a program on the desktop waits to be returned to. */
export async function listenForReturn(): Promise<{ url: string }> {
  const server = createServer((_req, res) => res.end('You may close this window.'))
  const { url, close } = await listenOnLoopback(server)
  onTestFinished(close)
  return { url: `${url}/callback` }
}

export type Person = { page: Page; context: BrowserContext }

/** A browser of its own, without scripts: the pages need none. */
export async function openPerson(
  options: Parameters<Awaited<ReturnType<typeof sharedBrowser>>['newContext']>[0] = {},
): Promise<Person> {
  const browser = await sharedBrowser()
  const context = await browser.newContext({
    javaScriptEnabled: false,
    viewport: { width: 390, height: 844 },
    locale: 'en-GB',
    ...options,
  })
  onTestFinished(() => context.close())
  return { context, page: await context.newPage() }
}

export async function paste(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
}

/** Follows the client's link, signs in where that is asked for, ticks what is named, and allows it. @returns where the person ends. */
export async function allow(
  { page }: Person,
  url: URL,
  { key, also = [] }: { key?: string; also?: Scope[] } = {},
): Promise<URL> {
  await page.goto(url.href)
  if (key !== undefined) await paste(page, key)
  for (const scope of also) await page.locator(`input[value="${scope}"]`).check()
  await page.getByRole('button', { name: 'Allow' }).click()
  return new URL(page.url())
}
