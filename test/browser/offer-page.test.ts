// The page of an offer in a browser: it can be read by everybody in each state, and its buttons work without a script.

import { expect } from 'vitest'
import { inBrowser, sharedBrowser } from '../support/browser.ts'
import { offering } from '../support/offers.ts'
import { edit } from '../support/studio.ts'
import { atWidth, expectReadable, outline } from './accessibility.ts'

inBrowser('an offer is read, kept from a slip, taken and paid for in the language of the event', async () => {
  const [free, paid] = [await offering(), await offering({ price: 4900 })]
  for (const { event } of [free, paid]) await edit('events', event.id, "locale = 'de', name = 'Lange Nacht'")
  const browser = await sharedBrowser()
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, javaScriptEnabled: false })
  const reader = await browser.newContext({ viewport: { width: 390, height: 844 } })
  const [page, read] = [await context.newPage(), await reader.newPage()]
  const looked = async (url: string) => {
    await read.goto(url)
    await expectReadable(read, { hasOutline: true })
    for (const width of [320, 1280, 390]) {
      await atWidth(read, width)
      expect(await outline(read)).toEqual({ overflow: false, mains: 1, headings: 1 })
    }
    const heights = await read
      .locator('main :is(a, button, summary)')
      .evaluateAll((all) => all.map((each) => each.getBoundingClientRect().height).filter((height) => height > 0))
    expect(Math.min(44, ...heights)).toBe(44)
  }
  try {
    await looked(paid.url)
    await page.goto(paid.url)
    expect(await page.getByText('Gesamt').count()).toBe(1)
    await page.getByRole('button', { name: 'Zahlungspflichtig bestellen' }).click()
    await page.getByText(/Bitte überweisen Sie|Bitte (be)?zahlen Sie/).waitFor()
    expect(page.url()).toBe(paid.url)
    await looked(paid.url)

    await looked(free.url)
    await page.goto(free.url)
    expect(await page.getByRole('button', { name: 'Platz ablehnen' }).isVisible()).toBe(false)
    await page.locator('summary').click()
    await page.getByRole('button', { name: 'Platz ablehnen' }).click()
    await page.getByText('Dieser Platz wird nicht mehr für Sie reserviert.').waitFor()
    expect(await free.statuses()).toEqual(['cancelled', 'offered'])
    await looked(free.url)
    await looked(`${free.url.slice(0, -64)}${'0'.repeat(64)}`)
  } finally {
    await context.close()
    await reader.close()
  }
})
