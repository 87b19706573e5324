// The documentation page as a browser draws it.

import type { Browser, Locator, Page } from 'playwright-core'
import { beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { hasBrowser } from '../../scripts/support/browser.ts'
import { guides } from '../../src/http/guides.ts'
import { sharedBrowser } from '../support/browser.ts'
import { createOrganisation } from '../support/organisation.ts'
import { ownApp } from '../support/own-app.ts'
import { atWidth, expectReadable, expectScheme, outline, widths } from './accessibility.ts'

let browser: Browser
beforeAll(async () => {
  if (hasBrowser) browser = await sharedBrowser()
})

/** The page when its chapters are drawn, and what the browser complained of. */
async function docs(apiUrl: string, width: number, part = ''): Promise<{ page: Page; complaints: string[] }> {
  const page = await browser.newPage({ viewport: { width, height: 844 }, reducedMotion: 'reduce' })
  onTestFinished(() => page.close())
  page.setDefaultTimeout(120_000)
  const complaints: string[] = []
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('pageerror', ({ message }) => complaints.push(message))
  await page.goto(`${apiUrl}/docs${part}`)
  await page.locator('.opblock-tag').first().waitFor()
  return { page, complaints }
}

/** The page follows its reader. */
const follows = (page: Page) => (scheme: 'light' | 'dark') => expectScheme(page, scheme)

const expectFitting = async (page: Page) => {
  for (const width of widths) {
    await atWidth(page, width)
    expect(await outline(page), `${width}`).toEqual({ overflow: false, mains: 1, headings: 1 })
  }
}

test.skipIf(!hasBrowser)('on a phone a guest is registered at the first click, and all of it can be read', async () => {
  const organisation = await createOrganisation()
  const { id: eventId, ticketTypeId, sold } = await organisation.event()
  const { url } = await ownApp({ demo: { eventId, ticketTypeId } })
  const { page, complaints } = await docs(url, 375)
  await expectFitting(page)

  await atWidth(page, 375)
  await page.getByRole('button', { name: 'Authorize' }).first().click()
  await page.locator('.auth-container input').fill(await organisation.key())
  await expectReadable(page, { part: '.dialog-ux', also: follows(page) })
  await page.locator('.auth-btn-wrapper [type=submit]').click()
  await page.locator('.btn-done').click()

  // Nothing of a closed chapter is drawn.
  expect(await page.locator('[id^=operations-Orders-]').count()).toBe(0)
  await page.locator('#operations-tag-Orders').click()
  const operation = page.locator('#operations-Orders-register_attendee')
  await operation.locator('.opblock-summary-control').click()
  // Where the mail preview leads.
  await page.waitForURL('**/docs#/Orders/register_attendee')
  await operation.getByRole('button', { name: 'Execute' }).click()
  const answer = operation.locator('.live-responses-table .response')
  await answer.waitFor()
  expect(await answer.locator('.response-col_status').first().textContent()).toContain('201')
  expect(await sold()).toBe(1)
  // Each is its codes, and an example to open.
  const errors = operation.locator('.responses-table:not(.live-responses-table) [data-code^="4"]')
  expect(await errors.count()).toBeGreaterThan(5)
  for (const { height } of await boxesOf(errors)) expect(height).toBeLessThan(400)
  await page.evaluate(keepOneOfEachMethod)
  await expectFitting(page)
  await expectReadable(page, { hasOutline: true, also: follows(page) })
  expect(complaints).toEqual([])
})

// axe takes four times as long for all of them, which are alike.
const keepOneOfEachMethod = `
  const kept = new Set()
  for (const operation of document.querySelectorAll('.opblock:not(.is-open)')) {
    if (kept.has(operation.className)) operation.remove()
    kept.add(operation.className)
  }`

const boxesOf = async (rows: Locator) =>
  (await Promise.all((await rows.all()).map((row) => row.boundingBox()))).map((box) => box ?? { height: Number.NaN })

test.skipIf(!hasBrowser)('a link to an operation opens its chapter', async () => {
  const { page } = await docs(inject('apiUrl'), 375, '#/Orders/register_attendee')
  await page.locator('#operations-Orders-register_attendee.is-open').waitFor()
})

test.skipIf(!hasBrowser)('the filter finds operations by name, path and title', async () => {
  const { page } = await docs(inject('apiUrl'), 1280)
  for (const phrase of ['register_attendee', '/registrations', 'Register attendees']) {
    await page.getByLabel('Filter operations').fill(phrase)
    await expect.poll(() => page.locator('.opblock-tag h3, h3.opblock-tag').count()).toBe(1)
    await page.locator('#operations-tag-Orders').waitFor()
  }
})

test.skipIf(!hasBrowser)('a guide fits and can be read, copied from and searched', async () => {
  const context = await browser.newContext({ permissions: ['clipboard-read', 'clipboard-write'] })
  onTestFinished(() => context.close())
  const page = await context.newPage()
  await page.goto(`${inject('apiUrl')}/docs/guides/webhooks`)
  await page.getByRole('button', { name: 'Copy' }).first().click()
  expect(await page.evaluate('navigator.clipboard.readText()')).toMatch(/^\/\/ receiver.ts\n/)
  await page.getByLabel('Search all pages').fill('sold_out offer')
  await page.locator('header').getByRole('link', { name: 'Rules · Errors' }).waitFor()
  await expectFitting(page)
  await expectReadable(page, { hasOutline: true, also: follows(page) })
})

test.skipIf(!hasBrowser)('no page is wider than its window, with its tables', async () => {
  const page = await browser.newPage()
  onTestFinished(() => page.close())
  for (const { name } of guides) {
    await page.goto(`${inject('apiUrl')}/docs/${name}`)
    for (const width of [390, 1280]) {
      await atWidth(page, width)
      const wide = `[...document.querySelectorAll('main table')].filter((table) => table.offsetWidth > document.querySelector('main').clientWidth - 40).length`
      expect([name, await outline(page), await page.evaluate(wide)]).toEqual([
        name,
        { overflow: false, mains: 1, headings: 1 },
        0,
      ])
    }
  }
})

test.skipIf(!hasBrowser)('without JavaScript the documentation says where to look instead', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false, colorScheme: 'dark' })
  onTestFinished(() => context.close())
  const page = await context.newPage()
  await page.goto(`${inject('apiUrl')}/docs`)
  expect(await outline(page)).toEqual({ overflow: false, mains: 1, headings: 1 })
  expect(await page.getByRole('main').textContent()).toContain('This page needs JavaScript')
})
