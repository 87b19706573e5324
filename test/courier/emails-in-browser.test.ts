// E-mails of every kind and language in a browser, as wide as a telephone and a screen, light and dark.

import type { Browser, Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { hasBrowser } from '../../scripts/support/browser.ts'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import { locales } from '../../src/operations/locales.ts'
import { atWidth, expectReadable, outline } from '../http/accessibility.ts'
import { sharedBrowser } from '../support/browser.ts'
import { pendingEmails } from './pending-emails.ts'
import { sender } from './pending-ticket.ts'

let browser: Browser
let page: Page
beforeAll(async () => {
  if (!hasBrowser) return
  browser = await sharedBrowser()
  page = await browser.newPage()
})

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
      for (const width of [1280, 320]) {
        await atWidth(page, width)
        expect(await outline(page), `${pending.kind}, ${width}`).toMatchObject({ overflow: false, headings: 1 })
      }
      // These have all blocks there are, and words of another language have the same colours.
      if (locale !== 'en' || !wholeKinds.includes(pending.kind)) continue
      await expectReadable(page)
    }
  },
)
