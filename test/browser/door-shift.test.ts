// A shift at the door, in German, on a small telephone whose camera films codes: what staff meet, and what the server has afterwards.

import { createServer } from 'node:http'
import type { BrowserContext, Page } from 'playwright-core'
import { expect, inject, onTestFinished } from 'vitest'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import { becomesTrue, inBrowser, sharedBrowser } from '../support/browser.ts'
import { row, studio } from '../support/database.ts'
import { createOrganisation, type TestEvent } from '../support/organisation.ts'
import { linesOfCode } from '../support/ticket-film.ts'
import { expectReadable, outline, schemes } from './accessibility.ts'
import { isWritten } from './kept.ts'

/** A camera that films what the test holds before it, and a speaker that is silent. */
const devices = `
  AudioContext = class extends OfflineAudioContext {
    constructor() { super(1, 48_000, 48_000) }
    async resume() {}
  }
  const canvas = Object.assign(document.createElement('canvas'), { width: 480, height: 480 })
  const context = canvas.getContext('2d')
  globalThis.filmed = []
  // Of the 480 pixels of the picture.
  globalThis.heldWidth = 400
  setInterval(() => {
    context.fillStyle = filmed.length === 0 ? '#666' : '#fff'
    context.fillRect(0, 0, 480, 480)
    context.fillStyle = '#000'
    const side = Math.floor(heldWidth / filmed.length)
    const edge = Math.floor((480 - side * filmed.length) / 2)
    filmed.forEach((line, y) => [...line].forEach((dark, x) => {
      if (dark === '1') context.fillRect(edge + x * side, edge + y * side, side, side)
    }))
  }, 40)
  navigator.mediaDevices.getUserMedia = async () => canvas.captureStream(25)`

async function telephone(locale = 'de-DE') {
  const viewport = { width: 360, height: 640 }
  const context = await (await sharedBrowser()).newContext({ viewport, locale, reducedMotion: 'reduce' })
  onTestFinished(() => context.close())
  await context.addInitScript(devices)
  const page = await context.newPage()
  page.setDefaultTimeout(120_000)
  const hold = (code: string | null) =>
    page.evaluate(`filmed = ${JSON.stringify(code === null ? [] : linesOfCode(code))}`)
  const button = (name: string) => page.getByRole('button', { name, exact: true })
  return {
    context,
    page,
    hold,
    button,
    verdict: (reason: string) => page.locator(`.verdict[data-reason=${reason}]`).waitFor(),
    async setUp(device: string) {
      await page.getByLabel('Name dieses Geräts').fill(device)
      await button('Weiter').click()
      await page.getByText('Auf diesem Gerät gespeichert').waitFor()
    },
  }
}

/** As a scanner does: keys that come one by one from here would be a person's on a busy machine. */
const typeFast = (code: string) => `for (const key of ${JSON.stringify([...code, 'Enter'])})
  document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))`

/** With the rules of axe in both schemes, nothing cut off, and targets for a thumb. */
async function look(page: Page): Promise<void> {
  expect(await outline(page)).toEqual({ overflow: false, mains: 1, headings: 1 })
  await expectReadable(page, { inSchemes: schemes })
  expect(await page.evaluate(smallTargets)).toEqual([])
}

const smallTargets = `[...document.querySelectorAll('button, select, summary, .choice, input:not([type=radio], [type=checkbox])')]
  .filter((each) => each.checkVisibility() && !each.closest('[inert]'))
  .map((each) => [each.textContent.trim() || each.name, each.getBoundingClientRect()])
  .filter(([, { width, height }]) => width < 44 || height < 44)
  .map(([name]) => name)`

const isWithin = (page: Page, selector: string) =>
  page.evaluate(`(() => {
    const { top, bottom, left, right } = document.querySelector('${selector}').getBoundingClientRect()
    return top >= 0 && left >= 0 && bottom <= innerHeight && right <= innerWidth
  })()`)

