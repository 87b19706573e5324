// The door page in a browser, as wide as a telephone, with a camera that films a ticket.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest'
import { hasBrowser, openBrowser } from '../../scripts/support/browser.ts'
import { filmTickets } from '../../scripts/support/ticket-film.ts'
import { row, studio } from '../support/database.ts'
import { createOrganisation, type TestEvent, type TestGuest, type TestOrganisation } from '../support/organisation.ts'
import { obstacles, outline, schemes } from './accessibility.ts'

let browser: Browser
let folder: string
let organisation: TestOrganisation
let event: TestEvent
let filmed: TestGuest
let key: string
beforeAll(async () => {
  if (!hasBrowser) return
  organisation = await createOrganisation()
  event = await organisation.event()
  filmed = await event.guest()
  key = await organisation.key('checkin:write')
  folder = await mkdtemp(join(tmpdir(), 'usher-door-'))
  browser = await openBrowser([...(await filmTickets(join(folder, 'ticket.y4m'), filmed.code))])
})
afterAll(async () => {
  vi.resetConfig()
  await browser?.close()
  if (folder !== undefined) await rm(folder, { recursive: true, force: true })
})

vi.setConfig({ testTimeout: 60_000 })

const link = (of = key, eventId = event.id) => `${inject('apiUrl')}/door#event=${eventId}&key=${of}`

/** A telephone of its own, with the camera allowed or not. */
async function telephone(permissions: string[] = []): Promise<{ context: BrowserContext; page: Page; complaints: string[] }> {
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, permissions, reducedMotion: 'reduce' })
  onTestFinished(() => context.close())
  const page = await context.newPage()
  page.setDefaultTimeout(10_000)
  if (process.env.DBG) { page.on('console', (m) => console.log(m.type(), m.text(), m.location().url)); page.on('pageerror', (e) => console.log(e.message)); page.on('response', async (r) => { if (r.status()>=400 || r.url().includes('/api/')) console.log(r.status(), r.url(), (await r.text().catch(()=>'')).slice(0,300)) }); onTestFinished(async()=>{ console.log(await page.locator('body').innerText().catch(()=>'')) }) }
  const complaints: string[] = []
  page.on('pageerror', ({ message }) => complaints.push(message))
  page.on('console', (message) => {
    if (message.type() === 'error' && !message.text().includes('net::ERR_INTERNET_DISCONNECTED')) {
      complaints.push(message.text())
    }
  })
  return { context, page, complaints }
}

const start = async (page: Page, keep = false) => {
  await page.getByRole('button', { name: 'Start scanning' }).waitFor()
  if (keep) await page.getByRole('checkbox').check()
  await page.getByRole('button', { name: 'Start scanning' }).click()
}
const shown = async (page: Page, reason: string) => {
  await page.locator(`.verdict[data-reason=${reason}]`).waitFor()
}
const next = (page: Page) => page.getByRole('button', { name: 'Next' }).click()
const typeCode = async (page: Page, code: string) => {
  await page.getByRole('button', { name: 'Code' }).click()
  await page.getByLabel('Code of the ticket').fill(code)
  await page.getByRole('button', { name: 'Check in' }).click()
}

test.skipIf(!hasBrowser)('a ticket before the camera is welcome once', async () => {
  const { page, complaints } = await telephone(['camera'])
  await page.goto(link())
  await start(page)
  await shown(page, 'welcome')
  expect(await page.url()).not.toContain('key')
  await next(page)
  await shown(page, 'already_checked_in')
  expect(complaints).toEqual([])
})
