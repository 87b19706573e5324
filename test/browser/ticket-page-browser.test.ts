// The ticket page in a browser: what its holder sees in each state, without a network, and on paper.

import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, inject, onTestFinished } from 'vitest'
import { hasBrowser } from '../../scripts/support/browser.ts'
import { wordsOf } from '../../src/guests/words/index.ts'
import { locales } from '../../src/operations/locales.ts'
import { qrPictures } from '../../src/operations/ticket-qr.ts'
import { becomesTrue, inBrowser, sharedBrowser } from '../support/browser.ts'
import { row, studio } from '../support/database.ts'
import { pendingChange } from '../support/opt-outs.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { readPng } from '../support/qr.ts'
import { atWidth, expectReadable, expectScheme, outline } from './accessibility.ts'

const viewport = { width: 390, height: 844 }
let browser: Browser
let organisation: TestOrganisation
let event: TestEvent
let shared: BrowserContext
beforeAll(async () => {
  if (!hasBrowser) return
  organisation = await createOrganisation()
  event = await organisation.event()
  browser = await sharedBrowser()
  shared = await browser.newContext({ viewport })
})
afterAll(() => shared?.close())

async function pageIn(context: BrowserContext): Promise<{ page: Page; complaints: string[] }> {
  const page = await context.newPage()
  onTestFinished(() => page.close())
  page.setDefaultTimeout(120_000)
  const complaints: string[] = []
  page.on('pageerror', ({ message }) => complaints.push(message))
  page.on('console', (message) => {
    if (message.type() === 'error' && !/ERR_INTERNET_DISCONNECTED|status of 404/.test(message.text())) {
      complaints.push(message.text())
    }
  })
  return { page, complaints }
}

/** What the code on the screen says: only that part of it is looked at, for reading a picture takes longer than drawing it. */
async function codeOnScreen(page: Page): Promise<string | undefined> {
  const clip = await page.locator('figure').boundingBox()
  if (clip === null) return undefined
  expect(clip.y + clip.height, 'without scrolling').toBeLessThanOrEqual(viewport.height)
  return readPng(await page.screenshot({ clip }))
}

const linkOf = async (attendeeId: string): Promise<string> => {
  const { token } = await row<{ token: string }>('select ticket_token as token from public.attendees where id = $1', [
    attendeeId,
  ])
  return `${inject('apiUrl')}/t/${token}`
}
const scan = (of: TestEvent, code: string) =>
  studio.query('insert into public.check_ins (event_id, code) values ($1, $2)', [of.id, code])
const setStatus = (table: string, id: string, status: string) =>
  studio.query(`update public.${table} set status = $2 where id = $1`, [id, status])
/** As the browser does when the telephone is unlocked. */
const wake = (page: Page) => page.evaluate(`dispatchEvent(new Event('online'))`)

