// The life of an event, in French: an assistant sets it up, a group registers on its page at a telephone without JavaScript, finance records the
// payment, a ticket is scanned, a message is confirmed by a person, and whoever finds it full waits for a place. Then reads every e-mail, webhook
// and audit entry of it. On a stack of its own, which has no others.

import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { openPerson, paste } from '../http/oauth/client.ts'
import { inBrowser } from '../support/browser.ts'
import { negotiating } from '../support/mcp.ts'
import {
  actOf,
  codeIn,
  emailTo,
  expectSent,
  expectWithout,
  inDays,
  linksIn,
  look,
  press,
  running,
  trailOf,
  type Usher,
  webhooksOf,
} from '../support/story.ts'

const [marie, pierre, paul] = ['marie@example.com', 'pierre@example.com', 'paul@example.com'] as const

type Assistant = Awaited<ReturnType<typeof negotiating>>

/** An evening for three, with a dinner that a code unlocks. */
async function setUp(assistant: Assistant): Promise<{ eventId: string; address: string }> {
  const apply = async (args: Record<string, unknown>) => {
    const plan = (await assistant.call('apply_event', args)).data as { plan_id: string }
    return (await assistant.call('apply_event', { plan_id: plan.plan_id })).data as { event: { id: string } }
  }
  const { event } = await apply({
    changes: {
      ...{ name: 'Nuit de la radioactivité', locale: 'fr', timezone: 'Europe/Paris', capacity: 3 },
      ...{ starts_at: inDays(1), ends_at: inDays(2), registration_page: 'by_link' },
      guest_notes: { fr: 'Apportez une **pièce d’identité**.' },
    },
    ticket_types: [
      { name: 'Dîner des conférenciers', price: 4900, quantity: 1, visibility: 'hidden' },
      { name: 'Entrée libre' },
    ],
    questions: [
      {
        ...{ key: 'diet', label: 'Que mangez-vous ?', type: 'one_of', required: true },
        options: [
          { key: 'vegetarian', label: 'Végétarien' },
          { key: 'all', label: 'De tout' },
        ],
      },
      { key: 'phone', label: 'Où vous joindre ?', type: 'phone' },
    ],
    promo_codes: [{ code: 'SOLVAY', unlocks: true, ticket_types: ['Dîner des conférenciers'] }],
  })
  await apply({ event: event.id, changes: { status: 'published' } })
  const { data } = await assistant.call('get_event', { event_id: event.id })
  return { eventId: event.id, address: (data as { registration_url: string }).registration_url }
}

/** A person at a telephone without JavaScript, and what all pages were that they saw. Each is tried by a reader with JavaScript. */
async function atTelephone(locale: string) {
  const [{ page }, { page: reader }] = [await openPerson({ locale }), await openPerson({ javaScriptEnabled: true })]
  const seen: string[] = []
  const see = async () => {
    seen.push(await page.content())
    await reader.setContent(seen.at(-1) as string)
    await look(reader)
  }
  return { page, seen, see }
}

async function registerGroup(page: Page, see: () => Promise<void>, address: string): Promise<void> {
  await page.goto(address)
  expect(await page.locator('html').getAttribute('lang')).toBe('fr')
  await page.getByText('Entrée libre').first().waitFor()
  expect(await page.content()).not.toContain('Dîner')
  await see()
  await page.getByLabel('Code promo').fill('solvay')
  await press(page, 'button', 'Actualiser', 'Code SOLVAY appliqué')
  await see()
  await page.getByLabel('Dîner des conférenciers').fill('1')
  await page.getByLabel('Entrée libre').fill('2')
  await press(page, 'button', 'Actualiser', 'Invité 3')
  await see()
  const guest = (number: number) => page.locator('fieldset.guest').nth(number)
  const fillIn = async (number: number, name: string, email: string, diet: string) => {
    await guest(number).getByLabel('Nom').fill(name)
    await guest(number).getByLabel('Adresse e-mail').fill(email)
    await guest(number).getByLabel(diet).check()
  }
  await fillIn(0, 'Marie Curie', marie, 'Végétarien')
  await fillIn(1, 'Pierre Curie', pierre, 'De tout')
  await fillIn(2, 'Irène Curie', '', 'Végétarien')
  // A mistake, to which the browser goes.
  const phone = guest(1).getByLabel('Où vous joindre ?')
  await phone.fill('au laboratoire')
  await press(page, 'button', 'Commander avec obligation de paiement', 'Veuillez vérifier les champs signalés.')
  await see()
  expect(await phone.getAttribute('aria-invalid')).toBe('true')
  await phone.fill('01 23 45 67 89')
  await press(page, 'button', 'Commander avec obligation de paiement', 'Merci pour votre commande.')
  await see()
}

