// The door page in a browser, as wide as a telephone, without a camera and sound: below-a-path.test.ts has both.

import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, onTestFinished } from 'vitest'
import { hasBrowser } from '../../scripts/support/browser.ts'
import { becomesTrue, inBrowser } from '../support/browser.ts'
import { row, studio } from '../support/database.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { pay } from '../support/studio.ts'
import { schemes } from './accessibility.ts'
import {
  choose,
  expectReadable,
  newContext,
  next,
  openDoor,
  pageOf,
  scanExternally,
  setUp,
  shown,
  start,
  typeCode,
} from './door-telephone.ts'
import { isWritten } from './kept.ts'

let organisation: TestOrganisation
let event: TestEvent
let key: string
let shared: BrowserContext
beforeAll(async () => {
  if (!hasBrowser) return
  organisation = await createOrganisation()
  event = await organisation.event()
  key = await organisation.key('checkin:write')
  shared = await newContext()
})
afterAll(() => shared?.close())

const link = (of = key, eventId = event.id) => `${inject('apiUrl')}/door#event=${eventId}&key=${of}`

/** A telephone of its own. */
async function ownTelephone() {
  const context = await newContext()
  onTestFinished(() => context.close())
  return { context, page: await pageOf(context) }
}

/** A telephone that knows no door. It has the files of the page already, once another test had it: loading them is most of the work. */
async function telephone() {
  const page = await pageOf(shared)
  const devTools = await shared.newCDPSession(page)
  await devTools.send('Storage.clearDataForOrigin', {
    origin: inject('apiUrl'),
    storageTypes: 'indexeddb,local_storage',
  })
  onTestFinished(async () => {
    await shared.setOffline(false)
    await Promise.all(shared.pages().map((each) => each.close()))
  })
  return { context: shared, page }
}

/** A page at the door of an event of its own with two guests, at which staff scan. */
async function scanning({ of = key } = {}) {
  const own = await organisation.event()
  const [first, second] = [await own.guest(), await own.guest()]
  const { context, page } = await telephone()
  await openDoor(page, link(of, own.id))
  await page.evaluate('navigator.serviceWorker.ready')
  await start(page)
  return { own, first, second, ...first, context, page }
}
/** As when the network is there again, or the page is opened. */
const wake = (page: Page) => page.evaluate("dispatchEvent(new Event('online'))")
const undoOf = (page: Page) => page.locator('.verdict').getByRole('button', { name: 'Undo' })
const uploaded = (page: Page) => page.getByText('to upload').waitFor({ state: 'detached' })

inBrowser('two doors offline let a ticket in: each scan is uploaded once, one is a conflict', async () => {
  const { attendeeId, code } = await event.guest()
  const doors = [await ownTelephone(), await telephone()] as const
  const [slow, second] = doors
  await slow.page.clock.install({ time: Date.now() - 3_600_000 })
  const letIn = async ({ page, context }: (typeof doors)[number]) => {
    await openDoor(page, link())
    await page.evaluate('navigator.serviceWorker.ready')
    await start(page)
    await context.setOffline(true)
    await typeCode(page, code)
    await shown(page, 'welcome')
    expect(await page.locator('.by-list').isVisible()).toBe(true)
    await next(page)
    await typeCode(page, code.toLowerCase())
    await shown(page, 'already_checked_in')
    // As after a crash.
    await page.reload()
    await start(page)
    await page.getByText('2 scans to upload').waitFor()
  }
  await Promise.all(doors.map(letIn))
  await slow.page.getByText('60 minutes slow; times are corrected').waitFor()
  await expectReadable(slow.page, ...schemes)
  for (const { page, context } of doors) {
    await context.setOffline(false)
    await uploaded(page)
  }
  await second.page.getByText('1 conflict').waitFor()
  const { rows } = await studio.query(
    `select result, admitted, created_at - scanned_at < '5 minutes' as is_on_time
       from public.check_ins where attendee_id = $1`,
    [attendeeId],
  )
  expect(rows.every(({ is_on_time }) => is_on_time)).toBe(true)
  expect(rows.map(({ result, admitted }) => `${result} ${admitted}`).toSorted()).toEqual([
    'accepted true',
    'rejected false',
    'rejected false',
    'rejected true',
  ])
})

inBrowser('a page that is reloaded before the device has a name still has its link', async () => {
  const { page } = await telephone()
  await page.addInitScript(`
    if (sessionStorage.length === 0) ServiceWorkerContainer.prototype.register = () => new Promise(() => {})
    sessionStorage.isReloaded = 'yes'`)
  await page.goto(link())
  await page.getByText('Checking').waitFor()
  await page.reload()
  await page.getByLabel('Name of this device').waitFor()
  expect(await page.evaluate('location.hash')).toBe('')
  await page.reload()
  await setUp(page)
  await page.getByText('Saved on this device').waitFor()
  expect(await page.evaluate('location.hash + JSON.stringify(sessionStorage)')).not.toContain(key)
})

