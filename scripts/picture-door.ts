// Takes the pictures of the door page for docs/guides/the-door.md, on two telephones.

import { join } from 'node:path'
import { pictures, today, withDemo } from './support/demo.ts'

await withDemo(async ({ url, browser, key, eventId, ticketTypeId, send }) => {
  const register = async (name: string, more: object = {}): Promise<string> => {
    const email = `${name.replace(/[^a-z]/gi, '')}@example.com`
    const guest = { ticket_type_id: ticketTypeId, name, email, ...more }
    return (await send('POST', `/events/${eventId}/registrations`, guest)).attendees[0].ticket_code
  }
  await send('PATCH', `/events/${eventId}`, today)
  const mary = await register('Mary Jackson', { company: 'NASA' })
  const grace = await register('Grace Hopper')
  await register('Jürgen Müller', { company: 'Müller & Söhne' })
  await register('Ulrike Mueller')
  const paid = await send('POST', `/events/${eventId}/ticket-types`, { name: 'Dinner', price: 4900 })
  const unpaid = await register('Ada Müllner', { ticket_type_id: paid.id, payment_method: 'invoice' })
  await send('POST', `/events/${eventId}/check-in-points`, { name: 'Main gate' })

  const telephone = async (device: string) => {
    const context = await browser.newContext({ viewport: { width: 360, height: 640 }, locale: 'en-GB' })
    await context.addInitScript(`navigator.mediaDevices.getUserMedia = () => new Promise(() => {})`)
    const page = await context.newPage()
    const button = (name: string) => page.getByRole('button', { name, exact: true })
    const picture = (name: string) => page.screenshot({ path: join(pictures, `door/${name}.png`) })
    await page.goto(`${url}/door#event=${eventId}&key=${key}`)
    await page.getByLabel('Name of this device').fill(device)
    await picture('setup')
    await button('Continue').click()
    await page.getByText('Saved on this device').waitFor()
    await page.getByLabel('Check-in point').selectOption('Main gate')
    await picture('start')
    await button('Start scanning').click()
    const scan = async (code: string, reason: string, name: string) => {
      await button('Code').click()
      await page.getByLabel('Code of the ticket').fill(code)
      await button('Check in').click()
      await page.locator(`.verdict[data-reason=${reason}]`).waitFor()
      await picture(name)
      await button('Next').click()
    }
    return { page, button, picture, scan, setOffline: (offline: boolean) => context.setOffline(offline) }
  }
  const [second, first] = [await telephone('South gate, Bob'), await telephone('North gate, Ada')]
  await first.scan(mary, 'welcome', 'welcome')
  await first.scan(mary, 'already_checked_in', 'already-in')
  await first.scan(unpaid, 'unpaid', 'unpaid')
  await first.button('Search').click()
  await first.page.getByLabel('Name, company').fill('Müller')
  await first.picture('search')
  await first.button('Close').click()

  for (const { scan, setOffline } of [first, second]) {
    await setOffline(true)
    await scan(grace, 'welcome', 'offline')
  }
  for (const { page, setOffline } of [first, second]) {
    await setOffline(false)
    await page.getByText('to upload').waitFor({ state: 'detached' })
  }
  await second.page.getByText('1 conflict').waitFor()
  await second.button('More').click()
  await second.picture('conflicts')
})
