// An Usher with its demo, and a browser, for as long as pictures are taken of it.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { readConfig } from '../../src/cli/config.ts'
import { start } from '../../src/cli/start.ts'
import type { Demo } from '../../src/local/demo.ts'
import { createLog } from '../../src/process/log.ts'
import { openBrowser } from './browser.ts'

export const pictures = join(import.meta.dirname, '../../docs/guides/pictures')

// The demo's event is weeks away, which the door would say everywhere.
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()
export const today = { starts_at: inHours(0), ends_at: inHours(8) }

export type Shown = Demo & {
  url: string
  dataDir: string
  browser: Browser
  call: Call
  /** Calls the API, as in `send('POST', '/check-ins', { … })`. */
  send: Call
}
// biome-ignore lint/suspicious/noExplicitAny: answers whose shapes the tests hold.
type Call = (method: string, path: string, body: object) => Promise<any>

export async function withDemo(take: (shown: Shown) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'usher-picture-'))
  const usher = await start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('error'), () => {})
  const browser = await openBrowser()
  try {
    const { url, demo } = usher
    if (demo === null) throw new Error('a first start has a demo')
    const headers = { Authorization: `Bearer ${demo.key}`, 'Content-Type': 'application/json' }
    const call: Call = async (method, path, body) => {
      const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) })
      if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`)
      return response.json()
    }
    const send: Call = async (method, path, body) => (await call(method, `/api/v1${path}`, body)).data
    await take({ ...demo, url, dataDir, browser, call, send })
  } finally {
    await browser.close()
    await usher.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