inBrowser('each state is said in a sentence that can be read, with the code where it admits', async () => {
  const cancelledEvent = await organisation.event()
  const [valid, inside, unpaid, cancelled, ofCancelled] = await Promise.all([
    event.guest(),
    event.guest(),
    event.payer(),
    event.guest(),
    cancelledEvent.guest(),
  ])
  await scan(event, inside.code)
  await setStatus('attendees', cancelled.attendeeId, 'cancelled')
  await setStatus('events', cancelledEvent.id, 'cancelled')
  await studio.query(`update public.organisations set reply_to_email = 'desk@example.com' where id = $1`, [
    organisation.id,
  ])
  await studio.query(
    `update public.events set venue_name = 'Old Town Hall', venue_address = '1 Market Square', venue_city = 'Ghent',
       venue_country = 'BE', online_url = 'https://example.com/live' where id = $1`,
    [event.id],
  )
  const { page, complaints } = await pageIn(shared)
  for (const [guest, sentence, admits] of [
    [valid, 'Show this code at the entrance.', true],
    [inside, 'Checked in: ', true],
    [unpaid, 'Awaiting payment.', false],
    [cancelled, 'This ticket has been cancelled', false],
    [ofCancelled, 'This event has been cancelled.', false],
    [{ attendeeId: '', code: '' }, 'This link is not valid, or no longer valid.', false],
  ] as const) {
    await page.goto(
      guest.attendeeId === '' ? `${inject('apiUrl')}/t/${'0'.repeat(32)}` : await linkOf(guest.attendeeId),
    )
    await page.getByText(sentence).waitFor()
    await expectReadable(page, {
      also: async (colorScheme) => {
        await expectScheme(page, colorScheme)
        // The page as it stands on the screen, in the dark as well.
        if (admits) expect(await codeOnScreen(page), sentence).toBe(guest.code)
        else expect(await page.locator('figure').count(), sentence).toBe(0)
      },
    })
    for (const width of [320, 1280]) {
      await atWidth(page, width)
      expect(await outline(page)).toEqual({ overflow: false, mains: 1, headings: 1 })
    }
    await atWidth(page, 390)
    expect(await page.getByText('Add to calendar').count(), sentence).toBe(admits || guest === unpaid ? 1 : 0)
  }
  expect(complaints).toEqual([])

  await page.goto(await linkOf(valid.attendeeId))
  const links = await page.locator('main a').evaluateAll((all) => all.map((a) => a.getAttribute('href') ?? ''))
  expect(links.map((link) => link.replace(/\?.*/, ''))).toEqual([
    'https://example.com/live',
    'https://www.google.com/maps/search/',
    expect.stringMatching(/^[0-9a-f]{32}\/ticket\.ics$/),
    'https://calendar.google.com/calendar/render',
    'mailto:desk@example.com',
  ])
  const heights = await page.locator('main a').evaluateAll((all) => all.map((a) => a.getBoundingClientRect().height))
  expect(Math.min(...heights)).toBeGreaterThanOrEqual(44)
  expect(new URL(links[1] as string).searchParams.get('query')).toBe('Old Town Hall, 1 Market Square, Ghent, Belgium')
  expect(new URL(links[3] as string).searchParams.get('dates')).toMatch(/^\d{8}T\d{6}Z\/\d{8}T\d{6}Z$/)
  expect(await page.context().cookies()).toEqual([])
})

inBrowser('after the event the page says so, and neither to show the code nor to note the date', async () => {
  const over = await organisation.event()
  const [guest, unpaid] = await Promise.all([over.guest(), over.payer()])
  await studio.query('update public.attendees set name = $2, company = $2 where id = $1', [
    guest.attendeeId,
    'غريس هوبر',
  ])
  await studio.query(
    `update public.events set starts_at = now() - interval '3 hours', ends_at = now() - interval '1 hour' where id = $1`,
    [over.id],
  )
  const { page } = await pageIn(shared)
  for (const { attendeeId } of [guest, unpaid]) {
    await page.goto(await linkOf(attendeeId))
    expect(await page.locator('.status').allTextContents()).toEqual(['This event is over.'])
    expect(await page.getByText('calendar').count()).toBe(0)
  }
  await page.goto(await linkOf(guest.attendeeId))
  const sides = await page.evaluate(
    `[...document.querySelectorAll('.holder, .company, .contact, dd')].map((each) => getComputedStyle(each).textAlign)`,
  )
  expect(new Set(sides as string[])).toEqual(new Set(['left']))
})

inBrowser('the page is in the language of the event and the colours of the organiser', async () => {
  const own = await createOrganisation()
  const theirs = await own.event()
  const { attendeeId } = await theirs.guest()
  const logo = await qrPictures.png.draw({ ticket_code: 'logo' })
  await studio.query(
    `update public.organisations set accent_colour = '#ffe14d', logo_url = 'https://example.com/logo.png' where id = $1`,
    [own.id],
  )
  const { page, complaints } = await pageIn(shared)
  await page.route('https://example.com/logo.png', (route) => route.fulfill({ contentType: 'image/png', body: logo }))
  for (const locale of locales) {
    await studio.query('update public.events set locale = $2 where id = $1', [theirs.id, locale])
    await page.goto(await linkOf(attendeeId))
    await page.locator('main.valid').waitFor()
    await page.getByText(wordsOf(locale).page.valid).waitFor()
    expect(await page.locator('html').getAttribute('lang')).toBe(locale)
    await atWidth(page, 320)
    expect(await outline(page), locale).toEqual({ overflow: false, mains: 1, headings: 1 })
  }
  await expectReadable(page)
  expect(await page.evaluate(`getComputedStyle(document.querySelector('header')).backgroundColor`)).toBe(
    'rgb(255, 225, 77)',
  )
  expect(await page.evaluate(`document.querySelector('.logo').naturalWidth`)).toBe(480)
  expect(complaints).toEqual([])
})

