// Usher behind a proxy that strips a path, as `PUBLIC_URL` may have one: nothing of a page or of the documents leads outside the path.

import { rm } from 'node:fs/promises'
import { pino } from 'pino'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { hasBrowser } from '../../scripts/support/browser.ts'
import { becomesTrue, film, sharedBrowser } from '../support/browser.ts'
import { row } from '../support/database.ts'
import { headerAddingProxy } from '../support/header-adding-proxy.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { appOfThisFile } from '../support/own-app.ts'
import { filmTicket } from '../support/ticket-film.ts'

const lines: string[] = []
const app = appOfThisFile({
  publicUrl: 'https://example.org/usher',
  log: pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) }),
})
let proxy: Awaited<ReturnType<typeof headerAddingProxy>>
let base: string
let organisation: TestOrganisation
beforeAll(async () => {
  proxy = await headerAddingProxy((await app).url, {}, '/usher')
  base = `${proxy.url}/usher`
  organisation = await createOrganisation()
})
afterAll(() => proxy.close())

test('the documents and redirects name addresses below the path', async () => {
  const { servers, tags } = (await (await fetch(`${base}/openapi.json`)).json()) as {
    servers: { url: string }[]
    tags: { externalDocs: { url: string } }[]
  }
  expect(servers.map(({ url }) => url)).toEqual(['/usher/api/v1'])
  for (const { externalDocs } of tags) {
    const { origin, pathname } = new URL(externalDocs.url)
    expect(origin).toBe('https://example.org')
    expect((await fetch(new URL(pathname, base))).status, externalDocs.url).toBe(200)
  }
  const index = (await (await fetch(`${base}/`)).json()) as Record<string, string>
  for (const name of ['documentation', 'openapi', 'rest', 'mcp', 'health']) {
    expect([200, 401], name).toContain((await fetch(new URL(index[name] ?? '', base))).status)
  }
  const redirectOf = async (path: string) =>
    (await fetch(base + path, { headers: { Accept: 'text/html' }, redirect: 'manual' })).headers.get('location') ?? ''
  expect(await redirectOf('/')).toBe('https://example.org/usher/docs')
  for (const page of ['/docs', '/docs/guides/webhooks', '/door']) {
    expect(new URL(await redirectOf(`${page}/`), `${base}${page}/`).href, page).toBe(base + page)
  }
})

test.skipIf(!hasBrowser)(
  'the documentation, the door with a camera and a ticket page work there, also without a network',
  async () => {
    const event = await organisation.event()
    const { code, attendeeId } = await event.guest()
    await filmTicket(film, code)
    onTestFinished(() => rm(film, { force: true }))
    const context = await (await sharedBrowser()).newContext({ viewport: { width: 390, height: 844 } })
    onTestFinished(() => context.close())
    const page = await context.newPage()
    const complaints: string[] = []
    page.on('pageerror', ({ message }) => complaints.push(message))
    page.on('console', (message) => {
      // Browsers ask the host for one where a document names none.
      const isOfHost = message.location().url === `${proxy.url}/favicon.ico`
      const isExpected = isOfHost || message.text().includes('ERR_INTERNET_DISCONNECTED')
      if (message.type() === 'error' && !isExpected) complaints.push(`${message.text()} ${message.location().url}`)
    })
    context.on('request', (request) => {
      if (/^https?:/.test(request.url()) && !request.url().startsWith(`${base}/`)) complaints.push(request.url())
    })

    await useDocumentation(page, await organisation.key())
    const key = await organisation.key('checkin:write')
    await useDoor(page, context, `event=${event.id}&key=${key}`)
    const log = lines.join('')
    expect(log).toContain('/check-ins/batch')
    for (const ofLink of [key.slice(19), 'key=', `#event=${event.id}`]) expect(log).not.toContain(ofLink)
    const { token } = await row<{ token: string }>('select ticket_token as token from public.attendees where id = $1', [
      attendeeId,
    ])
    await useTicketPage(page, context, token)
    expect(complaints).toEqual([])
  },
)

