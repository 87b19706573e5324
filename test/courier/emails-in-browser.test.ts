// E-mails of every kind and language in a browser, as wide as a telephone and a screen, light and dark.

import type { Browser, Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { hasBrowser } from '../../scripts/support/browser.ts'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import { locales } from '../../src/operations/locales.ts'
import { atWidth, expectReadable, outlinesInFrame } from '../browser/accessibility.ts'
import { sharedBrowser } from '../support/browser.ts'
import { pendingEmails } from './pending-emails.ts'
import { sender } from './pending-ticket.ts'

let browser: Browser
let page: Page
beforeAll(async () => {
  if (!hasBrowser) return
  browser = await sharedBrowser()
  page = await browser.newPage()
  await atWidth(page, 320)
})

const wholeKinds = ['ticket', 'order_confirmation', 'event_changed']
const accents = [null, '#ffd400', '#e5006d']

test.runIf(hasBrowser).each([...locales])(
  'in %s nothing is wider than the window, and all of it can be read',
  async (locale) => {
    const long = 'Donaudampfschifffahrtsgesellschaftskapitänskajütenschlüssel'.repeat(3)
    const all = [...Object.values(pendingEmails(locale)), ...Object.values(pendingEmails(locale, long))]
    const htmls = await Promise.all(
      all.map(async (pending) => {
        const accent = accents[pending.kind.length % accents.length] ?? null
        // The longest IBANs there are stay on one line.
        const payment_instructions = 'MT84 MALT 0110 0001 2345 MTLC AST0 01S\nPL61 1090 1014 0000 0712 1981 2874'
        const organisation = { ...pending.organisation, accent_colour: accent, payment_instructions }
        return (await composeEmail({ ...pending, organisation }, sender)).html
      }),
    )
    const fits = { overflow: false, headings: 1 }
    await page.setContent('')
    for (const [i, outlines] of (await outlinesInFrame(page, htmls, [1280, 320])).entries()) {
      expect(outlines, `${all[i]?.kind}, ${i}`).toMatchObject([fits, fits])
    }
    // These have all blocks there are, and words of another language have the same colours.
    if (locale !== 'en') return
    for (const [i, { kind }] of all.entries()) {
      if (!wholeKinds.includes(kind)) continue
      await page.setContent(htmls[i] ?? '')
      await expectReadable(page)
    }
  },
)