/** Fifty guests, three Müllers, and two who may not come in. */
async function guests(event: TestEvent) {
  const named = async (name: string, guest: Awaited<ReturnType<TestEvent['guest']>>, company: string | null = null) => {
    await studio.query('update public.attendees set name = $2, company = $3 where id = $1', [
      guest.attendeeId,
      name,
      company,
    ])
    return { ...guest, name }
  }
  const many = await Promise.all(
    Array.from({ length: 50 }, async (_, i) => named(`Gast ${i + 1}`, await event.guest())),
  )
  const long = 'Maria-Magdalena Theodora Wilhelmine von und zu Hohenlohe-Waldenburg-Schillingsfürst-Bartenstein'
  const longest = await named(long, await event.guest(), `${long} Gesellschaft mit beschränkter Haftung & Co. KG`)
  await named('Anna Schmüller', await event.guest())
  await named('Ulrike Mueller', await event.guest())
  const mueller = await named('Jürgen Müller', await event.guest(), 'Söhne GmbH')
  const unpaid = await named('Ada Unbezahlt', await event.payer())
  const cancelled = await named('Karl Storniert', await event.guest())
  await studio.query("update public.attendees set status = 'cancelled' where id = $1", [cancelled.attendeeId])
  return { many, longest, mueller, unpaid, cancelled }
}