async function useDocumentation(page: Page, key: string): Promise<void> {
  // All of its operations are drawn in docs-page.test.ts, which takes seconds.
  await page.route('**/openapi.json', async (route) => {
    if (route.request().isNavigationRequest()) return route.continue()
    const document = (await (await route.fetch()).json()) as { paths: Record<string, unknown> }
    await route.fulfill({ json: { ...document, paths: { '/events': document.paths['/events'] } } })
  })
  await page.goto(`${base}/docs`)
  await page.getByRole('button', { name: 'Authorize' }).first().click()
  await page.locator('.auth-container input').fill(key)
  await page.locator('.auth-btn-wrapper [type=submit]').click()
  await page.locator('.btn-done').click()
  await page.locator('#operations-tag-Events').click()
  const operation = page.locator('#operations-Events-list_events')
  await operation.locator('.opblock-summary-control').click()
  await operation.getByRole('button', { name: 'Execute' }).click()
  const status = operation.locator('.live-responses-table .response .response-col_status').first()
  await status.waitFor()
  expect(await status.textContent()).toContain('200')

  await page.getByRole('link', { name: 'Quickstart' }).click()
  await page.waitForURL(`${base}/docs/quickstart`)
  await page.getByRole('navigation', { name: 'All pages' }).getByRole('link', { name: 'Webhooks', exact: true }).click()
  await page.waitForURL(`${base}/docs/guides/webhooks`)
  await page.getByLabel('Search all pages').fill('register_attendee')
  await page.getByRole('link', { name: 'register_attendee · Operations' }).click()
  await page.waitForURL(`${base}/docs/reference/operations#register_attendee`)
  await page.getByRole('link', { name: 'openapi.json' }).click()
  await page.waitForURL(`${base}/openapi.json`)
}

async function useDoor(page: Page, context: BrowserContext, link: string): Promise<void> {
  const start = page.getByRole('button', { name: 'Start scanning' })
  // With a slash, as people type it.
  await page.goto(`${base}/door/#${link}`)
  await page.getByRole('button', { name: 'Continue' }).click()
  await page.getByText('Saved on this device').waitFor()
  await start.click()
  await page.locator('.verdict[data-reason=welcome]').waitFor()
  expect(page.url()).not.toContain('key')
  await page.getByRole('button', { name: 'Next' }).click()
  await page.locator('.verdict[data-reason=already_checked_in]').waitFor()
  expect(await page.evaluate('navigator.serviceWorker.ready.then(({ scope }) => scope)')).toBe(`${base}/door`)
  expect(await page.evaluate('indexedDB.databases().then((all) => all.map(({ name }) => name).sort())')).toEqual([
    'usher-door/usher',
    'usher-door/usher scans',
  ])
  const { start_url, scope, icons } = (await page.evaluate(
    `fetch(document.querySelector('link[rel=manifest]').href).then((answer) => answer.json())`,
  )) as { start_url: string; scope: string; icons: { src: string }[] }
  const places = [start_url, scope, icons[0]?.src ?? ''].map(
    (path) => new URL(path, `${base}/door/manifest.webmanifest`).href,
  )
  expect(places).toEqual([`${base}/door`, `${base}/door`, `${base}/door/icon.svg`])

  await context.setOffline(true)
  await page.reload()
  await start.waitFor()
  await context.setOffline(false)
}

async function useTicketPage(page: Page, context: BrowserContext, token: string): Promise<void> {
  const link = `${base}/t/${token}`
  await page.goto(`${link}/`)
  await page.waitForURL(link)
  await page.locator('main.checked_in').waitFor()
  const calendar = await page.getByRole('link', { name: 'Add to calendar', exact: true }).getAttribute('href')
  expect((await fetch(new URL(calendar ?? '', link))).status).toBe(200)
  await page.evaluate('navigator.serviceWorker.ready')
  await becomesTrue(page, 'caches.match(location.pathname).then(Boolean)')
  await context.setOffline(true)
  await page.reload()
  await page.locator('main.checked_in').waitFor()
  await context.setOffline(false)
}
