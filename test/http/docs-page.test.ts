// The documentation page as a browser draws it.

import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, onTestFinished, test, vi } from 'vitest'
import { hasBrowser, openBrowser } from '../../scripts/support/browser.ts'
import { createOrganisation } from '../support/organisation.ts'
import { atWidth, expectScheme, faintTexts, outline, schemes, widths } from './accessibility.ts'

let browser: Browser
beforeAll(async () => {
  if (hasBrowser) browser = await openBrowser()
})
afterAll(async () => {
  vi.resetConfig()
  await browser?.close()
})

// A page is drawn in a second where nothing else runs, and in ten where much does.
vi.setConfig({ testTimeout: 60_000 })

/** The page when its operations are drawn, and what the browser complained of. */
async function docs(): Promise<{ page: Page; complaints: string[] }> {
  const page = await browser.newPage()
  onTestFinished(() => page.close())
  const complaints: string[] = []
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  page.on('pageerror', ({ message }) => complaints.push(message))
  await page.goto(`${inject('apiUrl')}/docs`)
  await page.locator('.opblock').first().waitFor()
  return { page, complaints }
}

/** In either scheme: the page follows its reader. Buttons fade while they change, so what can be read is polled. */
async function expectReadable(page: Page): Promise<void> {
  for (const colorScheme of schemes) {
    await page.emulateMedia({ colorScheme })
    await expect.poll(() => faintTexts(page), { timeout: 5_000, interval: 200 }).toEqual([])
    await expectScheme(page, colorScheme)
  }
}

const expectFitting = async (page: Page) => {
  for (const width of widths) {
    await atWidth(page, width)
    expect(await outline(page), `${width}`).toEqual({ overflow: false, mains: 1, headings: 1 })
  }
}

test.skipIf(!hasBrowser)('the documentation fits and can be read, bright and dark, and a call tried', async () => {
  const organisation = await createOrganisation()
  const { page, complaints } = await docs()
  expect(((await page.evaluate('document.body.innerText')) as string).match(/\bUsher\b/g)).toHaveLength(1)
  expect(await page.locator('[id=operations]').count()).toBe(1)
  await expectFitting(page)
  await expectReadable(page)

  await page.getByRole('button', { name: 'Authorize' }).first().click()
  await page.locator('.auth-container input').fill(await organisation.key())
  await page.locator('.auth-btn-wrapper [type=submit]').click()
  await expectReadable(page)
  await page.locator('.btn-done').click()

  const operation = page.locator('.opblock', { hasText: '/me' }).first()
  await operation.locator('.opblock-summary-control').click()
  await operation.getByRole('button', { name: 'Try it out' }).click()
  await operation.getByRole('button', { name: 'Execute' }).click()
  const answer = operation.locator('.live-responses-table .response')
  await answer.getByText(organisation.slug).first().waitFor()
  expect(await answer.locator('.response-col_status').first().textContent()).toContain('200')
  await expectFitting(page)
  await expectReadable(page)
  expect(complaints).toEqual([])
})

test.skipIf(!hasBrowser)('without JavaScript the documentation says where to look instead', async () => {
  const context = await browser.newContext({ javaScriptEnabled: false, colorScheme: 'dark' })
  onTestFinished(() => context.close())
  const page = await context.newPage()
  await page.goto(`${inject('apiUrl')}/docs`)
  expect(await outline(page)).toEqual({ overflow: false, mains: 1, headings: 1 })
  expect(await page.getByRole('main').textContent()).toContain('This page needs JavaScript')
  expect(await faintTexts(page)).toEqual([])
})
