// What staff do with their hands at the door page: keys, the browser's Back, tabs, and a scanner that types.

import type { Page } from 'playwright-core'
import { expect, inject, onTestFinished } from 'vitest'
import { inBrowser } from '../support/browser.ts'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { schemes } from './accessibility.ts'
import {
  expectReadable,
  newContext,
  next,
  openDoor,
  pageOf,
  scanExternally,
  shown,
  start,
  typeCode,
} from './door-telephone.ts'

/** A door with guests of these names, whose page is open. */
async function door(...names: string[]) {
  const organisation = await createOrganisation()
  const event = await organisation.event({ madeAt: '2026-01-01' })
  const guests = await Promise.all(
    names.map(async (name) => {
      const guest = await event.guest()
      await studio.query('update public.attendees set name = $2 where id = $1', [guest.attendeeId, name])
      return guest
    }),
  )
  const key = await organisation.key('checkin:write', 'events:read', 'attendees:write', 'orders:write')
  const link = `${inject('apiUrl')}/door#event=${event.id}&key=${key}`
  const context = await newContext()
  onTestFinished(() => context.close())
  const page = await pageOf(context)
  await openDoor(page, link)
  await start(page)
  return { event, guests, key, link, context, page }
}

const open = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
const panel = (page: Page, name: string) => page.locator('.panel').getByRole('heading', { name })
const field = (page: Page) =>
  page.evaluate(`document.activeElement?.getAttribute('name') ?? document.activeElement?.type`)

inBrowser('panels open with the cursor in their field, and Enter takes the only hit', async () => {
  const { page } = await door('Ada Only', 'Bob Twice', 'Bea Twice')
  await open(page, 'Code')
  expect(await field(page)).toBe('code')
  await page.keyboard.press('Escape')
  await open(page, 'Walk-in')
  await expect.poll(() => field(page)).toBe('name')
  await page.keyboard.press('Escape')
  await open(page, 'Search')
  expect(await field(page)).toBe('search')
  await page.keyboard.insertText('twice')
  await page.keyboard.press('Enter')
  await panel(page, 'Search').waitFor()
  expect(await page.locator('.found li').count()).toBe(2)
  await page.getByRole('searchbox').fill('ada')
  await page.keyboard.press('Enter')
  await panel(page, 'Ada Only').waitFor()
  expect(await page.locator('.verdict').count()).toBe(0)
  await page.keyboard.press('Enter')
  await shown(page, 'welcome')
  await page.locator('.verdict .name', { hasText: 'Ada Only' }).waitFor()
})

inBrowser('what a scanner types into the search is scanned, whatever stood there, and a name is not', async () => {
  const { page, guests } = await door('Ada Only', 'Bob Next')
  await open(page, 'Search')
  for (const [{ code }, before] of [
    [guests[0], ''],
    [guests[1], 'Müll'],
  ] as [(typeof guests)[number], string][]) {
    await page.getByRole('searchbox').fill(before)
    await scanExternally(page, code)
    await shown(page, 'welcome')
    await next(page)
    expect(await page.getByRole('searchbox').inputValue()).toBe('')
  }
  await page.getByRole('searchbox').fill('Hohenlohe-Waldenburg-Schillingsfürst')
  await page.keyboard.press('Enter')
  await page.getByText('Nobody on the list has this name').waitFor()
  expect(await page.locator('.verdict').count()).toBe(0)
})

