// What e-mails of every kind say in every language, before anything sends them. More of the ticket: ticket-email.unit.test.ts.

import ICAL from 'ical.js'
import { describe, expect, test } from 'vitest'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import type { PendingEmail } from '../../src/guests/pending.ts'
import { fill, languages } from '../../src/guests/words/index.ts'
import { emailKinds as kinds } from '../../src/operations/email-kinds.ts'
import { locales } from '../../src/operations/locales.ts'
import { hostileNames, structureOf, visibleText } from './hostile.ts'
import { pendingEmails } from './pending-emails.ts'
import { pendingTicket, sender } from './pending-ticket.ts'

const seen = (text: string) => text.replace(/\s+/g, ' ')

/** Every text of a language by its path, as the placeholders in it. */
function placeholdersOf(words: object, path = ''): Record<string, string[]> {
  return Object.assign(
    {},
    ...Object.entries(words).map(([key, value]) =>
      typeof value === 'string'
        ? { [`${path}${key}`]: Array.from(value.matchAll(/\{\w+\}/g), ([text]) => text).sort() }
        : placeholdersOf(value, `${path}${key}.`),
    ),
  )
}

test('every locale of events has its words, with the same keys and placeholders', () => {
  expect(Object.keys(languages).sort()).toEqual([...locales].sort())
  for (const words of Object.values(languages))
    expect(placeholdersOf(words)).toEqual(placeholdersOf(languages.en ?? {}))
})

test('a value with a placeholder in it stays as it is', () => {
  expect(fill('{event} by {organisation}', { event: '{organisation}', organisation: '$&' })).toBe(
    '{organisation} by $&',
  )
})

describe.each([...locales])('in %s', (locale) => {
  test.each(kinds)('%s says the same in HTML and text', async (kind) => {
    const { html, text, subject } = await composeEmail(pendingEmails(locale)[kind], sender)
    const page = seen(visibleText(html))
    const { name, company, code } = languages[locale] ?? {}
    const [, ...paragraphs] = text.split('\n\n')
    for (const paragraph of paragraphs) {
      for (const line of paragraph.split('\n')) {
        // The page shows who holds a ticket without a label.
        const parts = line.split(/\s{2,}/).filter((part) => part !== '' && ![name, company, code].includes(part))
        for (const part of parts) expect(part.startsWith('https://') ? html : page).toContain(seen(part))
      }
    }
    for (const part of [page, text, subject]) expect(part).not.toMatch(/\{\w+\}|null|undefined|NaN|Invalid/)
    expect(html).toContain(`<html lang="${locale}">`)
    expect(html).toContain(`<title>${subject}</title>`)
  })
})

describe('hostile text', () => {
  test.each(kinds)('changes nothing but what is read, in %s', async (kind) => {
    const harmless = structureOf((await composeEmail(pendingEmails('en', 'A')[kind], sender)).html)
    for (const text of Object.values(hostileNames)) {
      const email = await composeEmail(pendingEmails('en', text)[kind], sender)
      expect(structureOf(email.html)).toEqual(harmless)
      expect(`${email.subject}${email.from.name}${email.to.name}`).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}]/u)
    }
  })
})

const text = async (pending: PendingEmail) => (await composeEmail(pending, sender)).text
type Buyers = Extract<PendingEmail, { lines: unknown }>
const ofBuyer = (kind: Buyers['kind'], order: Partial<Buyers['order']>) => {
  const pending = pendingEmails()[kind] as Buyers
  return { ...pending, order: { ...pending.order, ...order } } as PendingEmail
}

test('a confirmation says what is due, by when, and how to pay', async () => {
  const confirmation = await text(pendingEmails().order_confirmation)
  for (const part of [
    'Please pay €97.00 by 15 April 2027 at 23:59 and give the reference K7Q2M9XD.',
    '2 × Regular',
    '€98.00',
    'Discount',
    '-€10.00',
    'Total',
    '€137.00',
    'DE75 5121 0800 1245 1261 99',
  ]) {
    expect(seen(confirmation)).toContain(part)
  }
  expect(await text(ofBuyer('order_confirmation', { payment_due_at: null }))).toContain(
    'Please pay €97.00 and give the reference K7Q2M9XD.',
  )
  const free = await text(
    ofBuyer('order_confirmation', { amount_due: 0, total: 0, discount_total: 14_700, amount_paid: 0 }),
  )
  expect(free).toContain('Nothing is to be paid.')
  expect(free).not.toContain('DE75')
})

