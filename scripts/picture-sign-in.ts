// Takes the pictures of signing in and confirming for docs/guides/members.md, as wide as a telephone.

import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../src/cli/config.ts'
import { start } from '../src/cli/start.ts'
import type { Demo } from '../src/local/demo.ts'
import { createLog } from '../src/process/log.ts'
import { openBrowser } from './support/browser.ts'
import { listenOnLoopback } from './support/listen.ts'

const folder = join(import.meta.dirname, '../docs/guides/pictures/sign-in')
const dataDir = await mkdtemp(join(tmpdir(), 'usher-picture-'))
const client = await listenOnLoopback(createServer((_req, res) => res.end('Done.')))
const usher = await start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('error'), () => {})
try {
  if (usher.demo === null) throw new Error('a first start has a demo')
  const redirect_uri = `${client.url}/callback`
  const registered = await fetch(`${usher.url}/oauth/register`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ client_name: 'Assistant', redirect_uris: [redirect_uri] }),
  })
  const { client_id } = (await registered.json()) as { client_id: string }
  const members = { response_type: 'code', client_id, redirect_uri, code_challenge_method: 'S256' }
  const request = new URLSearchParams({ ...members, code_challenge: 'x'.repeat(43) })

  const browser = await openBrowser()
  const page = await browser.newPage({ viewport: { width: 390, height: 500 }, colorScheme: 'light' })
  const picture = (name: string) => page.screenshot({ path: join(folder, `${name}.png`), fullPage: true })
  await page.goto(`${usher.url}/oauth/auth?${request}`)
  await picture('login')
  await page.getByLabel('API key').fill(usher.demo.keyForPeople)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await picture('consent')
  await page.getByRole('button', { name: 'Allow' }).click()
  await page.goto(`${usher.url}/oauth/grants`)
  await picture('grants')
  await page.getByRole('button', { name: 'Revoke' }).click()
  await page.goto(await linkToConfirm(usher.url, usher.demo))
  await picture('confirm')
  await page.getByRole('button', { name: 'Cancel the event' }).click()
  await picture('confirmed')
  await browser.close()
} finally {
  await usher.stop()
  await client.close()
  await rm(dataDir, { recursive: true })
}

async function linkToConfirm(url: string, { key, eventId }: Demo): Promise<string> {
  const params = { name: 'cancel_event', arguments: { event: eventId, notify: 'everybody' } }
  const response = await fetch(`${url}/api/mcp`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${key}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  })
  const { result } = (await response.json()) as { result: { content: [{ text: string }] } }
  return JSON.parse(result.content[0].text).error.details.url
}