inBrowser('a shift: kept, offline, reloaded, fifty scans, a search, a conflict, and somebody with cash', async () => {
  const organisation = await createOrganisation()
  await studio.query("update public.organisations set accent_colour = '#ffd400' where id = $1", [organisation.id])
  const event = await organisation.event()
  await studio.query('update public.events set starts_at = now() where id = $1', [event.id])
  const { many, longest, mueller, unpaid, cancelled } = await guests(event)
  const priced = await event.ticketType({ name: 'Abendkasse', price: 2500 })
  await row(
    `insert into public.check_in_points (organisation_id, event_id, name, admission)
       values ($1, $2, 'VIP-Lounge', 're_entry') returning id`,
    [organisation.id, event.id],
  )
  const key = await organisation.key('checkin:write', 'events:read', 'attendees:write', 'orders:write')
  const link = `${inject('apiUrl')}/door#event=${event.id}&key=${key}`
  const [ada, bob] = [await telephone(), await telephone()]

  // Asked once; kept.
  await ada.page.goto(link)
  await ada.page.getByLabel('Name dieses Geräts').waitFor()
  await look(ada.page)
  await ada.setUp('Nordeingang, Ada')
  await ada.page.getByLabel('Check-in-Punkt').selectOption('VIP-Lounge')
  await ada.page.getByLabel('Gehen').check()
  await look(ada.page)
  expect(await ada.page.evaluate('getComputedStyle(document.querySelector("header")).backgroundColor')).toBe(
    'rgb(255, 212, 0)',
  )
  // Long words of a language are divided where the browser knows how.
  expect(
    await ada.page.evaluate("[document.documentElement.lang, getComputedStyle(document.querySelector('h1')).hyphens]"),
  ).toEqual(['de', 'auto'])
  await ada.page.evaluate('navigator.serviceWorker.ready')

  // The battery dies, and the network is gone: point and direction are as they were, and nobody is asked again.
  await ada.context.setOffline(true)
  await ada.page.reload()
  await ada.button('Scannen').click()
  expect(await ada.page.locator('main header').textContent()).toMatch(/VIP-Lounge\s+← Gehen\s+0 von 55 sind da/)
  await ada.hold(many[0]?.code ?? '')
  await ada.verdict('not_inside')
  await ada.hold(null)
  await ada.button('Weiter').click()
  await ada.button('Mehr').click()
  await look(ada.page)
  await ada.button('Check-in-Punkt wechseln').click()
  expect(await ada.page.getByLabel('Gehen').isChecked()).toBe(true)
  await ada.page.getByLabel('Check-in-Punkt').selectOption('Die ganze Veranstaltung')
  await ada.page.getByLabel('Kommen').check()
  await ada.button('Scannen').click()
  await ada.page.getByText('von 55 gekommen').waitFor()
  await look(ada.page)

  // A refusal stands, whoever comes next into view.
  await ada.hold(unpaid.code)
  await ada.verdict('unpaid')
  await look(ada.page)
  await ada.hold(many[0]?.code ?? '')
  await ada.page.evaluate('new Promise((done) => setTimeout(done, 1_500))')
  await ada.verdict('unpaid')
  await ada.page.keyboard.press('Escape')
  await ada.verdict('welcome')
  expect(await ada.page.locator('#said').textContent()).toMatch(/^Willkommen\. Gast 1\. General\. Offline: /)
  // An acceptance gives way by itself.
  await ada.hold(cancelled.code)
  await ada.verdict('cancelled')
  await ada.button('Weiter').click()
  for (const [i, { code, name }] of many.slice(1).entries()) {
    // A few by the camera, which looks at nothing when the others are typed by a scanner.
    if (i < 8) await ada.hold(code)
    else if (i === 8) await ada.hold(null)
    if (i >= 8) await ada.page.evaluate(typeFast(code))
    await ada.page.locator('.verdict[data-reason=welcome] .name', { hasText: new RegExp(`^${name}$`) }).waitFor()
    await ada.page.keyboard.press('Escape')
  }
  await ada.hold(longest.code)
  await ada.verdict('welcome')
  await look(ada.page)
  // The type of the ticket, whatever company and name are called.
  for (const part of ['.sign', '.verdict h2', '.verdict .chip', '.verdict .next'])
    expect(await isWithin(ada.page, part), part).toBe(true)
  expect(await ada.page.locator('.verdict .chip').textContent()).toBe('General')
  await ada.button('Weiter').click()
  await ada.hold(null)

  // Somebody whose telephone is dead.
  await ada.button('Suchen').click()
  await ada.page.getByLabel('Name, Firma oder').fill('Müller')
  expect(await ada.page.locator('.found strong').allInnerTexts()).toEqual([
    'Jürgen Müller',
    'Ulrike Mueller',
    'Anna Schmüller',
  ])
  await look(ada.page)
  await ada.page.getByLabel('Name, Firma oder').fill('gast')
  await ada.page.getByText('30 von 50').waitFor()
  expect(await ada.page.locator('.found li', { hasText: 'Gast 10' }).textContent()).toMatch(/Da seit \d\d:\d\d/)
  await ada.page.getByLabel('Name, Firma oder').fill('söhne jürgen')
  await ada.page.getByRole('button', { name: 'Jürgen Müller' }).click()
  await look(ada.page)
  await ada.button('Einlassen').click()
  await ada.verdict('welcome')
  await look(ada.page)
  await ada.button('Weiter').click()
  expect(await ada.page.getByRole('searchbox').inputValue()).toBe('söhne jürgen')
  await look(ada.page)
  await ada.button('Schließen').click()
  await ada.button('Kasse').click()
  await ada.page.getByText('Ohne Netz kann niemand angemeldet werden').waitFor()
  await look(ada.page)
  await ada.button('Schließen').click()
  await ada.page.getByText('55 Scans noch zu übertragen').waitFor()

  // A second device in conflict, by a name of its own.
  await bob.page.goto(link)
  await bob.setUp('Südeingang, Bob')
  await bob.page.getByLabel('Check-in-Punkt').selectOption('Die ganze Veranstaltung')
  await bob.button('Scannen').click()
  await bob.context.setOffline(true)
  await bob.hold(mueller.code)
  await bob.verdict('welcome')
  await bob.hold(null)
  await bob.button('Weiter').click()
  await uploaded(ada)
  await uploaded(bob)
  await bob.page.getByText('1 Konflikt').waitFor()
  await bob.button('Mehr').click()
  const conflict = bob.page.locator('.conflicts li')
  expect(await conflict.textContent()).toMatch(
    /Jürgen Müller\s+Schon da\. .*Südeingang, Bob\. Vorher: .*Nordeingang, Ada/,
  )
  await look(bob.page)
  await bob.button('Erledigt').click()
  await bob.page.getByText('1 erledigt').waitFor()
  await bob.page.keyboard.press('Escape')
  expect(await bob.page.getByText('1 Konflikt').isVisible()).toBe(false)
  await bob.hold(many[0]?.code ?? '')
  await bob.verdict('already_checked_in')
  await bob.page.locator('.verdict').getByText('Nordeingang, Ada').waitFor()

  // Somebody walks in with cash. The panel is closed, and goes on where it was.
  await ada.button('Kasse').click()
  await ada.page.getByLabel('Name', { exact: true }).fill('Zora Zufall')
  await ada.page.getByRole('radio', { name: 'Abendkasse' }).check()
  await isWritten(ada.page)
  await ada.page.reload()
  await ada.button('Scannen').click()
  expect(await ada.page.getByLabel('Name', { exact: true }).inputValue()).toBe('Zora Zufall')
  expect(await ada.page.getByRole('radio', { name: 'Abendkasse' }).isChecked()).toBe(true)
  // What the API refuses is said in the language of the page.
  await ada.page.getByLabel('E-Mail').fill('zora@localhost')
  await ada.button('Anmelden und einlassen').click()
  await ada.page.getByText('Diese E-Mail-Adresse ist nicht gültig.').waitFor()
  await ada.page.getByLabel('E-Mail').fill('')
  await studio.query('update public.ticket_types set quantity = 0 where id = $1', [priced])
  await ada.button('Anmelden und einlassen').click()
  await ada.page.getByText('Mit diesem Ticket ist kein Platz mehr frei.').waitFor()
  await look(ada.page)
  await studio.query('update public.ticket_types set quantity = null where id = $1', [priced])
  await ada.button('Anmelden und einlassen').click()
  await ada.page.getByText('Nehmen Sie von Zora Zufall 25,00').waitFor()
  await ada.page.keyboard.press('Escape')
  await ada.button('Kasse').click()
  await ada.page.getByText('Nehmen Sie von Zora Zufall 25,00').waitFor()
  await ada.page.reload()
  await ada.button('Scannen').click()
  await ada.page.getByText('Nehmen Sie von Zora Zufall 25,00').waitFor()
  await look(ada.page)
  const isPaid = Promise.withResolvers<void>()
  await ada.page.route('**/payments', async (route) => {
    await isPaid.promise
    await route.continue()
  })
  await ada.page.locator('.panel .main').click()
  // An answer to a scanner is on the screen when the money is recorded.
  await ada.page.evaluate(typeFast('UNKNOWN'))
  await ada.verdict('not_found')
  isPaid.resolve()
  await ada.button('Einlassen').waitFor()
  await ada.button('Weiter').click()
  await look(ada.page)
  await ada.button('Einlassen').click()
  await ada.verdict('welcome')
  const { rows: orders } = await studio.query(
    `select o.payment_status, p.method, p.amount::int, a.name, a.checked_in, (
         select count(*)::int from public.emails e where o.id = e.order_id or a.id = e.attendee_id or p.id = e.payment_id
       ) as emails
       from public.attendees a join public.orders o on o.id = a.order_id join public.payments p on p.order_id = o.id
       where a.ticket_type_id = $1`,
    [priced],
  )
  expect(orders).toEqual([
    { payment_status: 'paid', method: 'cash', amount: 2500, name: 'Zora Zufall', checked_in: true, emails: 0 },
  ])

  const { rows: scans } = await studio.query(
    `select device, result, count(*)::int as scans from public.check_ins
       where event_id = $1 group by 1, 2 order by 1, 2`,
    [event.id],
  )
  expect(scans).toEqual([
    { device: 'Nordeingang, Ada', result: 'accepted', scans: 53 },
    { device: 'Nordeingang, Ada', result: 'rejected', scans: 4 },
    { device: 'Südeingang, Bob', result: 'rejected', scans: 2 },
  ])
})