inBrowser("the browser's Back closes what is open, and leaves the page only when nobody scans", async () => {
  const { page } = await door('Ada Only')
  await open(page, 'Search')
  await page.keyboard.insertText('ada')
  await page.keyboard.press('Enter')
  await panel(page, 'Ada Only').waitFor()
  await page.goBack()
  await panel(page, 'Search').waitFor()
  await page.goBack()
  await page.locator('.panel').waitFor({ state: 'detached' })
  await typeCode(page, 'unknown')
  await shown(page, 'not_found')
  await page.goBack()
  await page.locator('.verdict').waitFor({ state: 'detached' })
  // Chromium lets a page hold on to a few of them without a touch.
  for (let i = 0; i < 5; i++) await page.goBack()
  await page.getByRole('button', { name: 'Search' }).waitFor()

  // Also after a reload. A panel over the start is closed as well.
  await page.reload()
  await open(page, 'Change')
  await page.goBack()
  await page.locator('.panel').waitFor({ state: 'detached' })
  await start(page)
  await page.goBack()
  await open(page, 'More')
  await open(page, 'Change the check-in point')
  await expect.poll(() => page.evaluate('history.state?.place ?? 0')).toBe(0)
  await page.goBack()
  await page.waitForURL('about:blank')
})

inBrowser('a second tab offers to go on there; the first one then pauses, and offers the same', async () => {
  const { page, context, link, guests } = await door('Ada Only', 'Bob Next')
  const goOn = (of: Page) => of.getByRole('button', { name: 'Go on here' })
  const other = await pageOf(context)
  await other.goto(link)
  await goOn(other).waitFor()
  await expectReadable(other, ...schemes)
  await typeCode(page, guests[0]?.code ?? '')
  await shown(page, 'welcome')
  await next(page)

  await goOn(other).click()
  await goOn(page).waitFor()
  await expectReadable(page, ...schemes)
  await start(other)
  await typeCode(other, guests[0]?.code ?? '')
  await shown(other, 'already_checked_in')
  expect(await other.evaluate('location.hash')).toBe('')

  await goOn(page).click()
  await goOn(other).waitFor()
  await start(page)
  await typeCode(page, guests[1]?.code ?? '')
  await shown(page, 'welcome')
  // Whoever is alone is not asked.
  await other.close()
  await page.reload()
  await start(page)
})

inBrowser('an event that is completed, unpublished or cancelled meanwhile is announced where staff scan', async () => {
  const { page, event } = await door()
  const camera = page.locator('main.scanning')
  const alert = camera.locator('> [role=alert]')
  expect(await alert.count()).toBe(0)
  for (const [status, text] of [
    ['completed', 'The organiser has completed this event'],
    ['published', null],
    ['draft', 'This event is not published'],
    ['published', null],
    ['cancelled', 'This event has been cancelled'],
  ] as const) {
    await studio.query('update public.events set status = $2 where id = $1', [event.id, status])
    await page.evaluate("dispatchEvent(new Event('online'))")
    if (text === null) await alert.waitFor({ state: 'detached' })
    else
      await alert
        .getByText(text)
        .or(alert.filter({ hasText: text }))
        .first()
        .waitFor()
  }
  await expectReadable(page, ...schemes)
})

inBrowser('conflicts open from their badge, in the order of time, with seconds', async () => {
  const { page, event, guests, key } = await door('Ada First', 'Bob Second', 'Cy Third')
  const send = rest(key)
  await studio.query("update public.attendees set status = 'cancelled' where id = any ($1)", [
    guests.map(({ attendeeId }) => attendeeId),
  ])
  // Uploaded in another order than they were made.
  for (const i of [1, 2, 0]) {
    const scanned_at = new Date(Date.now() - (60 - i) * 1000).toISOString()
    const scan = { scan_id: `scan ${i}`, attendee_id: guests[i]?.attendeeId, scanned_at, admitted: true }
    expect((await send('POST', '/check-ins/batch', { event_id: event.id, scans: [scan] })).status).toBe(200)
  }
  await page.evaluate("dispatchEvent(new Event('online'))")
  await page.getByRole('button', { name: '3 conflicts' }).click()
  await expectReadable(page, ...schemes)
  expect(await page.locator('.conflicts strong').allInnerTexts()).toEqual(['Ada First', 'Bob Second', 'Cy Third'])
  expect(await page.locator('.conflicts p').first().textContent()).toMatch(/Let in: (.*, )?\d\d?:\d\d:\d\d/)
})
