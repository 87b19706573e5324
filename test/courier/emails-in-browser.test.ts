// E-mails of every kind and language in a browser, as wide as a telephone and a screen, light and dark.

import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { hasBrowser, openBrowser } from '../../scripts/support/browser.ts'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import { locales } from '../../src/operations/locales.ts'
import { atWidth, obstacles, outline, schemes } from '../http/accessibility.ts'
import { pendingEmails } from './pending-emails.ts'
import { sender } from './pending-ticket.ts'

let browser: Browser
let page: Page
beforeAll(async () => {
  if (!hasBrowser) return
  browser = await openBrowser()
  page = await browser.newPage()
})
afterAll(() => browser?.close())

const wholeKinds = ['ticket', 'order_confirmation', 'event_changed']
const accents = [null, '#ffd400', '#e5006d']

test.runIf(hasBrowser).each([...locales])(
  'in %s nothing is wider than the window, and all of it can be read',
  async (locale) => {
    const long = 'Donaudampfschifffahrtsgesellschaftskapitänskajütenschlüssel'.repeat(3)
    for (const pending of [...Object.values(pendingEmails(locale)), ...Object.values(pendingEmails(locale, long))]) {
      const accent = accents[pending.kind.length % accents.length] ?? null
      const { html } = await composeEmail(
        { ...pending, organisation: { ...pending.organisation, accent_colour: accent } },
        sender,
      )
      await page.setContent(html)
      for (const width of [320, 1280]) {
        await atWidth(page, width)
        for (const colorScheme of schemes) {
          await page.emulateMedia({ colorScheme })
          expect(await outline(page), `${pending.kind}, ${width}`).toMatchObject({ overflow: false, headings: 1 })
          // These have all blocks there are, and words of another language have the same colours.
          if (locale === 'en' && width === 320 && wholeKinds.includes(pending.kind))
            expect(await obstacles(page), `${pending.kind}, ${colorScheme}`).toEqual([])
        }
      }
    }
  },
)
