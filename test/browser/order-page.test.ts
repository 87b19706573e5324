// The order page in a browser: read on a telephone in light and dark, copied from, and on paper.

import type { Browser, Page } from 'playwright-core'
import { beforeAll, expect, inject, onTestFinished } from 'vitest'
import { hasBrowser } from '../../scripts/support/browser.ts'
import { locales } from '../../src/operations/locales.ts'
import { inBrowser, sharedBrowser } from '../support/browser.ts'
import { studio } from '../support/database.ts'
import { orderUrl } from '../support/order-links.ts'
import { createOrganisation, type TestOrganisation } from '../support/organisation.ts'
import { readPng } from '../support/qr.ts'
import { edit } from '../support/studio.ts'
import { atWidth, expectReadable, expectScheme, outline } from './accessibility.ts'

const iban = 'MT84 MALT 0110 0001 2345 MTLC AST0 01S'
let browser: Browser
let organisation: TestOrganisation
beforeAll(async () => {
  if (!hasBrowser) return
  browser = await sharedBrowser()
  organisation = await createOrganisation()
  const details = 'seller_details = $2, payment_instructions = $3, tax_note = $2'
  await edit('organisations', organisation.id, details, ['Acme Ltd\n1 Market Square\nVAT GB 123', `Acme Ltd\n${iban}`])
})

async function open(javaScriptEnabled = true): Promise<{ page: Page; complaints: string[] }> {
  const context = await browser.newContext({
    viewport: { width: 390, height: 844 },
    javaScriptEnabled,
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  onTestFinished(() => context.close())
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('pageerror', ({ message }) => complaints.push(message))
  page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  return { page, complaints }
}

/** An order of several tickets, one with a name as long as names get. */
async function order(tickets: number, isPaid: boolean) {
  const event = await organisation.event()
  const { orderId } = await event.payer()
  await studio.query(
    `insert into public.attendees (order_id, ticket_type_id, name, email)
     select a.order_id, a.ticket_type_id, repeat('Wissenschaftskommunikation ', 7), a.email
     from public.attendees a, generate_series(2, $2) where a.order_id = $1`,
    [orderId, tickets],
  )
  if (isPaid)
    await studio.query(
      'insert into public.payments (order_id, amount) select $1, total from public.orders where id = $1',
      [orderId],
    )
  return { event, orderId, url: await orderUrl(orderId, inject('apiUrl')) }
}

inBrowser('the page, its receipt and its tickets can be read in every language, light and dark', async () => {
  const [unpaid, paid] = [await order(2, false), await order(2, true)]
  const { page, complaints } = await open()
  for (const url of [unpaid.url, paid.url, `${paid.url}/receipt`, `${paid.url}/tickets`]) {
    await page.goto(url)
    await expectReadable(page, { hasOutline: true, also: (scheme) => expectScheme(page, scheme) })
  }
  for (const locale of locales) {
    for (const { event } of [unpaid, paid]) await edit('events', event.id, 'locale = $2', [locale])
    for (const url of [unpaid.url, paid.url, `${paid.url}/receipt`, `${paid.url}/tickets`]) {
      await page.goto(url)
      for (const width of [320, 1280]) {
        await atWidth(page, width)
        expect(await outline(page), `${locale} ${url}`).toEqual({ overflow: false, mains: 1, headings: 1 })
      }
    }
    expect(await page.locator('html').getAttribute('lang')).toBe(locale)
  }
  expect(complaints).toEqual([])
})

inBrowser('IBAN and reference are copied by a button, and without a script there is none', async () => {
  const { orderId, url } = await order(1, false)
  const { rows } = await studio.query('select reference from public.orders where id = $1', [orderId])
  const { page, complaints } = await open()
  await page.goto(url)
  for (const text of [iban.replaceAll(' ', ''), rows[0].reference]) {
    await page.getByRole('button', { name: `Copy: ${text}` }).click()
    await page.getByText(`Copied: ${text}`).waitFor()
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(text)
  }
  expect(complaints).toEqual([])
  const still = await open(false)
  await still.page.goto(url)
  expect(await still.page.getByText(rows[0].reference).count()).toBeGreaterThan(0)
  expect(await still.page.getByRole('button').count()).toBe(0)
})

inBrowser('a receipt is one sheet of paper, no ticket is on two, and each has its code', async () => {
  const { orderId, url } = await order(5, true)
  const { page } = await open()
  const sheetsOf = async (address: string) => {
    await page.goto(address)
    const pdf = (await page.pdf({ preferCSSPageSize: true })).toString('latin1')
    return pdf.match(/\/Type\s*\/Page\b/g)?.length
  }
  expect(await sheetsOf(`${url}/receipt`)).toBe(1)
  // Two on a sheet: the first has the head of the page as well.
  expect(await sheetsOf(`${url}/tickets`)).toBe(3)
  await page.emulateMedia({ media: 'print' })
  const breaks = await page.evaluate(
    `[...document.querySelectorAll('article')].map((each) => getComputedStyle(each).breakInside)`,
  )
  expect(breaks).toEqual(Array(5).fill('avoid'))
  expect(await page.locator('button:visible, .action:visible').count()).toBe(0)
  const codes = []
  for (const figure of await page.locator('figure').all()) codes.push(readPng(await figure.screenshot()))
  const { rows } = await studio.query('select ticket_code from public.attendees where order_id = $1 order by id', [
    orderId,
  ])
  expect(codes).toEqual(rows.map(({ ticket_code }) => ticket_code))
})