inBrowser('an answer that comes too late changes no verdict, and the conflict is reported', async () => {
  const { own, page, code, attendeeId } = await scanning()
  await page.route('**/check-ins/batch', async (route) => {
    // The device has decided by its list by now, which may be read again at any time.
    await studio.query("insert into public.check_ins (event_id, code, device) values ($1, $2, 'Other gate')", [
      own.id,
      code,
    ])
    await route.fetch()
    await route.abort()
  })
  await typeCode(page, code)
  await shown(page, 'welcome')
  await page.unroute('**/check-ins/batch')
  await wake(page)
  await page.getByText('1 conflict').waitFor()
  const { rows } = await studio.query('select admitted from public.check_ins where attendee_id = $1 order by id', [
    attendeeId,
  ])
  expect(rows.map(({ admitted }) => admitted)).toEqual([null, null, true])
})

inBrowser(
  'a long queue goes up in batches that the server has time for, and one bad scan holds up no other',
  async () => {
    const own = await organisation.event()
    const { page } = await telephone()
    await page.goto(`${inject('apiUrl')}/door`)
    await page.getByText('Open the door link').waitFor()
    await expectReadable(page, ...schemes)
    const count = 600
    await page.evaluate(queueScans(own.id, count))
    await page.goto('about:blank')
    const sizes: number[] = []
    await page.route('**/check-ins/batch', async (route) => {
      const batch = route.request().postDataJSON() as { scans: unknown[] }
      sizes.push(batch.scans.length)
      // The first was too much, of the second there was time for a part.
      if (sizes.length === 1) {
        await route.fulfill({ status: 503, json: { error: { code: 'out_of_time', message: '', retryable: false } } })
      } else {
        await route.continue(sizes.length === 2 ? { postData: { ...batch, scans: batch.scans.slice(0, 20) } } : {})
      }
    })
    await page.goto(link(key, own.id))
    await setUp(page)
    await start(page)
    await uploaded(page)
    expect(sizes.slice(0, 3)).toEqual([500, 250, 500])
    await page.getByRole('button', { name: 'More' }).click()
    expect(await page.locator('.refused li').count()).toBe(1)
    const { rows } = await studio.query('select count(*)::int from public.check_ins where event_id = $1', [own.id])
    expect(rows[0].count).toBe(count - 1)
  },
)

/** Unknown codes; one is longer than a code can be. */
const queueScans = (eventId: string, count: number) => `new Promise((resolve) => {
  const opened = indexedDB.open('usher-door scans')
  opened.onsuccess = () => {
    const transaction = opened.result.transaction('scans', 'readwrite')
    for (let n = 0; n < ${count}; n++) {
      transaction.objectStore('scans').put({
        scan_id: 'scan ' + n, event_id: '${eventId}', check_in_point_id: null, direction: 'entry',
        scanned_at: new Date(Date.now() - 1000 * n).toISOString(), attendee_id: null,
        code: n === 550 ? 'x'.repeat(300) : 'code ' + n, name: null, admitted: false, sent: false, undo: false,
        check_in_id: null, refused: null,
      })
    }
    transaction.oncomplete = () => (opened.result.close(), resolve())
  }
})`

/** With one ticket for each answer. */
async function tickets() {
  const own = await organisation.event()
  const [guest, unpaid, cancelled] = [await own.guest(), await own.payer(), await own.guest()]
  await studio.query("update public.attendees set status = 'cancelled' where id = $1", [cancelled.attendeeId])
  await studio.query("update public.attendees set name = 'Zoë Åkesson' where id = $1", [guest.attendeeId])
  const vip = await own.ticketType({ name: 'VIP' })
  await row(
    `insert into public.check_in_points (organisation_id, event_id, name, ticket_type_ids)
     values ($1, $2, 'Lounge', array[$3::uuid]) returning id`,
    [organisation.id, own.id, vip],
  )
  await row(
    `insert into public.check_in_points (organisation_id, event_id, name, closes_at)
     values ($1, $2, 'Breakfast', now() - interval '1 minute') returning id`,
    [organisation.id, own.id],
  )
  await row(
    `insert into public.check_in_points (organisation_id, event_id, name) values ($1, $2, 'Kiosk') returning id`,
    [organisation.id, own.id],
  )
  return { own, guest, unpaid, cancelled, elsewhere: await event.guest() }
}