inBrowser('a telephone on its side, or with letters twice as large, reads codes and has all its buttons', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await studio.query("update public.events set name = 'Lanternenfest der Veranstaltungswirtschaft' where id = $1", [
    event.id,
  ])
  const key = await organisation.key('checkin:write', 'events:read', 'attendees:write', 'orders:write')
  const { page, hold, button, setUp } = await telephone()
  await page.goto(`${inject('apiUrl')}/door#event=${event.id}&key=${key}`)
  // As far away as it is seen whole, though less of the picture is.
  await page.evaluate('heldWidth = 240')
  await setUp('Nordeingang')
  await button('Scannen').click()
  await button('Kasse').waitFor()
  for (const [width, height, font] of [
    [640, 360, 100],
    [844, 390, 100],
    [844, 390, 200],
    [360, 640, 200],
    [360, 640, 100],
  ] as const) {
    const size = `${width} × ${height}, ${font} %`
    await page.setViewportSize({ width, height })
    await page.evaluate(`document.documentElement.style.fontSize = '${font}%'`)
    const camera = await page.locator('.camera').boundingBox()
    expect(Math.min(camera?.width ?? 0, camera?.height ?? 0), size).toBeGreaterThanOrEqual(0.4 * Math.min(640, height))
    const { overflow } = await outline(page)
    expect(overflow, size).toBe(false)
    // Without scrolling where letters have their usual size.
    for (const name of ['Suchen', 'Kasse', 'Mehr']) {
      if (font === 200) await button(name).scrollIntoViewIfNeeded()
      const box = await button(name).boundingBox()
      expect([box && box.x >= 0, box && box.x + box.width <= width, box && box.y + box.height <= height], size).toEqual(
        [true, true, true],
      )
    }
    expect(await page.evaluate(smallTargets), size).toEqual([])
    await page.evaluate('scrollTo(0, 0)')
    const { code } = await event.guest()
    await hold(code)
    await page.locator('.verdict').waitFor()
    await hold(null)
    for (const part of ['.sign', '.verdict h2', '.verdict .next', '.answers button'])
      expect(await isWithin(page, part), `${size}: ${part}`).toBe(true)
    await button('Weiter').click()
  }
})