inBrowser('an open page learns what happens, opens without a network, and dies with its token', async () => {
  const guest = await event.guest()
  const { page, complaints } = await pageIn(shared)
  onTestFinished(() => shared.setOffline(false))
  const link = await linkOf(guest.attendeeId)
  await page.goto(link)
  await page.evaluate('navigator.serviceWorker.ready')
  await becomesTrue(page, 'caches.match(location.pathname).then(Boolean)')
  await scan(event, guest.code)
  await wake(page)
  await page.locator('main.checked_in').waitFor()

  await shared.setOffline(true)
  await page.reload()
  await page.locator('main.checked_in').waitFor()
  await page.getByText('There is no connection, so').waitFor()
  expect(await codeOnScreen(page)).toBe(guest.code)
  await shared.setOffline(false)
  await wake(page)
  await page.getByText('There is no connection, so').waitFor({ state: 'hidden' })

  // As proxies answer while nothing is behind them.
  for (const status of [404, 200]) {
    await shared.route(link, (route) => route.fulfill({ status, contentType: 'text/html', body: 'Back soon' }))
    await wake(page)
    await page.getByText('There is no connection, so').waitFor()
    await page.reload()
    await page.locator('main.checked_in').waitFor()
    await shared.unroute(link)
    await wake(page)
    await page.getByText('There is no connection, so').waitFor({ state: 'hidden' })
  }

  await studio.query('update public.check_ins set undone_at = now() where attendee_id = $1', [guest.attendeeId])
  await studio.query('update public.attendees set ticket_code = null where id = $1', [guest.attendeeId])
  await wake(page)
  await page.locator('main.none').waitFor()
  expect(await page.evaluate(`caches.match(location.pathname).then(Boolean)`)).toBe(false)
  await page.goto(await linkOf(guest.attendeeId))
  await page.locator('main.valid').waitFor()
  expect(complaints).toEqual([])
})

inBrowser('the page needs no script, and is printed on one A4 page, however long its texts are', async () => {
  const own = await organisation.event()
  const { attendeeId, code } = await own.guest()
  const long = (length: number) => 'Wissenschaftskommunikation '.repeat(20).slice(0, length).trim()
  await studio.query(
    `update public.events set name = $2, venue_name = $2, venue_address = $3, venue_city = $4 where id = $1`,
    [own.id, long(200), long(200), long(100)],
  )
  await studio.query('update public.attendees set name = $2, company = $2 where id = $1', [attendeeId, long(200)])
  const context = await browser.newContext({ javaScriptEnabled: false, colorScheme: 'dark', viewport })
  onTestFinished(() => context.close())
  const { page } = await pageIn(context)
  await page.goto(await linkOf(attendeeId))
  await page.getByText('Show this code at the entrance.').waitFor()
  await page.emulateMedia({ media: 'print' })
  expect(readPng(await page.screenshot({ fullPage: true }))).toBe(code)
  const pdf = await page.pdf({ preferCSSPageSize: true })
  expect(pdf.toString('latin1').match(/\/Type\s*\/Page\b/g)).toHaveLength(1)
  const [, width, height] = /\/MediaBox\s*\[0 0 ([\d.]+) ([\d.]+)\]/.exec(pdf.toString('latin1')) ?? []
  expect([Math.round(Number(width)), Math.round(Number(height))]).toEqual([595, 842])
})