inBrowser('each answer can be read, a name is found, and a scan can be taken back', async () => {
  const { own, guest, unpaid, cancelled, elsewhere } = await tickets()
  const { page, context } = await telephone()
  const at = async (point: string, people: 'Coming in' | 'Leaving') => {
    await page.getByRole('button', { name: 'More' }).click()
    await page.getByRole('button', { name: 'Change the check-in point' }).click()
    await page.getByLabel('Check-in point').selectOption(point)
    await page.getByLabel(people).check()
    await start(page)
  }
  const isRead = Promise.withResolvers<void>()
  await page.route('**/door-list*', (route) => isRead.promise.then(() => route.continue()))
  await page.goto(link(key, own.id))
  await setUp(page)
  await page.getByText('Loading the guest list').waitFor()
  await expectReadable(page, ...schemes)
  isRead.resolve()
  await page.getByRole('button', { name: 'Start scanning' }).waitFor()
  await page.getByText('Choose a check-in point').waitFor()
  await expectReadable(page, ...schemes)
  await choose(page)
  await start(page)
  await page.getByText('No camera').waitFor()
  await expectReadable(page, 'dark')

  await page.getByRole('button', { name: 'Search' }).click()
  await page.getByRole('searchbox').fill('akesson zoe')
  await page.getByRole('button', { name: 'Zoë Åkesson' }).click()
  await page.getByRole('button', { name: 'Let in' }).click()
  await shown(page, 'welcome')
  await undoOf(page).click()
  await uploaded(page)
  // The search is there again for the next one of a group, and a scanner is heard.
  expect(await page.getByRole('searchbox').inputValue()).toBe('akesson zoe')
  await scanExternally(page, guest.code)
  await shown(page, 'welcome')
  await next(page)
  await page.getByRole('button', { name: 'Zoë Åkesson' }).getByText('In since').waitFor()
  await page.getByRole('button', { name: 'Close' }).click()
  await typeCode(page, guest.code)
  await shown(page, 'already_checked_in')
  for (const [code, reason] of [
    [guest.code, 'already_checked_in'],
    [unpaid.code, 'unpaid'],
    [cancelled.code, 'cancelled'],
    [elsewhere.code, 'wrong_event'],
    [`TEST-${guest.code}`, 'test_ticket'],
    ['https://example.com/?q=1', 'not_found'],
    ['x'.repeat(300), 'not_found'],
  ] as const) {
    await next(page)
    await typeCode(page, code)
    await shown(page, reason)
    if (reason === 'not_found')
      await page.locator('.verdict').getByText('Perhaps it was replaced: search the name.').waitFor()
    // The colours of a verdict are the same in either scheme.
    if (reason === 'already_checked_in') await expectReadable(page, 'dark')
  }
  await next(page)
  await at('Lounge', 'Coming in')
  await typeCode(page, guest.code)
  await shown(page, 'not_admitted_here')
  await page.locator('.verdict').getByText('Admitted at: Breakfast, Kiosk').waitFor()
  await next(page)
  const says = (text: string | RegExp) => page.locator('.verdict').getByText(text).count()
  const atBreakfast = async (people: 'Coming in' | 'Leaving', reason: string) => {
    await at('Breakfast', people)
    await typeCode(page, guest.code)
    await shown(page, reason)
    expect(await says(/Open until \d/)).toBe(reason === 'point_closed' ? 1 : 0)
    await next(page)
  }
  await atBreakfast('Coming in', 'point_closed')
  await atBreakfast('Leaving', 'not_inside')
  // Whoever goes out to smoke comes back, with and without a network.
  for (const offline of [false, true]) {
    await at('The whole event', 'Leaving')
    await context.setOffline(offline)
    await typeCode(page, guest.code)
    await shown(page, 'goodbye')
    expect(await says('re-entry')).toBe(0)
    await next(page)
    // Somebody who came in and went out is told apart from somebody who never came.
    await page.getByText('list from').waitFor()
    await typeCode(page, guest.code)
    await shown(page, 'not_inside')
    expect([await says('Went out'), await says('re-entry')]).toEqual([1, 0])
    await next(page)
    await at('The whole event', 'Coming in')
    await typeCode(page, guest.code)
    await shown(page, 'welcome')
    await next(page)
    await context.setOffline(false)
  }
  // Not where the point says so.
  await studio.query("insert into public.check_in_points (event_id, name) values ($1, 'Hall')", [own.id])
  await wake(page)
  await uploaded(page)
  await at('Hall', 'Coming in')
  await typeCode(page, guest.code)
  await shown(page, 'welcome')
  await next(page)
  await at('Hall', 'Leaving')
  await typeCode(page, guest.code)
  await shown(page, 'goodbye')
  await page.locator('.verdict').getByText('There is no re-entry here.').waitFor()
  await next(page)
  for (const offline of [false, true]) {
    await at('Hall', 'Coming in')
    await context.setOffline(offline)
    await typeCode(page, guest.code)
    await shown(page, 'already_checked_in')
    expect(await page.locator('#said').textContent()).toMatch(/Since .*\. Went out: .*\. There is no re-entry here/)
    await next(page)
    await context.setOffline(false)
  }

  // A point that is deleted or archived shuts its door, rather than letting people in elsewhere.
  for (const [point, end] of [
    ['Kiosk', 'delete from public.check_in_points where event_id = $1 and name = $2'],
    ['Lounge', "update public.check_in_points set status = 'archived' where event_id = $1 and name = $2"],
  ] as const) {
    if (point === 'Kiosk') {
      await page.getByRole('button', { name: 'More' }).click()
      await page.getByRole('button', { name: 'Change the check-in point' }).click()
    }
    await page.getByLabel('Check-in point').selectOption(point)
    await start(page)
    await studio.query(end, [own.id, point])
    await wake(page)
    await page.getByText('is no longer there').waitFor()
    // Asked for until it is chosen, whatever else is.
    await page.getByLabel('Leaving').check()
    await isWritten(page)
    await page.reload()
    await page.getByText('is no longer there').waitFor()
    expect(await page.getByLabel('Leaving').isChecked()).toBe(true)
    expect(await page.getByRole('button', { name: 'Start scanning' }).isDisabled()).toBe(true)
    await page.getByLabel('Coming in').check()
    await expectReadable(page, ...schemes)
  }
  await page.getByLabel('Check-in point').selectOption('The whole event')
  await start(page)
})

