// Signing in from the official client, with nothing but the address, in a browser.

import { createServer as createSecureServer } from 'node:https'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { hasBrowser } from '../../../scripts/support/browser.ts'
import { listenOnLoopback } from '../../../scripts/support/listen.ts'
import { prefixOf } from '../../../src/gateway/api-key.ts'
import { createDocumentFetcher } from '../../../src/process/outbound/fetch-document.ts'
import { row, studio } from '../../support/database.ts'
import { headerAddingProxy } from '../../support/header-adding-proxy.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { ownApp } from '../../support/own-app.ts'
import { vouchedFor } from '../../support/self-signed.ts'
import { edit } from '../../support/studio.ts'
import { allow, connectBySigningIn, Host, listenForReturn, openPerson, paste, take } from './client.ts'

const connectUrl = (apiUrl: string) => `${apiUrl}/api/mcp/connect`
const certificate = vouchedFor()

beforeAll(() => {
  if (certificate) setDefaultCACertificates([...getCACertificates('default'), certificate.authority])
})

/** Serves what a client says of itself. @returns its URL, which is the id of the client. */
async function serveMetadata(): Promise<string> {
  if (certificate === undefined) throw new Error('no certificate')
  const server = createSecureServer(certificate, (_req, res) => {
    const document = {
      client_id: id,
      client_name: 'Described Assistant',
      redirect_uris: ['http://127.0.0.1/callback'],
      grant_types: ['authorization_code', 'refresh_token'],
      token_endpoint_auth_method: 'none',
    }
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify(document))
  })
  const { url, close } = await listenOnLoopback(server)
  onTestFinished(close)
  const id = `https://localhost:${new URL(url).port}/client.json`
  return id
}

const grantsOf = async (organisationId: string) =>
  (
    await studio.query(
      `select id, name, prefix, scopes::text[] as scopes, parent_id, revoked_at, expires_at > now() + interval '29 days' as is_long
       from public.api_keys where organisation_id = $1 and kind = 'grant'`,
      [organisationId],
    )
  ).rows

const reading = ['events:read', 'orders:read', 'attendees:read']
const draft = { name: 'Summer party', starts_at: '2030-06-01T18:00:00+02:00', timezone: 'Europe/Berlin' }

test.skipIf(!hasBrowser || !certificate)(
  'a client that is described at its address signs in, calls, asks for more, renews its tokens, and is refused once revoked',
  async () => {
    const organisation = await createOrganisation()
    const key = await organisation.personKey('events:read', 'events:write', 'orders:read', 'attendees:read')
    const { url } = await ownApp({
      oauth: { fetchDocument: createDocumentFetcher({ allowLoopback: true }) },
    })
    const person = await openPerson()
    const host = new Host((await listenForReturn()).url, 'Registered Assistant', await serveMetadata())

    const client = await connectBySigningIn(connectUrl(url), host, (to) => allow(person, to, { key }))
    expect(host.registered?.client_id).toMatch(/^https:\/\/localhost/)
    expect(host.held?.scope?.split(' ')).toEqual(reading)
    const tools = await client.tools()
    expect([tools.includes('list_events'), tools.includes('create_event')]).toEqual([true, false])
    expect(await client.call('list_events')).toMatchObject({ structuredContent: { data: [] } })
    const [grant] = await grantsOf(organisation.id)
    const parent = await row<{ id: string }>('select id from public.api_keys where prefix = $1', [prefixOf(key)])
    expect(grant).toMatchObject({
      name: 'Described Assistant',
      scopes: reading,
      parent_id: parent.id,
      is_long: true,
    })

    // A scope more.
    await expect(client.call('create_event', draft)).rejects.toThrow(/403|Unauthorized/)
    const { page } = person
    await page.goto(take(host).href)
    const boxes = page.getByRole('checkbox')
    expect(
      await boxes.evaluateAll((all) => all.map((box) => [box.getAttribute('value'), box.hasAttribute('checked')])),
    ).toEqual([['events:write', false]])
    await boxes.check()
    await page.getByRole('button', { name: 'Allow' }).click()
    await client.finish(new URL(page.url()))
    expect(await client.call('create_event', draft)).toMatchObject({ structuredContent: { data: { status: 'draft' } } })
    expect(await grantsOf(organisation.id)).toMatchObject([
      { id: grant.id, scopes: ['events:read', 'orders:read', 'attendees:read', 'events:write'] },
    ])

    const { refresh_token } = host.held ?? {}
    host.held = { ...host.held, access_token: 'x'.repeat(43) }
    // Each of them renews by itself.
    for (const answer of await Promise.all([client.call('list_events'), client.call('list_events')]))
      expect(answer).toMatchObject({ structuredContent: { has_more: false } })
    expect([host.held.access_token.length, host.held.refresh_token === refresh_token]).toEqual([43, false])

    await edit('api_keys', grant.id, 'revoked_at = now()')
    expect(JSON.stringify(await client.call('list_events'))).toContain('api_key_revoked')
    await expect(client.call('list_events')).rejects.toThrow()
    expect(take(host).pathname).toBe('/oauth/auth')
  },
)

test.skipIf(!hasBrowser)('two processes share each step of a sign-in', async () => {
  const processes: string[] = []
  let count = 0
  // One request after the other.
  const { url, close } = await headerAddingProxy(() => processes[count++ % 2] as string, {})
  onTestFinished(close)
  for (const _ of [1, 2]) processes.push((await ownApp({ publicUrl: url })).url)
  const organisation = await createOrganisation()
  const key = await organisation.personKey()
  const person = await openPerson()
  const host = new Host((await listenForReturn()).url, 'Assistant')
  const client = await connectBySigningIn(connectUrl(url), host, (to) => allow(person, to, { key }))
  for (const _ of [1, 2, 3, 4]) {
    expect(await client.call('list_events')).toMatchObject({ structuredContent: { has_more: false } })
  }
})

test.skipIf(!hasBrowser)(
  'a browser stays signed in until its key ends, and then nothing that was allowed is left',
  async () => {
    const organisation = await createOrganisation()
    const key = await organisation.personKey()
    const person = await openPerson()
    const sign = async (name: string, also: { key?: string }) => {
      const host = new Host((await listenForReturn()).url, name)
      return connectBySigningIn(connectUrl(inject('apiUrl')), host, (to) => allow(person, to, also))
    }
    const first = await sign('First', { key })
    await sign('Second', {})

    const { page } = person
    await page.goto(`${inject('apiUrl')}/oauth/grants`)
    expect(await page.getByRole('heading', { level: 2 }).allInnerTexts()).toEqual(['Second', 'First'])
    await page.getByRole('button', { name: 'First' }).click()
    expect(await page.getByRole('heading', { level: 2 }).allInnerTexts()).toEqual(['Second'])
    expect(JSON.stringify(await first.call('list_events'))).toContain('api_key_revoked')

    await studio.query('update public.api_keys set revoked_at = now() where prefix = $1', [prefixOf(key)])
    expect((await grantsOf(organisation.id)).every(({ revoked_at }) => revoked_at !== null)).toBe(true)
    await page.reload()
    await paste(page, key)
    expect(await page.getByRole('alert').textContent()).toContain('not valid')
  },
)