/** The assistant asks for what a person reads in full, and confirms. */
async function writeToVegetarians(usher: Usher, assistant: Assistant, eventId: string): Promise<void> {
  const subject = 'Votre menu'
  const message = `Bonjour,\n\nvotre menu sera **sans viande**.\n\n${'Le chef vous attend. '.repeat(50)}À demain !`
  const args = { event_id: eventId, subject, message, answer: 'diet:vegetarian' }
  const asked = await assistant.refusal('message_attendees', args)
  const { page, seen, see } = await atTelephone('en-GB')
  await page.goto((asked.details as { url: string }).url)
  await see()
  await paste(page, usher.keyForPeople)
  await page.getByText('2 people will be e-mailed').waitFor()
  await see()
  const shown = (await page.locator('main').textContent()) ?? ''
  for (const said of [subject, 'diet:vegetarian', 'sans viande', 'Le chef vous attend. '.repeat(50), 'À demain !'])
    expect(shown).toContain(said)
  await press(page, 'button', 'Send the message', 'Go back to the assistant')
  await see()
  expect((await assistant.call('message_attendees', args)).data).toMatchObject({ told: 2 })
  expectWithout(seen.join(), [marie, usher.key, usher.keyForPeople])
}

inBrowser('an event fills up on its page, and every e-mail, webhook and audit entry of it is expected', async () => {
  const usher = await running()
  const { send, mail } = usher
  const assistant = await negotiating(usher.key, usher.url)
  const { eventId, address } = await setUp(assistant)
  const guest = await atTelephone('fr-FR')
  await registerGroup(guest.page, guest.see, address)

  // Finance, and the door.
  const [order] = await send('GET', `/orders?event_id=${eventId}`)
  await emailTo(mail, marie, `Votre commande ${order.reference} – 49,00 € à régler`)
  await send('POST', `/orders/${order.id}/payments`, { amount: 4900 })
  const tickets = [await emailTo(mail, marie, 'Vos 2 billets'), await emailTo(mail, pierre, 'Votre billet')] as const
  for (const { html = '', text = '' } of tickets) {
    expect(html).toMatch(/lang="fr".*Apportez une <strong>pièce d’identité<\/strong>\./s)
    expect(text).toContain('Apportez une pièce d’identité.')
  }
  const codes = tickets.map(codeIn)
  expect(await send('POST', '/check-ins', { event_id: eventId, code: codes[1] })).toMatchObject({ result: 'accepted' })
  await writeToVegetarians(usher, assistant, eventId)
  await emailTo(mail, marie, 'Votre menu')

  // It is full; whoever waits is offered the place that is given up.
  const next = await atTelephone('fr-FR')
  await next.page.goto(address)
  await next.page.getByText('Complet').waitFor()
  await next.see()
  await next.page.locator('summary').click()
  await next.page.getByLabel('Nom').fill('Paul Langevin')
  await next.page.getByLabel('Adresse e-mail').fill(paul)
  await press(next.page, 'button', 'S’inscrire sur la liste d’attente', 'Vous êtes sur la liste d’attente.')
  await next.see()
  const attendees = await send('GET', `/attendees?event_id=${eventId}`)
  const { id } = attendees.find(({ name }: { name: string }) => name === 'Irène Curie')
  await send('POST', `/attendees/${id}/cancel`, { notify: 'everybody' })
  await emailTo(mail, paul, 'Une place pour vous')

  await expectSent(usher, [
    ['order_confirmation', marie],
    ['payment_received', marie],
    // Two tickets in one.
    ['ticket', marie],
    ['ticket', marie],
    ['ticket', pierre],
    ['organiser_message', marie],
    ['ticket_cancelled', marie],
    ['waiting_list_offer', paul],
  ])
  const secrets = mail.received.flatMap(({ text = '', html = '' }) =>
    linksIn(text + html).map(([, , secret = '']) => secret),
  )
  expect(secrets).not.toEqual([])
  for (const page of [...guest.seen, ...next.seen]) {
    expectWithout(page, [...codes, ...secrets])
    expect(Buffer.byteLength(page)).toBeLessThanOrEqual(60_000)
  }

  const changes = [
    'event.published',
    ...['order.created', 'ticket_type.sold_out', 'ticket_type.sold_out'],
    ...['attendee.updated', 'attendee.updated', 'attendee.updated', 'order.completed', 'payment.recorded'],
    'attendee.checked_in',
    'waiting_list_entry.created',
    ...['attendee.cancelled', 'waiting_list_entry.offered'],
  ]
  expect((await webhooksOf(usher, changes.length)).map(({ type }) => type)).toEqual(changes)
  const created = (by: string, ...objects: string[]) => objects.map((object) => `api_key ${by} created ${object}`)
  expect((await trailOf(usher)).map(actOf)).toEqual([
    ...created('api', 'webhook_endpoint'),
    ...created('mcp', 'event', 'ticket_type', 'ticket_type', 'promo_code', 'question', 'question'),
    'api_key mcp updated event',
    ...created('page', 'order'),
    ...created('api', 'payment'),
    // The message, by a person.
    'api_key api confirmed event',
    ...created('page', 'waiting_list_entry'),
    'api_key api updated attendee',
  ])
})