inBrowser('a revoked key, a full disk, a second tab and a cancelled event have their answers', async () => {
  const { own, guest, unpaid } = await tickets()
  const revoked = await organisation.key('checkin:write')
  const { page, context } = await telephone()
  await openDoor(page, link(revoked, own.id))
  await choose(page)
  await start(page)
  await context.setOffline(true)
  await typeCode(page, unpaid.code)
  await shown(page, 'unpaid')
  await studio.query('update public.api_keys set revoked_at = now() where prefix = left($1, 19)', [revoked])
  await context.setOffline(false)
  await page.getByText('withdrawn or has expired').waitFor()
  await page.getByText('1 scan is kept on this device').waitFor()
  await expectReadable(page, 'dark')
  // Nothing is left to let people in by, without a network either. What waits stays.
  expect(await keptTickets(page)).toBe(0)
  await context.setOffline(true)
  await page.reload()
  await page.getByText('1 scan on this device is waiting').waitFor()
  await context.setOffline(false)
  await page.getByLabel('Link').fill(link(key, own.id))
  await page.getByRole('button', { name: 'Open' }).click()
  await uploaded(page)
  await start(page)

  // No verdict without a scan on the disk.
  if (await page.locator('.verdict').isVisible()) await next(page)
  await context.setOffline(true)
  await page.evaluate(fillDisk)
  await typeCode(page, guest.code)
  await shown(page, 'not_kept')
  await page.evaluate('IDBObjectStore.prototype.put = whole')
  await next(page)
  await typeCode(page, guest.code)
  await shown(page, 'welcome')
  await next(page)

  const other = await context.newPage()
  await context.setOffline(false)
  await other.goto(link(key, own.id))
  await other.getByRole('button', { name: 'Go on here' }).click()
  await page.getByText('open in another tab').waitFor()
  await start(other)
  await uploaded(other)
  await studio.query("update public.events set status = 'cancelled' where id = $1", [own.id])
  await wake(other)
  await other.getByText('This event has been cancelled').waitFor()
  await typeCode(other, guest.code)
  await shown(other, 'event_cancelled')
  await next(other)
  await other.getByRole('button', { name: 'More' }).click()
  await other.getByText('Forget this device').click()
  await other.getByRole('button', { name: 'Wipe' }).click()
  await other.getByText('Open the door link').waitFor()
})

inBrowser('a new link has the rights of its own key, and nothing of an answer to the former', async () => {
  const { id } = await organisation.event()
  const walkIns = await organisation.key('checkin:write', 'events:read', 'attendees:write', 'orders:write')
  const { page } = await telephone()
  await openDoor(page, link(key, id))
  const isOpened = Promise.withResolvers<void>()
  await page.route('**/check-in-conflicts*', async (route) => {
    if (!route.request().headers().authorization?.endsWith(key)) return route.continue()
    await isOpened.promise
    await route.fulfill({ status: 401, json: { error: { code: 'invalid_api_key', message: 'Revoked' } } })
  })
  const isAsked = page.waitForRequest('**/check-in-conflicts*')
  await wake(page)
  await isAsked
  const answer = page.waitForResponse('**/me')
  await page.goto(link(walkIns, id))
  isOpened.resolve()
  await answer
  await start(page)
  const walkIn = page.getByRole('button', { name: 'Walk-in' })
  await walkIn.waitFor()
  await page.unroute('**/check-in-conflicts*')

  for (const [of, buttons] of [
    [key, 0],
    [walkIns, 1],
  ] as const) {
    await page.goto('about:blank')
    const isTold = page.waitForResponse('**/me')
    await page.goto(link(of, id))
    await isTold
    await start(page)
    await expect.poll(() => walkIn.count()).toBe(buttons)
  }
})

