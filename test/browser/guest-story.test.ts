// The life of a ticket, in German, on a telephone: registered over REST, answered, corrected, passed on, given back, offered to the waiting
// list, taken, and scanned at the door. Then reads every e-mail, webhook and audit entry of it. On a stack of its own, which has no others.

import type { Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import type { Received } from '../courier/mail-server.ts'
import { inBrowser } from '../support/browser.ts'
import {
  actOf,
  codeIn,
  emailTo,
  expectSent,
  expectWithout,
  inDays,
  linksIn,
  look as lookAt,
  plain,
  press,
  running,
  trailOf,
  type Usher,
  webhooksOf,
} from '../support/story.ts'
import { newContext, pageOf, shown } from './door-telephone.ts'

const [emmy, lise, hedwig] = ['emmy@example.com', 'lise@example.com', 'hedwig@example.com'] as const
/** Answers to the sensitive question. */
const allergies = { [emmy]: 'Erdnüsse', [hedwig]: 'Sellerie' }
const sensitive = Object.values(allergies)
const vegan = { diet: 'vegan' }

/** An evening with one place, whose guests may do everything, and are asked what they eat and about their allergies. */
async function anEvening({ send }: Usher): Promise<{ eventId: string; ticketTypeId: string }> {
  const { id: eventId } = await send('POST', '/events', {
    ...{ name: 'Lange Nacht der Physik', locale: 'de', timezone: 'Europe/Berlin', capacity: 1 },
    ...{ starts_at: inDays(1), ends_at: inDays(2), guests_may: ['correct', 'answer', 'pass_on', 'give_back'] },
  })
  const ticketType = { name: 'Abendkarte', price: 4900 }
  const { id: ticketTypeId } = await send('POST', `/events/${eventId}/ticket-types`, ticketType)
  await send('POST', `/events/${eventId}/questions`, {
    ...{ key: 'diet', label: 'What do you eat?', type: 'one_of', required: true, at_door: true },
    options: [{ key: 'vegan', label: 'Plants only' }],
    translations: { de: { label: 'Was essen Sie?', options: { vegan: 'Rein pflanzlich' } } },
  })
  const ofAllergies = { key: 'allergies', label: 'Haben Sie Allergien?', sensitive: true, delete_after_days: 30 }
  await send('POST', `/events/${eventId}/questions`, ofAllergies)
  await send('POST', `/events/${eventId}/publish`)
  return { eventId, ticketTypeId }
}

const linkIn = ({ text = '' }: Received, page: 'g' | 'w'): string =>
  linksIn(text).find(([, letter]) => letter === page)?.[0] ?? expect.fail(`no link to /${page}/`)

async function look(page: Page): Promise<void> {
  await lookAt(page)
  expectWithout(await page.content(), sensitive)
}

async function answer(page: Page, about: string): Promise<void> {
  await page.getByLabel('Rein pflanzlich').check()
  await page.getByLabel('Haben Sie Allergien?').fill(about)
  await page.locator('#answer button').click()
  await page.getByText('Ihre Änderungen wurden gespeichert.').waitFor()
}

inBrowser('a ticket changes hands twice, and every e-mail, webhook and audit entry of it is expected', async () => {
  const usher = await running()
  const { url, key, send, mail } = usher
  const { eventId, ticketTypeId } = await anEvening(usher)
  const context = await newContext({ locale: 'de-DE', timezoneId: 'Europe/Berlin' })
  onTestFinished(() => context.close())
  const page = await pageOf(context)
  const ofType = { ticket_type_id: ticketTypeId }
  const pay = (orderId: string) => send('POST', `/orders/${orderId}/payments`, { amount: 4900 })

  // Registered without an answer; somebody waits.
  const registration = { ...ofType, name: 'Emi Noether', email: emmy, payment_method: 'invoice' }
  const order = await send('POST', `/events/${eventId}/registrations`, registration)
  expect(order.attendees[0].unanswered).toEqual(['diet'])
  await emailTo(mail, emmy, `Ihre Bestellung ${order.reference}`)
  await pay(order.id)
  const emmysTicket = await emailTo(mail, emmy, 'Ihr Ticket')
  await send('POST', `/events/${eventId}/waiting-list`, { ...ofType, name: 'Hedwig Kohn', email: hedwig })

  // Asked by e-mail: answers, corrects the name, passes the ticket on.
  expect((await send('POST', `/events/${eventId}/questions/remind`)).reminded).toBe(1)
  await page.goto(linkIn(await emailTo(mail, emmy, 'Angaben fehlen'), 'g'))
  await look(page)
  await answer(page, allergies[emmy])
  await look(page)
  await page.getByLabel('Name', { exact: true }).fill('Emmy Noether')
  await page.locator('#correct button').click()
  await page.locator('.holder', { hasText: 'Emmy Noether' }).waitFor()
  await press(page, 'link', 'Ticket weitergeben', 'Der neue Gast erhält ein Ticket per E-Mail.')
  await look(page)
  await page.getByLabel('Name').fill('Lise Meitner')
  await page.getByLabel('E-Mail-Adresse').fill(lise)
  await press(page, 'button', 'Ticket weitergeben', 'Ihr QR-Code ist nicht mehr gültig.')
  await look(page)
  await page.goto(linkIn(emmysTicket, 'g'))
  await page.getByText('Dieser Link ist ungültig oder nicht mehr gültig.').waitFor()
  await look(page)

  // The friend sees no answer of hers, and gives the place back.
  const lisesTicket = await emailTo(mail, lise, 'Ihr Ticket')
  await page.goto(linkIn(lisesTicket, 'g'))
  await look(page)
  expect(await page.locator('input:checked').count()).toBe(0)
  await press(page, 'link', 'Ticket zurückgeben', 'Eine Erstattung geht an die Person, die bestellt hat.')
  await look(page)
  await press(page, 'button', 'Ticket zurückgeben', 'Dieses Ticket wurde storniert und ist nicht mehr gültig.')
  await look(page)

  // The person on the waiting list takes the place, pays and answers.
  await page.goto(linkIn(await emailTo(mail, hedwig, 'Ein Platz für Sie'), 'w'))
  await look(page)
  await press(page, 'button', 'Zahlungspflichtig bestellen', 'Der Platz ist für Sie reserviert.')
  await look(page)
  const [taken] = await send('GET', `/orders?event_id=${eventId}&status=pending`)
  await emailTo(mail, hedwig, `Ihre Bestellung ${taken.reference}`)
  await pay(taken.id)
  const hedwigsTicket = await emailTo(mail, hedwig, 'Ihr Ticket')
  await page.goto(linkIn(hedwigsTicket, 'g'))
  await answer(page, allergies[hedwig])
  await look(page)

  // The door.
  const [emmys, lises, hedwigs] = [codeIn(emmysTicket), codeIn(lisesTicket), codeIn(hedwigsTicket)]
  await page.goto(`${url}/door#event=${eventId}&key=${key}`)
  await page.getByLabel('Name dieses Geräts').fill('Nordeingang')
  await press(page, 'button', 'Weiter', 'Auf diesem Gerät gespeichert')
  await look(page)
  await page.getByRole('button', { name: 'Scannen' }).click()
  const scan = async (code: string, reason: string) => {
    await page.getByRole('button', { name: 'Code' }).click()
    await page.getByLabel('Ticketcode').fill(code)
    await page.getByRole('button', { name: 'Einchecken' }).click()
    await shown(page, reason)
    await look(page)
    const said = await page.locator('.verdict').textContent()
    await page.getByRole('button', { name: 'Weiter' }).click()
    return said
  }
  expect(await scan(emmys, 'not_found')).toContain('Unbekannt')
  expect(await scan(lises, 'cancelled')).toContain('Storniert')
  expect(await scan(hedwigs, 'welcome')).toMatch(/Hedwig Kohn\s*Was essen Sie\? Rein pflanzlich/)

  const secrets = await expectEmails(usher, order.reference, taken.reference, [emmys, lises, hedwigs])
  await expectWebhooks(usher, secrets)
  await expectTrail(usher, secrets)
  for (const kept of usher.answers) expectWithout(kept, secrets)
})

/** @returns the secrets of the pages that e-mails alone link to. */
async function expectEmails(usher: Usher, emmys: string, hedwigs: string, codes: string[]): Promise<string[]> {
  // Kind, recipient, the pages that it links to, headline, and what it says.
  const due: [string, string, string, string, string][] = [
    ['order_confirmation', emmy, 'o', `Ihre Bestellung ${emmys} – bitte zahlen Sie 49,00 €`, `${emmys} an.`],
    ['payment_received', emmy, 'o', 'Zahlung über 49,00 € erhalten', 'ist Ihre Bestellung vollständig bezahlt.'],
    ['ticket', emmy, 'gt', 'Ihr Ticket', '2 Fragen beantworten'],
    ['answers_reminder', emmy, 'g', 'Angaben fehlen', 'Fragen an Sie Was essen Sie? Jetzt antworten'],
    ['ticket_passed_on', emmy, '', 'Ticket weitergegeben', 'Ihr QR-Code ist nicht mehr gültig.'],
    ['ticket', lise, 'gt', 'Ihr Ticket', '2 Fragen beantworten'],
    ['ticket_cancelled', lise, '', 'Ticket storniert', 'Das Ticket für Lise Meitner wurde storniert'],
    ['order_cancelled', emmy, 'o', `Bestellung ${emmys} storniert, 49,00 € werden erstattet`, 'schon bezahlt haben'],
    ['waiting_list_offer', hedwig, 'w', 'Ein Platz für Sie', 'Gute Nachrichten, Hedwig Kohn: Ein Platz ist frei'],
    ['order_confirmation', hedwig, 'o', `Ihre Bestellung ${hedwigs} – bitte zahlen Sie 49,00 €`, `${hedwigs} an.`],
    ['payment_received', hedwig, 'o', 'Zahlung über 49,00 € erhalten', 'ist Ihre Bestellung vollständig bezahlt.'],
    ['ticket', hedwig, 'gt', 'Ihr Ticket', '2 Fragen beantworten'],
  ]
  await expectSent(usher, due)

  const holders = new Map<string, Set<string>>()
  const read = usher.mail.received.map(({ envelope: { to }, subject, text = '', html = '', attachments }) => {
    const calendars = attachments.filter(({ mimeType }) => mimeType === 'text/calendar')
    const whole = [text, html, ...calendars.map(({ content }) => Buffer.from(content as ArrayBuffer))].join('\n')
    expect(html).toContain('lang="de"')
    expect(text).not.toMatch(/\b(the|you|your|please|and|with|what|eat)\b/i)
    expectWithout(whole, sensitive)
    const bare = whole.replaceAll(/<[^>]*>|\s/g, '')
    const links = linksIn(whole)
    for (const secret of [...links.map(([, , secret = '']) => secret), ...codes.filter((code) => bare.includes(code))])
      holders.set(secret, (holders.get(secret) ?? new Set()).add(`${to}`))
    const pages = [...new Set(links.map(([, page]) => page))].sort().join('')
    return [`${to} ${pages} ${plain(subject)}`, plain(text).replaceAll(/\s+/g, ' ')] as const
  })
  const saying = new Map<string, string>(read)
  const expected = due.map(([, to, pages, headline, says]) => {
    const email = `${to} ${pages} ${headline}: Lange Nacht der Physik`
    expect(saying.get(email), email).toContain(says)
    return email
  })
  expect(read.map(([email]) => email).sort()).toEqual(expected.sort())
  // Two orders, an offer, and three tickets with two pages and a code each: all of them are one person's.
  expect([...holders.values()].map(({ size }) => size)).toEqual(Array(12).fill(1))
  return [...holders.keys()].filter((secret) => secret.length === 64)
}

async function expectWebhooks(usher: Usher, secrets: string[]): Promise<void> {
  const due = [
    ['event.published', 'Lange Nacht der Physik'],
    ['order.created', 'Emi Noether'],
    ['ticket_type.sold_out', 'Abendkarte'],
    ['attendee.updated', 'Emi Noether', {}],
    ['order.completed', 'Emi Noether'],
    ['payment.recorded', 'Emi Noether'],
    ['waiting_list_entry.created', 'Hedwig Kohn'],
    ['attendee.updated', 'Emi Noether', vegan],
    ['attendee.updated', 'Emmy Noether', vegan],
    ['attendee.updated', 'Lise Meitner', {}],
    ['attendee.cancelled', 'Lise Meitner', {}],
    ['order.cancelled', 'Emi Noether'],
    ['waiting_list_entry.offered', 'Hedwig Kohn'],
    ['order.created', 'Hedwig Kohn'],
    ['waiting_list_entry.accepted', 'Hedwig Kohn'],
    ['attendee.updated', 'Hedwig Kohn', {}],
    ['order.completed', 'Hedwig Kohn'],
    ['payment.recorded', 'Hedwig Kohn'],
    ['attendee.updated', 'Hedwig Kohn', vegan],
    ['attendee.checked_in', 'Hedwig Kohn', vegan],
  ]
  const told = await webhooksOf(usher, due.length)
  const buyers = new Map(told.map(({ data }) => [data.object === 'order' ? data.id : '', data.name]))
  const concerning = told.map(({ type, data }) => [
    ...[type, data.name ?? buyers.get(data.order_id)],
    ...(data.object === 'attendee' ? [data.answers] : []),
  ])
  expect(concerning).toEqual(due)
  expectWithout(JSON.stringify(told), [...secrets, ...sensitive])
}

async function expectTrail(usher: Usher, secrets: string[]): Promise<void> {
  const ofStory = await trailOf(usher)
  const byKey = (object: string) => `api_key api created ${object}`
  expect(ofStory.map(actOf)).toEqual([
    ...['webhook_endpoint', 'event', 'ticket_type', 'question', 'question'].map(byKey),
    'api_key api updated event',
    ...['order', 'payment', 'waiting_list_entry'].map(byKey),
    ...Array(4).fill('guest page updated attendee'),
    'guest page created order',
    byKey('payment'),
    'guest page updated attendee',
  ])
  const answered = { answers: { from: {}, to: vegan }, sensitive_answers: {} }
  expect(ofStory.flatMap(({ actor, changes }) => (actor === 'guest' && changes) || [])).toEqual([
    answered,
    { name: { from: 'Emi Noether', to: 'Emmy Noether' } },
    {
      ...{ name: { from: 'Emmy Noether', to: 'Lise Meitner' }, email: { from: emmy, to: lise }, ticket_code: {} },
      ...{ answers: { from: vegan, to: {} }, sensitive_answers: {} },
    },
    { status: { from: 'active', to: 'cancelled' }, cancelled_at: { from: null, to: expect.any(String) } },
    answered,
  ])
  expectWithout(JSON.stringify(ofStory), [...secrets, ...sensitive])
}