test('amounts are written in the currency of the order', async () => {
  const yen = await text(ofBuyer('payment_reminder', { currency: 'JPY', amount_due: 4900 }))
  expect(yen).toContain('JP¥4,900 is still to be paid')
  expect(await text(ofBuyer('payment_reminder', { currency: 'KWD', amount_due: 4900 }))).toMatch(/KWD\s4\.900 is still/)
})

test('a receipt says what is left, and what follows', async () => {
  expect(await text(pendingEmails().payment_received)).toContain('€97.00 is still to be paid.')
  const all = await text(ofBuyer('payment_received', { amount_due: 0, amount_paid: 13_700 }))
  expect(all).toContain('The order is paid.')
  expect(all).not.toContain('Still to be paid')
  const refunded = await text(
    ofBuyer('payment_received', { amount_paid: 16_000, amount_refunded: 6_000, amount_due: 3_700 }),
  )
  expect(refunded.replaceAll(/\s+/g, ' ')).toMatch(/Total:? €137.00 Paid:? €100.00 Still to be paid:? €37.00/)
  const cancelled = await text(ofBuyer('payment_received', { status: 'cancelled', amount_due: 0 }))
  expect(cancelled).toContain('We received €40.00')
  expect(cancelled).not.toMatch(/The order is paid|still to be paid/)
})

test('a change shows what was, beside what is, and nothing that stayed', async () => {
  const changed = await text(pendingEmails().event_changed)
  expect(changed).toMatch(/Event – Before +Lange Nacht\n/)
  expect(changed).toMatch(/Event – Now +Lange Nacht der Übersetzung\n/)
  expect(changed).toMatch(/When – Before +Saturday 24 April 2027\n/)
  expect(changed).toMatch(/Where – Before +To be announced\nWhere – Now +Altes Pfandhaus\n/)
  expect(changed).not.toContain('Online')
})

describe('the calendar file', () => {
  async function entryOf(pending: PendingEmail) {
    const { attachments } = await composeEmail(pending, sender)
    const file = attachments.find(({ filename }) => filename.endsWith('.ics'))
    if (file === undefined) return undefined
    const calendar = new ICAL.Component(ICAL.parse(file.content.toString()))
    const entry = calendar.getFirstSubcomponent('vevent')
    return {
      type: file.contentType,
      method: calendar.getFirstPropertyValue('method'),
      ...Object.fromEntries(['uid', 'status', 'sequence'].map((name) => [name, entry?.getFirstPropertyValue(name)])),
    }
  }

  test('updates the entry of a changed event, and removes that of a cancelled one', async () => {
    const { ticket, event_changed, event_cancelled, ticket_cancelled } = pendingEmails()
    const uid = ticket.event.id
    expect(await entryOf({ ...event_changed, event: { ...event_changed.event, version: 9 } })).toEqual({
      type: 'text/calendar; charset=utf-8; method=PUBLISH',
      ...{ method: 'PUBLISH', uid, status: 'CONFIRMED', sequence: 9 },
    })
    for (const cancelled of [event_cancelled, ticket_cancelled]) {
      expect(await entryOf(cancelled)).toEqual({
        type: 'text/calendar; charset=utf-8; method=CANCEL',
        ...{ method: 'CANCEL', uid, status: 'CANCELLED', sequence: ticket.event.version + 1 },
      })
    }
  })

  test('keeps the entry while the mailbox has another ticket', async () => {
    const cancelled = pendingEmails().ticket_cancelled
    const pending: PendingEmail = { ...cancelled, attendee: { ...cancelled.attendee, has_another_ticket: true } }
    expect(await entryOf(pending)).toBeUndefined()
    expect(await text(pending)).not.toContain('calendar')
  })

  test('is not sent to buyers', async () => {
    for (const kind of ['order_confirmation', 'payment_received', 'payment_reminder', 'order_expired'] as const) {
      expect((await composeEmail(pendingEmails()[kind], sender)).attachments).toEqual([])
    }
  })
})

test('a logo is attached and shown on white, no larger than the head has room for', async () => {
  const logo = { content_type: 'image/png', content: 'iVBORw0KGgo=', width: 1200, height: 300 } as const
  const { html, attachments } = await composeEmail(pendingTicket(), sender, logo)
  const attached = attachments.find(({ filename }) => filename === 'logo.png')
  expect(attached).toMatchObject({ contentType: 'image/png', content: Buffer.from(logo.content, 'base64') })
  expect(html).toContain(`<img src="cid:${attached?.cid}" width="180" height="45" alt=""`)
})