async function uploaded({ context, page }: { context: BrowserContext; page: Page }): Promise<void> {
  await context.setOffline(false)
  // A page that was loaded without a network is not told by this browser.
  await page.evaluate("dispatchEvent(new Event('online'))")
  await page.getByText('zu übertragen').waitFor({ state: 'detached' })
}

inBrowser('a camera whose reader did not load says so, and reads codes once it does', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { code } = await event.guest()
  const { page, hold, button, setUp, verdict } = await telephone()
  // The files that it keeps would be there.
  await page.addInitScript('delete Navigator.prototype.serviceWorker')
  let isMissing = true
  await page.route('**/door/reader.ts', (route) => (isMissing ? route.abort() : route.continue()))
  await page.goto(`${inject('apiUrl')}/door#event=${event.id}&key=${await organisation.key('checkin:write')}`)
  await setUp('Nordeingang')
  await button('Scannen').click()
  await hold(code)
  await page.getByText('Codes können nicht gelesen werden').waitFor()
  await look(page)
  isMissing = false
  await verdict('welcome')
  expect(await page.getByText('Codes können nicht gelesen werden').count()).toBe(0)
})

inBrowser('a new version is there at the next opening, and not in the middle of a shift', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  let [isNew, isDown] = [false, false]
  const server = createServer(async (req, res) => {
    const { authorization = '' } = req.headers
    if (isDown && req.url?.endsWith('service-worker.ts')) return res.writeHead(502).end()
    const answer = await fetch(`${inject('apiUrl')}${req.url}`, { headers: { authorization } })
    const body = Buffer.from(await answer.arrayBuffer())
    const type = answer.headers.get('content-type') ?? ''
    const allowed = answer.headers.get('service-worker-allowed')
    res.writeHead(answer.status, { 'Content-Type': type, ...(allowed && { 'Service-Worker-Allowed': allowed }) })
    const isWords = isNew && /words|service-worker/.test(req.url ?? '')
    res.end(isWords ? body.toString().replace('Scannen', 'Los!').replace('"version":"', '"version":"new') : body)
  })
  const { url, close } = await listenOnLoopback(server)
  onTestFinished(close)
  const { page, button, setUp } = await telephone('de-AT')
  await page.goto(`${url}/door#event=${event.id}&key=${await organisation.key('checkin:write')}`)
  await setUp('Nordeingang')
  await page.evaluate('navigator.serviceWorker.ready')
  isNew = true
  await page.evaluate('navigator.serviceWorker.ready.then((registration) => registration.update())')
  await becomesTrue(page, 'navigator.serviceWorker.ready.then(({ waiting }) => waiting !== null)')
  expect(await page.evaluate(`fetch('door/words/de.ts').then((answer) => answer.text())`)).toContain('Scannen')
  // The new version waits; that there may be a newer one does not matter.
  isDown = true
  await page.reload()
  await button('Los!').waitFor()
  expect(await page.getByText('Auf diesem Gerät gespeichert').isVisible()).toBe(true)
})