inBrowser('what a walk-in pays elsewhere is not asked for at the door, and does not shut it', async () => {
  const doorKey = await organisation.key('checkin:write', 'events:read', 'attendees:write', 'orders:write')
  const { own, page } = await scanning({ of: doorKey })
  const priced = await own.ticketType({ name: 'Priced', price: 2500 })
  await page.getByRole('button', { name: 'Walk-in' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Paula Prepaid')
  await page.getByRole('radio', { name: 'Priced' }).check()
  await page.getByRole('button', { name: 'Register and let in' }).click()
  const received = page.locator('.panel .main')
  await page.getByText('Take €25.00 from Paula Prepaid').waitFor()
  const { orderId } = await row<{ orderId: string }>(
    'select order_id as "orderId" from public.attendees where ticket_type_id = $1',
    [priced],
  )
  await pay(orderId, 1000)
  await received.click()
  await page.getByText('A part was paid elsewhere').waitFor()
  await page.getByText('Take €15.00 from Paula Prepaid').waitFor()
  await pay(orderId, 1500)
  await received.click()
  await page.getByText('Nothing is to be paid any more').waitFor()
  await page.getByLabel('Name', { exact: true }).waitFor()
  expect(await page.getByLabel('Name', { exact: true }).inputValue()).toBe('')
  expect(await keptWalkIn(page)).toBe(null)

  // What is older than the promised day is not kept on.
  await page.getByLabel('Name', { exact: true }).fill('Otto Old')
  await expect.poll(() => keptWalkIn(page)).toMatchObject({ typed: { name: 'Otto Old' } })
  await page.clock.setFixedTime(Date.now() + 24 * 3_600_000)
  await page.reload()
  await page.getByRole('button', { name: 'Start scanning' }).waitFor()
  expect(await keptWalkIn(page)).toBe(null)
})

const keptTickets = async (page: Page): Promise<unknown> => {
  await isWritten(page)
  return page.evaluate(`new Promise((resolve) => {
    const opened = indexedDB.open('usher-door')
    opened.onsuccess = () => {
      const counted = opened.result.transaction('tickets').objectStore('tickets').count()
      counted.onsuccess = () => (opened.result.close(), resolve(counted.result))
    }
  })`)
}

inBrowser('where there are points one is chosen before anything is scanned, by staff or by the link', async () => {
  const own = await organisation.event()
  const point = (name: string) =>
    row<{ id: string }>('insert into public.check_in_points (event_id, name) values ($1, $2) returning id', [
      own.id,
      name,
    ])
  const { page } = await telephone()
  await openDoor(page, link(key, own.id))
  // Without points there is nothing to choose. One that is made during a shift interrupts nobody, until it begins anew.
  await start(page)
  const [{ id: gateId }] = [await point('Gate'), await point('Kiosk')]
  await wake(page)
  await typeCode(page, 'unknown')
  await shown(page, 'not_found')
  await page.reload()
  const [chosen, begin] = [page.getByLabel('Check-in point'), page.getByRole('button', { name: 'Start scanning' })]
  const nameOfChosen = () => page.evaluate(`document.querySelector('select').selectedOptions[0].textContent`)
  await expect.poll(() => begin.isDisabled()).toBe(true)
  expect(await nameOfChosen()).toBe('—')
  // The direction is not the point.
  await page.getByLabel('Leaving').check()
  await page.getByLabel('Coming in').check()
  await isWritten(page)
  await page.reload()
  await expect.poll(() => begin.isDisabled()).toBe(true)
  await choose(page)
  expect(await begin.isDisabled()).toBe(false)
  await isWritten(page)
  await page.reload()
  await begin.waitFor()
  expect([await begin.isDisabled(), await chosen.inputValue()]).toEqual([false, ''])

  // A link may name one. Another one that is chosen afterwards stands.
  await page.goto('about:blank')
  await page.goto(`${link(key, own.id)}&point=${gateId}`)
  await begin.waitFor()
  await expect.poll(() => chosen.inputValue()).toBe(gateId)
  await choose(page, 'Kiosk')
  await isWritten(page)
  await page.reload()
  await begin.waitFor()
  expect(await nameOfChosen()).toBe('Kiosk')

  const { page: other } = await ownTelephone()
  await openDoor(other, `${link(key, own.id)}&point=${gateId}`)
  await other.reload()
  await other.getByRole('button', { name: 'Start scanning' }).waitFor()
  expect(await other.getByLabel('Check-in point').inputValue()).toBe(gateId)
  await start(other)
})

inBrowser('a key that ends without a network takes the list with it, by the clock of the server', async () => {
  const own = await organisation.event()
  const { code } = await own.guest()
  const ending = await organisation.key('checkin:write')
  await studio.query("update public.api_keys set expires_at = now() + interval '2 hours' where prefix = left($1, 19)", [
    ending,
  ])
  const { page, context } = await telephone()
  await page.clock.install({ time: Date.now() - 3_600_000 })
  await page.goto(link(ending, own.id))
  await setUp(page)
  await page.getByText('60 minutes slow').waitFor()
  await page.getByText('Saved on this device').waitFor()
  await page.evaluate('navigator.serviceWorker.ready')
  await context.setOffline(true)
  await page.clock.setFixedTime(Date.now() + 45 * 60_000)
  await page.reload()
  await start(page)
  await page.clock.setFixedTime(Date.now() + 61 * 60_000)
  await typeCode(page, code)
  await page.getByText('withdrawn or has expired').waitFor()
  expect(await keptTickets(page)).toBe(0)
  await page.reload()
  await page.getByText('Open the door link').waitFor()
})

inBrowser('a scan that the server refuses the key of lets nobody in', async () => {
  const losing = await organisation.key('checkin:write')
  const { page, code } = await scanning({ of: losing })
  // Whose scope is taken away.
  await studio.query("update public.api_keys set scopes = '{events:read}' where prefix = left($1, 19)", [losing])
  await typeCode(page, code)
  await page.getByText('withdrawn or has expired').waitFor()
  await page.getByText('No scans are waiting').waitFor()
  expect(await page.locator('#said').textContent()).toBe('')
  expect(await keptTickets(page)).toBe(0)
})

const keptWalkIn = async (page: Page): Promise<unknown> => {
  await isWritten(page)
  return page.evaluate(`new Promise((resolve) => {
    const opened = indexedDB.open('usher-door')
    opened.onsuccess = () => {
      const read = opened.result.transaction('kept').objectStore('kept').get('walk-in')
      read.onsuccess = () => (opened.result.close(), resolve(read.result ?? null))
    }
  })`)
}

inBrowser('whoever is let in, taken back and scanned again is let in, with and without a network', async () => {
  const { context, page, attendeeId, code } = await scanning()
  const undo = () => undoOf(page).click()

  // The second scan is there before the server knows that the first one was taken back.
  const undoing = page.waitForRequest('**/undo')
  await page.route('**/undo', async (route) => {
    await undoing
    await new Promise((resolve) => setTimeout(resolve, 300))
    await route.continue()
  })
  await typeCode(page, code)
  await shown(page, 'welcome')
  // From now on the clock is taken for one that is faster. Scans keep their order.
  await page.route('**/door-list*', async (route) => {
    const response = await route.fetch()
    const answer = await response.json()
    const server_time = new Date(Date.parse(answer.data.server_time) - 20_000).toISOString()
    await route.fulfill({ response, json: { ...answer, data: { ...answer.data, server_time } } })
  })
  await undo()
  await scanExternally(page, code)
  await shown(page, 'welcome')
  await undo()
  await uploaded(page)
  await page.unroute('**/undo')

  await scanExternally(page, code)
  await shown(page, 'welcome')
  await context.setOffline(true)
  await undo()
  await scanExternally(page, code)
  await shown(page, 'welcome')
  await page.getByText('2 scans to upload').waitFor()
  await context.setOffline(false)
  await uploaded(page)
  expect(await page.getByText('conflict').count()).toBe(0)
  const { rows } = await studio.query(
    'select result, admitted, undone_at is not null as is_undone from public.check_ins where attendee_id = $1 order by scanned_at',
    [attendeeId],
  )
  expect(rows).toEqual([
    { result: 'accepted', admitted: null, is_undone: true },
    { result: 'accepted', admitted: null, is_undone: true },
    { result: 'accepted', admitted: null, is_undone: true },
    { result: 'accepted', admitted: true, is_undone: false },
  ])
})

inBrowser('a guest of an event that is not today is let in, and it is said when it starts', async () => {
  const own = await organisation.event()
  const guests = await named(own, 'Ada Early', 'Bob Early')
  const { page, context } = await telephone()
  await studio.query(
    "update public.events set starts_at = now() + interval '11 hours', ends_at = now() + interval '5 days' where id = $1",
    [own.id],
  )
  await openDoor(page, link(key, own.id))
  expect(await page.getByText('Starts only').count()).toBe(0)
  await studio.query(
    "update public.events set starts_at = date_trunc('hour', now()) + interval '26 hours' where id = $1",
    [own.id],
  )
  await wake(page)
  // Such as "Fri, Nov 27, 10:00 AM".
  const starts = /Starts only on \w{3}, \w+ \d+, \d\d:00/
  await page.getByText(starts).waitFor()
  await start(page)
  for (const [i, { code }] of guests.entries()) {
    await context.setOffline(i === 1)
    await typeCode(page, code)
    await shown(page, 'welcome')
    await page.locator('.verdict').getByText(starts).waitFor()
    expect(await page.locator('#said').textContent()).toMatch(starts)
    await next(page)
  }
})

/** Guests by name, as the door finds them. */
async function named(own: TestEvent, ...names: string[]) {
  return Promise.all(
    names.map(async (name) => {
      const guest = await own.guest()
      await studio.query('update public.attendees set name = $2 where id = $1', [guest.attendeeId, name])
      return { ...guest, name }
    }),
  )
}

inBrowser(
  'whoever is taken back is named, also after the next guest, after a reload and from another telephone',
  async () => {
    const own = await organisation.event()
    const [ada, zoe, bob] = await named(own, 'Ada Wrong', 'Zoe Next', 'Bob Late')
    const unpaid = await own.payer()
    const isIn = async (guest?: { attendeeId: string }) =>
      (
        await row<{ is_in: boolean }>('select checked_in as is_in from public.attendees where id = $1', [
          guest?.attendeeId,
        ])
      ).is_in
    const said = () => page.locator('#said').textContent()
    const { page, context } = await telephone()
    await openDoor(page, link(key, own.id))
    await page.evaluate('navigator.serviceWorker.ready')
    await start(page)
    const undo = page.getByRole('button', { name: 'Undo', exact: true })
    const takeBack = page.getByRole('button', { name: 'Undo check-in' })

    // At once: nobody else was there since.
    await typeCode(page, zoe?.code ?? '')
    await shown(page, 'welcome')
    await next(page)
    await undo.click()
    await page.locator('.taken-back', { hasText: 'Taken back: Zoe Next' }).waitFor()
    expect(await said()).toBe('Taken back: Zoe Next')
    await expect.poll(() => isIn(zoe)).toBe(false)

    // Somebody was refused since: it says who is meant, and asks.
    await typeCode(page, ada?.code ?? '')
    await shown(page, 'welcome')
    await next(page)
    await typeCode(page, unpaid.code)
    await shown(page, 'unpaid')
    await next(page)
    await undo.click()
    await page.getByRole('heading', { name: 'Ada Wrong' }).waitFor()
    expect(await isIn(ada)).toBe(true)
    await expectReadable(page, ...schemes)
    await takeBack.click()
    await page.getByText('Taken back: Ada Wrong').first().waitFor()
    expect(await said()).toBe('Taken back: Ada Wrong')
    await expect.poll(() => isIn(ada)).toBe(false)

    // After a reload, without a network too: what the server knows of, and what it does not.
    const find = async (on: Page, name: string) => {
      await on.getByRole('button', { name: 'Search' }).click()
      await on.getByRole('searchbox').fill(name)
      await on.getByRole('button', { name }).click()
    }
    await typeCode(page, ada?.code ?? '')
    await shown(page, 'welcome')
    await next(page)
    await page.getByText('list from').waitFor()
    await context.setOffline(true)
    await typeCode(page, bob?.code ?? '')
    await shown(page, 'welcome')
    await isWritten(page)
    await page.reload()
    await start(page)
    for (const name of ['Ada Wrong', 'Bob Late']) {
      await find(page, name)
      await takeBack.click()
      await page.locator('.panel').getByText(`Taken back: ${name}`).waitFor()
      await page.getByRole('button', { name }).click()
      await page.getByText('Not in yet').waitFor()
      await page.getByRole('button', { name: 'Back' }).click()
      await page.getByRole('button', { name: 'Close' }).click()
    }
    await context.setOffline(false)
    await wake(page)
    await uploaded(page)
    expect([await isIn(ada), await isIn(bob)]).toEqual([false, false])

    // Another telephone, whose list an older page kept, let in whom this one has never seen.
    await studio.query("insert into public.check_ins (event_id, code, device) values ($1, $2, 'Other gate')", [
      own.id,
      bob?.code,
    ])
    await wake(page)
    await find(page, 'Bob Late')
    await takeBack.waitFor()
    await page.evaluate(asOlderPage)
    await page.reload()
    await page.getByText('Saved on this device').waitFor()
    await start(page)
    await find(page, 'Bob Late')
    await takeBack.click()
    await expect.poll(() => isIn(bob)).toBe(false)
  },
)

/** The list as it was kept before entries had ids. */
const asOlderPage = `new Promise((resolve) => {
  const opened = indexedDB.open('usher-door')
  opened.onsuccess = () => {
    const transaction = opened.result.transaction(['kept', 'tickets'], 'readwrite')
    const [kept, tickets] = ['kept', 'tickets'].map((name) => transaction.objectStore(name))
    kept.get('door').onsuccess = ({ target }) => {
      const { form, ...older } = target.result
      kept.put(older, 'door')
    }
    tickets.getAll().onsuccess = ({ target }) => {
      for (const ticket of target.result) {
        const entries = ticket.entries.map(({ check_in_id, ...older }) => older)
        tickets.put({ ...ticket, entries })
      }
    }
    transaction.oncomplete = () => (opened.result.close(), resolve())
  }
})`

inBrowser('a list that was asked for before a scan does not hide it', async () => {
  const { context, page, code } = await scanning()
  await page.getByText('list from').waitFor()
  // The list is read, and reaches the page after the scan.
  let reach: () => void = () => {}
  const mayReach = new Promise<void>((resolve) => {
    reach = resolve
  })
  const isRead = new Promise<void>((resolve) => {
    void page.route('**/door-list*', async (route) => {
      const url = new URL(route.request().url())
      url.searchParams.delete('cursor')
      const response = await route.fetch({ url: url.href })
      resolve()
      await mayReach
      await route.fulfill({ response })
    })
  })
  await wake(page)
  await isRead
  await typeCode(page, code)
  await shown(page, 'welcome')
  await next(page)
  // Which the page asks for once it has the list.
  const isApplied = page.waitForRequest('**/check-in-conflicts*')
  reach()
  await isApplied
  await context.setOffline(true)
  await scanExternally(page, code)
  await shown(page, 'already_checked_in')
})

inBrowser('an undoing that the server does not take yet holds up nobody else', async () => {
  const { page, first, second } = await scanning()
  await page.route('**/undo', (route) => route.abort())
  await typeCode(page, first.code)
  await shown(page, 'welcome')
  await undoOf(page).click()
  await page.getByText('1 scan to upload').waitFor()
  await scanExternally(page, second.code)
  await shown(page, 'welcome')
  const isIn = ({ attendeeId }: typeof first) =>
    row('select exists (select from public.check_ins where attendee_id = $1 and undone_at is null) as is_in', [
      attendeeId,
    ])
  await expect.poll(() => isIn(second)).toEqual({ is_in: true })
  expect(await isIn(first)).toEqual({ is_in: true })
  await page.unroute('**/undo')
  await uploaded(page)
  expect(await isIn(first)).toEqual({ is_in: false })
})

inBrowser('a scan that is undone while the list is being written is undone on the server', async () => {
  const { page, context, code, attendeeId } = await scanning()
  await page.evaluate(holdList)
  await typeCode(page, code)
  await shown(page, 'welcome')
  await context.setOffline(true)
  await undoOf(page).click()
  await page.getByText('1 scan to upload').waitFor()
  await page.evaluate('isHeld = false')
  // The entry, and that there is none: the scan is dropped between them.
  await becomesTrue(page, 'writes >= 2')
  await page.reload()
  await start(page)
  await page.getByText('1 scan to upload').waitFor()
  await context.setOffline(false)
  await uploaded(page)
  const { rows } = await studio.query(
    'select undone_at is not null as undone from public.check_ins where attendee_id = $1',
    [attendeeId],
  )
  expect(rows).toEqual([{ undone: true }])
})

/** As a long list does that is being written. */
const holdList = `new Promise((resolve) => {
  globalThis.isHeld = true
  globalThis.writes = 0
  const { put } = IDBObjectStore.prototype
  IDBObjectStore.prototype.put = function (...args) {
    const request = put.apply(this, args)
    if (this.name === 'tickets') request.addEventListener('success', () => writes++)
    return request
  }
  const opened = indexedDB.open('usher-door')
  opened.onsuccess = () => {
    const tickets = opened.result.transaction('tickets', 'readwrite').objectStore('tickets')
    const hold = () => {
      if (isHeld) tickets.count().onsuccess = hold
      else opened.result.close()
    }
    hold()
    resolve()
  }
})`

const fillDisk = `
  var whole = IDBObjectStore.prototype.put
  IDBObjectStore.prototype.put = () => { throw new DOMException('full', 'QuotaExceededError') }`