inBrowser('news of an event is switched off by the link of an e-mail, and on by the ticket page', async () => {
  const guest = await event.guest()
  await studio.query("update public.events set name = 'Moved' where id = $1", [event.id])
  await studio.query('select public.notify_attendees($1)', [event.id])
  // That of whichever ticket of the address the e-mail is to.
  const { attendee_id } = await row<{ attendee_id: string }>(
    `select e.attendee_id from public.emails e join public.attendees a on a.id = e.attendee_id
     where a.event_id = $1 and e.kind = 'event_changed'`,
    [event.id],
  )
  const { page, complaints } = await pageIn(shared)
  await page.goto((await pendingChange(attendee_id, inject('apiUrl'))).opt_out_url)
  await expectReadable(page)
  expect(await outline(page)).toEqual({ overflow: false, mains: 1, headings: 1 })
  await page.getByRole('button', { name: 'Stop these e-mails' }).click()
  await page.getByText('You will receive no more news').waitFor()

  await page.goto(await linkOf(guest.attendeeId))
  await page.getByText('News by e-mail: off').waitFor()
  await page.getByRole('button', { name: 'Switch on' }).click()
  await page.getByText('News by e-mail: on').waitFor()
  expect(page.url()).toBe(await linkOf(guest.attendeeId))
  await page.getByRole('button', { name: 'Switch off' }).click()
  await page.getByText('News by e-mail: off').waitFor()
  expect(complaints).toEqual([])
})

/** How often the page asked for the lock that keeps the screen on, and whether it holds one. */
const locks = `Object.defineProperty(navigator, 'wakeLock', { value: { asked: 0, held: false, request() {
  this.asked++
  this.held = true
  return Promise.resolve({ release: () => { this.held = false } })
} } })`

inBrowser('the code fills the screen, which stays on, until Escape or a tap, without a network as well', async () => {
  const { attendeeId, code } = await event.guest()
  const { page, complaints } = await pageIn(shared)
  await page.addInitScript(locks)
  await page.goto(await linkOf(attendeeId))
  const button = page.getByRole('button', { name: 'Show full-screen' })
  const held = () => page.evaluate('navigator.wakeLock.held')
  await page.context().setOffline(true)
  try {
    await expectReadable(page, {
      part: 'figure',
      also: async () => {
        await button.click()
        await becomesTrue(page, 'document.fullscreenElement !== null && navigator.wakeLock.held')
        expect(await page.locator('figure').boundingBox()).toEqual({ x: 0, y: 0, ...page.viewportSize() })
        expect(await page.locator('.holder').isVisible()).toBe(false)
        expect(await codeOnScreen(page)).toBe(code)
        await page.getByRole('button', { name: 'Close' }).click()
        await becomesTrue(page, 'document.fullscreenElement === null && !navigator.wakeLock.held')
        await button.waitFor()
      },
    })
  } finally {
    await page.context().setOffline(false)
  }
  await button.click()
  await becomesTrue(page, 'document.fullscreenElement !== null')
  await page.evaluate(`document.dispatchEvent(new Event('visibilitychange'))`)
  await becomesTrue(page, 'navigator.wakeLock.asked === 4')
  await page.keyboard.press('Escape')
  await becomesTrue(page, '!navigator.wakeLock.held')
  await button.waitFor()
  expect(await held()).toBe(false)
  expect(complaints).toEqual([])
})

inBrowser('the button is there where the browser can do either, and not where it can do neither', async () => {
  const { attendeeId, code } = await event.guest()
  const hides = "Object.defineProperty(Document.prototype, 'fullscreenEnabled', { value: false })"
  const noLock = 'delete Navigator.prototype.wakeLock'
  for (const [scripts, isShown] of [
    [[hides, noLock], false],
    [[hides, locks], true],
  ] as const) {
    const { page } = await pageIn(shared)
    for (const script of scripts) await page.addInitScript(script)
    await page.addInitScript('Element.prototype.requestFullscreen = undefined')
    await page.goto(await linkOf(attendeeId))
    const button = page.locator('figure button')
    expect(await button.isVisible()).toBe(isShown)
    if (!isShown) continue
    await button.click()
    await becomesTrue(page, 'navigator.wakeLock.held')
    expect(await codeOnScreen(page)).toBe(code)
    await page.mouse.click(200, 400)
    await becomesTrue(page, '!navigator.wakeLock.held')
  }
})
