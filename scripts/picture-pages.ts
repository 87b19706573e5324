// Takes pictures of pages: of each at three widths, light and dark, for docs/guides/your-look.md, and of signing in and confirming for
// docs/guides/members.md, as wide as a telephone.

import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { updateOrganisation, withDatabase } from '../src/local/admin.ts'
import { findRunningStack } from '../src/local/stack.ts'
import { pictures, type Shown, today, withDemo } from './support/demo.ts'

const widths = [320, 390, 1280]
const logo_url = 'https://demo.example/logo.png'

await withDemo(async (shown) => {
  const { url, dataDir, browser, key, keyForPeople, eventId, ticketTypeId, paidTicketTypeId, send } = shown
  const context = await browser.newContext({ deviceScaleFactor: 0.5, locale: 'en-GB' })
  await context.addInitScript(`navigator.mediaDevices.getUserMedia = () => new Promise(() => {})`)
  const page = await context.newPage()
  await page.setContent('<b style="font: 700 30px sans-serif; color: #8a1c3b">lantern.</b>')
  const logo = await page.locator('b').screenshot()
  await context.route(logo_url, (route) => route.fulfill({ body: logo, contentType: 'image/png' }))
  const sheet = await browser.newPage({ viewport: { width: 1031, height: 320 } })
  const press = (name: string, on = page) => on.getByRole('button', { name }).click()

  const own = { accent_colour: '#8a1c3b', logo_url, payment_instructions: 'Demo Events, DE75 5121 0800 1245 1261 99' }
  const { databaseUrl = '' } = (await findRunningStack(dataDir)) ?? {}
  await withDatabase(databaseUrl, (client) => updateOrganisation(client, 'demo', own))
  await send('PATCH', `/events/${eventId}`, { guest_notes: { en: 'Doors open at **8:30**. Bring your ID.' } })
  const register = (guest: object) => send('POST', `/events/${eventId}/registrations`, guest)

  await page.goto(`${url}/e/demo/lantern-conference?t.${paidTicketTypeId}=1`)
  await take(page, sheet, 'registration')

  const dorothy = { name: 'Dorothy Vaughan', email: 'dorothy@example.com', payment_method: 'invoice' }
  await register({ ...dorothy, ticket_type_id: paidTicketTypeId })
  await openEmail(page, url, dorothy.email)
  await page.goto((await page.locator('a[href*="/o/"]').first().getAttribute('href')) ?? '')
  await take(page, sheet, 'order')

  const mary = { name: 'Mary Jackson', email: 'mary@example.com', company: 'NASA' }
  const [{ ticket_url, ticket_code }] = (await register({ ...mary, ticket_type_id: ticketTypeId })).attendees
  await openEmail(page, url, mary.email)
  await take(page, sheet, 'email')
  await page.goto(ticket_url)
  await take(page, sheet, 'ticket')

  await send('PATCH', `/events/${eventId}`, today)
  await page.goto(`${url}/door#event=${eventId}&key=${key}`)
  await press('Continue')
  await page.getByText('Saved on this device').waitFor()
  await press('Start scanning')
  await press('Code')
  await page.getByLabel('Code of the ticket').fill(ticket_code)
  await press('Check in')
  await page.locator('.verdict[data-reason=welcome]').waitFor()
  await take(page, sheet, 'door')

  const telephone = await browser.newPage({ viewport: { width: 390, height: 500 } })
  const picture = (name: string) =>
    telephone.screenshot({ path: join(pictures, `sign-in/${name}.png`), fullPage: true })
  await telephone.goto(await linkToAllow(shown))
  await picture('login')
  await telephone.getByLabel('API key').fill(keyForPeople)
  await press('Sign in', telephone)
  await picture('consent')
  await press('Allow', telephone)
  await telephone.goto(`${url}/oauth/grants`)
  await picture('grants')
  await press('Revoke', telephone)
  const toConfirm = await linkToConfirm(shown)
  await telephone.goto(toConfirm)
  await picture('confirm')
  await context.addCookies(await telephone.context().cookies())
  await page.goto(toConfirm)
  await take(page, sheet, 'confirmation')
  await press('Cancel the event', telephone)
  await picture('confirmed')
})

/** Takes the page at each width, and puts the pictures side by side. */
async function take(page: Page, sheet: Page, name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
    const taken: string[] = []
    for (const width of widths) {
      await page.setViewportSize({ width, height: 640 })
      const png = await page.screenshot({ fullPage: true })
      taken.push(`<img alt="" src="data:image/png;base64,${png.toString('base64')}">`)
    }
    await sheet.setContent(`<body style="display: flex; align-items: start; gap: 10px; margin: 8px">${taken.join('')}`)
    await sheet.screenshot({ path: join(pictures, `pages/${name}-${colorScheme}.png`), fullPage: true })
  }
}

/** Opens the newest e-mail to somebody, once it is sent. */
async function openEmail(page: Page, url: string, to: string): Promise<void> {
  const row = page.getByRole('row').filter({ hasText: to })
  do await page.goto(`${url}/mail`)
  while ((await row.count()) === 0)
  await row.getByRole('link').first().click()
}

async function linkToAllow({ url, call }: Shown): Promise<string> {
  const redirect_uri = `${url}/callback`
  const client = { client_name: 'Assistant', redirect_uris: [redirect_uri] }
  const { client_id } = await call('POST', '/oauth/register', client)
  const request = { response_type: 'code', client_id, redirect_uri, code_challenge_method: 'S256' }
  return `${url}/oauth/auth?${new URLSearchParams({ ...request, code_challenge: 'x'.repeat(43) })}`
}

async function linkToConfirm({ call, eventId }: Shown): Promise<string> {
  const params = { name: 'cancel_event', arguments: { event: eventId, notify: 'everybody' } }
  const { result } = await call('POST', '/api/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  return JSON.parse(result.content[0].text).error.details.url
}
