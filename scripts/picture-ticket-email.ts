// Takes the picture of a ticket e-mail for the documentation: `npm run picture`. Registers a guest with an Usher of its own and
// takes a screenshot of the e-mail, as wide as a telephone.

import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readConfig } from '../src/config.ts'
import { createLog } from '../src/process/log.ts'
import { start } from '../src/start.ts'
import { openBrowser } from './support/browser.ts'

const dataDir = await mkdtemp(join(tmpdir(), 'usher-picture-'))
const usher = await start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('error'), () => {})
const browser = await openBrowser()
try {
  if (usher.demo === null) throw new Error('a first start has a demo')
  const { key, eventId, ticketTypeId } = usher.demo
  const guest = { ticket_type_id: ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com', company: 'NASA' }
  const registered = await fetch(`${usher.url}/api/v1/events/${eventId}/registrations`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify(guest),
  })
  if (!registered.ok) throw new Error(`The registration was answered ${registered.status}.`)

  const page = await browser.newPage({ viewport: { width: 420, height: 700 } })
  const emails = async () => (await readdir(join(dataDir, 'mail')).catch(() => [])).sort()
  // The demo's guests have theirs first.
  const ofMary = async () => {
    for (const name of await emails()) {
      await page.goto(`${usher.url}/mail/${name}`)
      if (await page.getByText(guest.name).first().isVisible()) return true
    }
    return false
  }
  while (!(await ofMary())) await sleep(200)
  await page.screenshot({ path: join(import.meta.dirname, '../docs/ticket-email.png'), fullPage: true })
} finally {
  await browser.close()
  await usher.stop()
  await rm(dataDir, { recursive: true, force: true })
}
