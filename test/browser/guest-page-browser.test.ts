// The guest page in a browser, as a guest at a telephone meets it: in German, light and dark, without a script.

import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { inBrowser, sharedBrowser } from '../support/browser.ts'
import { studio } from '../support/database.ts'
import { guestUrl } from '../support/guest-page.ts'
import { createOrganisation } from '../support/organisation.ts'
import { expectReadable, expectScheme, outline } from './accessibility.ts'

const choices = [
  { key: 'meat', label: 'Everything' },
  { key: 'vegan', label: 'Vegan <b>please</b>' },
]
const asked = [
  [
    'diet',
    'one_of',
    true,
    choices,
    { label: 'Was essen Sie?', options: { meat: 'Alles', vegan: 'Vegan <b>bitte</b>' } },
  ],
  ['days', 'several_of', false, choices, { label: 'Welche Tage?', help: 'Mehrere sind möglich.' }],
  ['country', 'country', false, null, { label: 'Woher kommen Sie?' }],
  ['note', 'long_text', false, null, { label: 'Möchten Sie uns etwas sagen?' }],
  ['born', 'date', false, null, { label: 'Geboren am' }],
  ['phone', 'phone', false, null, { label: 'Telefon' }],
  ['newsletter', 'yes_no', false, null, { label: 'Newsletter?' }],
] as const

async function arrange() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await studio.query(
    `update public.events set name = 'Lange Nacht', locale = 'de', guests_may = '{correct,answer,give_back,pass_on}' where id = $1`,
    [event.id],
  )
  for (const [position, [key, type, required, options, german]] of asked.entries())
    await studio.query(
      `insert into public.questions (event_id, key, label, type, required, options, translations, position)
       values ($1, $2, $2, $3, $4, $5, $6, $7)`,
      [event.id, key, type, required, options && JSON.stringify(options), JSON.stringify({ de: german }), position],
    )
  const { attendeeId } = await event.payer()
  return { attendeeId, url: await guestUrl(attendeeId) }
}

async function looksGood(page: Page, name: string) {
  expect(await outline(page), name).toEqual({ overflow: false, mains: 1, headings: 1 })
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme })
  }
  await expectReadable(page, { hasOutline: true, also: (scheme) => expectScheme(page, scheme) })
}

inBrowser('a guest answers, corrects the name and passes the ticket on, and each page can be read', async () => {
  const { attendeeId, url } = await arrange()
  const browser = await sharedBrowser()
  const context = await browser.newContext({ viewport: { width: 390, height: 844 }, javaScriptEnabled: true })
  const page = await context.newPage()
  await page.goto(url)
  await looksGood(page, 'forms')
  await page.getByLabel('Vegan <b>bitte</b>').check()
  await page.getByLabel('Woher kommen Sie?').selectOption('Österreich')
  // What a browser lets through and the database does not.
  await page.getByLabel('Telefon').fill('vielleicht')
  await page.locator('#answer button').click()
  await page.getByText('Bitte geben Sie eine Telefonnummer ein').waitFor()
  expect(await page.getByLabel('Woher kommen Sie?').inputValue()).toBe('AT')
  await looksGood(page, 'a mistake')
  await page.getByLabel('Telefon').fill('')
  await page.locator('#answer button').click()
  await page.getByText('Ihre Änderungen wurden gespeichert.').waitFor()
  await page.getByLabel('Name', { exact: true }).fill('Grace Hopper')
  await page.locator('#correct button').click()
  await page.locator('.holder', { hasText: 'Grace Hopper' }).waitFor()

  await page.getByRole('link', { name: 'Ticket zurückgeben' }).click()
  await page.getByText('Ihr Ticket wird storniert').waitFor()
  await looksGood(page, 'giving back')
  await page.getByRole('link', { name: 'Zurück' }).click()
  await page.getByRole('link', { name: 'Ticket weitergeben' }).click()
  await looksGood(page, 'passing on')
  await page.getByLabel('Name').fill('Lise Meitner')
  await page.getByLabel('E-Mail-Adresse').fill('lise@example.com')
  await page.getByRole('button', { name: 'Ticket weitergeben' }).click()
  await page.getByText('wurde an jemand anderen weitergegeben').waitFor()
  await looksGood(page, 'passed on')
  await context.close()
  const { rows } = await studio.query('select name, email, answers from public.attendees where id = $1', [attendeeId])
  expect(rows).toEqual([{ name: 'Lise Meitner', email: 'lise@example.com', answers: {} }])
})
