// A guest who has not paid, at the door: what is due is taken where the link may take money, once, and never without a network.

import type { Page } from 'playwright-core'
import { expect, inject, onTestFinished } from 'vitest'
import { inBrowser } from '../support/browser.ts'
import { row, studio } from '../support/database.ts'
import { createOrganisation, type TestGuest } from '../support/organisation.ts'
import { addAttendee, pay } from '../support/studio.ts'
import { schemes } from './accessibility.ts'
import { expectReadable, newContext, next, openDoor, pageOf, shown, start, typeCode } from './door-telephone.ts'

/** Two guests of one order of 98.00, of whom one is called Ada Unpaid. */
async function group() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const ada = await event.payer()
  const { type } = await row<{ type: string }>(
    "update public.attendees set name = 'Ada Unpaid' where id = $1 returning ticket_type_id as type",
    [ada.attendeeId],
  )
  const bob = await row<{ code: string }>('select ticket_code as code from public.attendees where id = $1', [
    await addAttendee(ada.orderId, type),
  ])
  const walkIns = await organisation.key('checkin:write', 'events:read', 'attendees:write', 'orders:write')
  const telephone = async (key = walkIns) => {
    const context = await newContext()
    onTestFinished(() => context.close())
    const page = await pageOf(context)
    await openDoor(page, `${inject('apiUrl')}/door#event=${event.id}&key=${key}`)
    await start(page)
    return { context, page }
  }
  return { organisation, ada, bob, telephone }
}

const paymentsOf = async ({ orderId }: TestGuest) =>
  (
    await studio.query(
      'select p.method, p.amount::int, o.status from public.payments p join public.orders o on o.id = p.order_id where o.id = $1 order by p.id',
      [orderId],
    )
  ).rows

const take = (page: Page) => page.getByRole('button', { name: 'Take the payment' })

inBrowser('what is due for the order is taken by card, then the guest is in, and so may the others', async () => {
  const { ada, bob, telephone } = await group()
  const { context, page } = await telephone()

  await context.setOffline(true)
  await typeCode(page, ada.code)
  await shown(page, 'unpaid')
  await page.locator('.verdict').getByText('Without a network, no payment can be recorded').waitFor()
  expect(await take(page).count()).toBe(0)
  await next(page)
  await context.setOffline(false)
  await page.getByText('to upload').waitFor({ state: 'detached' })

  // A part came at the bank, which is no change of a ticket.
  await pay(ada.orderId, 1000)
  await page.getByRole('button', { name: 'Search' }).click()
  await page.keyboard.insertText('ada unp')
  await page.keyboard.press('Enter')
  await page.evaluate("dispatchEvent(new Event('online'))")
  await page.getByRole('button', { name: 'Take the payment: €88.00' }).waitFor()
  await expectReadable(page, ...schemes)
  await page.getByRole('button', { name: 'Back' }).click()
  await page.getByRole('button', { name: 'Close' }).click()

  await typeCode(page, ada.code)
  await shown(page, 'unpaid')
  await take(page).click()
  await page.getByText('Take €88.00 from Ada Unpaid.').waitFor()
  await page.getByText('the whole order of 2 tickets').waitFor()
  expect(await page.getByRole('button', { name: 'Cancel this registration' }).count()).toBe(0)
  await expectReadable(page, ...schemes)
  // Whoever turns away has paid nothing.
  await page.keyboard.press('Escape')
  await typeCode(page, ada.code)
  await take(page).click()
  await page.getByRole('button', { name: '€88.00 paid by card' }).click()
  await shown(page, 'welcome')
  expect(await paymentsOf(ada)).toEqual([
    { method: 'invoice', amount: 1000, status: 'completed' },
    { method: 'card', amount: 8800, status: 'completed' },
  ])
  await next(page)
  await context.setOffline(true)
  await typeCode(page, bob.code)
  await shown(page, 'welcome')
})

inBrowser('a link that may not take money offers no payment', async () => {
  const { organisation, ada, telephone } = await group()
  const { page } = await telephone(await organisation.key('checkin:write'))
  await typeCode(page, ada.code)
  await shown(page, 'unpaid')
  await page.locator('.verdict').getByText('The order has not been paid yet').waitFor()
  expect(await take(page).count()).toBe(0)
})

inBrowser('two doors that take the payment of one order at once record it once', async () => {
  const { ada, telephone } = await group()
  const pages = [(await telephone()).page, (await telephone()).page]
  const areSent = Promise.withResolvers<void>()
  let sent = 0
  for (const page of pages) {
    await page.route('**/payments', async (route) => {
      if (++sent === pages.length) areSent.resolve()
      await areSent.promise
      await route.continue()
    })
    await typeCode(page, ada.code)
    await take(page).click()
    await page.getByText('Take €98.00 from Ada Unpaid.').waitFor()
  }
  await Promise.all(pages.map((page) => page.getByRole('button', { name: '€98.00 received in cash' }).click()))
  const ends = await Promise.all(
    pages.map(async (page) => {
      await page.locator('.verdict[data-reason=welcome], .panel .notice[role=alert]').waitFor()
      return page.locator('.verdict').count()
    }),
  )
  expect(ends.toSorted()).toEqual([0, 1])
  expect(await paymentsOf(ada)).toEqual([{ method: 'cash', amount: 9800, status: 'completed' }])
  const late = pages[ends.indexOf(0)] as Page
  await late.getByText('Nothing is to be paid any more').waitFor()
  await expectReadable(late, ...schemes)
})

inBrowser('a payment whose answer is lost is sent again as it was, also after a reload', async () => {
  const { ada, telephone } = await group()
  const { page } = await telephone()
  await page.route(
    '**/payments',
    async (route) => {
      await route.fetch()
      await route.abort()
    },
    { times: 1 },
  )
  await typeCode(page, ada.code)
  await take(page).click()
  await page.getByRole('button', { name: '€98.00 paid by card' }).click()
  await page.getByRole('button', { name: 'Try again' }).waitFor()
  await page.reload()
  await start(page)
  await page.getByRole('heading', { name: 'Take the payment' }).waitFor()
  await page.getByRole('button', { name: 'Try again' }).click()
  await shown(page, 'welcome')
  expect(await paymentsOf(ada)).toEqual([{ method: 'card', amount: 9800, status: 'completed' }])
})
