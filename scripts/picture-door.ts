// Takes the pictures of the door page for docs/guides/the-door.md, by a telephone whose camera films a ticket.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../src/cli/config.ts'
import { start } from '../src/cli/start.ts'
import { createLog } from '../src/process/log.ts'
import { openBrowser } from './support/browser.ts'
import { cameraArguments, filmTicket } from './support/ticket-film.ts'

const folder = join(import.meta.dirname, '../docs/guides/pictures/door')
const dataDir = await mkdtemp(join(tmpdir(), 'usher-picture-'))
const usher = await start(readConfig({ USHER_DATA_DIR: dataDir, PORT: '0' }), createLog('error'), () => {})
try {
  if (usher.demo === null) throw new Error('a first start has a demo')
  const { key, eventId, ticketTypeId } = usher.demo
  // biome-ignore lint/suspicious/noExplicitAny: answers of the API, whose shapes the tests hold.
  const post = async (path: string, body: object, method = 'POST'): Promise<any> => {
    const response = await fetch(`${usher.url}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`)
    return ((await response.json()) as { data: unknown }).data
  }
  const register = async (name: string, more: object = {}): Promise<string> => {
    const email = `${name.replace(/[^a-z]/gi, '')}@example.com`
    const guest = { ticket_type_id: ticketTypeId, name, email, ...more }
    return (await post(`/events/${eventId}/registrations`, guest)).attendees[0].ticket_code
  }
  // The demo's event is weeks away, which the page would say everywhere.
  const today = { starts_at: new Date().toISOString(), ends_at: new Date(Date.now() + 8 * 3_600_000).toISOString() }
  await post(`/events/${eventId}`, today, 'PATCH')
  const mary = await register('Mary Jackson', { company: 'NASA' })
  const grace = await register('Grace Hopper')
  await register('Jürgen Müller', { company: 'Müller & Söhne' })
  await register('Ulrike Mueller')
  const paid = await post(`/events/${eventId}/ticket-types`, { name: 'Dinner', price: 4900 })
  const unpaid = await register('Ada Müllner', { ticket_type_id: paid.id, payment_method: 'invoice' })
  await post(`/events/${eventId}/check-in-points`, { name: 'Main gate' })

  const film = join(dataDir, 'ticket.y4m')
  await filmTicket(film, mary)
  const browser = await openBrowser(cameraArguments(film))
  const telephone = async (device: string, films = false) => {
    const viewport = { width: 360, height: 640 }
    const context = await browser.newContext({ viewport, locale: 'en-GB' })
    // The ticket of the film would be scanned between the others.
    if (!films) await context.addInitScript(`navigator.mediaDevices.getUserMedia = () => new Promise(() => {})`)
    const page = await context.newPage()
    await page.goto(`${usher.url}/door#event=${eventId}&key=${key}`)
    await page.getByLabel('Name of this device').fill(device)
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    return {
      page,
      button,
      goOn: () => button('Continue').click(),
      begin: () => button('Start scanning').click(),
      setOffline: (offline: boolean) => context.setOffline(offline),
      picture: (name: string) => page.screenshot({ path: join(folder, `${name}.png`) }),
      answer: (reason: string) => page.locator(`.verdict[data-reason=${reason}]`).waitFor(),
      next: () => button('Next').click(),
      async type(code: string) {
        await button('Code').click()
        await page.getByLabel('Code of the ticket').fill(code)
        await button('Check in').click()
      },
    }
  }
  try {
    const filming = await telephone('North gate, Ada', true)
    await filming.picture('setup')
    await filming.goOn()
    await filming.page.getByText('Saved on this device').waitFor()
    await filming.page.getByLabel('Check-in point').selectOption('Main gate')
    await filming.picture('start')
    await filming.begin()
    await filming.answer('welcome')
    await filming.picture('welcome')
    await filming.next()
    await filming.answer('already_checked_in')
    await filming.picture('already-in')
    await filming.page.close()

    const [first, second] = [await telephone('North gate, Ada'), await telephone('South gate, Bob')]
    for (const { page, goOn, begin } of [first, second]) {
      await goOn()
      await page.getByLabel('Check-in point').selectOption('Main gate')
      await begin()
    }
    await first.type(unpaid)
    await first.answer('unpaid')
    await first.picture('unpaid')
    await first.next()
    await first.button('Search').click()
    await first.page.getByLabel('Name, company').fill('Müller')
    await first.picture('search')
    await first.button('Close').click()

    for (const { setOffline, type, answer, picture, next } of [first, second]) {
      await setOffline(true)
      await type(grace)
      await answer('welcome')
      await picture('offline')
      await next()
    }
    for (const { page, setOffline } of [first, second]) {
      await setOffline(false)
      await page.getByText('to upload').waitFor({ state: 'detached' })
    }
    await second.page.getByText('1 conflict').waitFor()
    await second.button('More').click()
    await second.picture('conflicts')
  } finally {
    await browser.close()
  }
} finally {
  await usher.stop()
  await rm(dataDir, { recursive: true, force: true })
}
