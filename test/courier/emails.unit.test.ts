// What e-mails of every kind say in every language, before anything sends them. More of the ticket: ticket-email.unit.test.ts.

import ICAL from 'ical.js'
import { describe, expect, test } from 'vitest'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import type { GuestLink, PendingEmail } from '../../src/guests/pending.ts'
import { fill, languages, wordsOf } from '../../src/guests/words/index.ts'
import { emailKinds as kinds } from '../../src/operations/email-kinds.ts'
import { locales } from '../../src/operations/locales.ts'
import { readPng } from '../support/qr.ts'
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
        ? // The two forms of an hour.
          {
            [`${path}${key}`]: Array.from(value.matchAll(/\{\w+\}/g), ([text]) => text.replace('{h}', '{hour}')).sort(),
          }
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

test.each([...locales])('in %s a message of the organiser is quoted, whole and as text', async (locale) => {
  const message = 'The hall is under water.\r\n\r\n<b>Bring boots</b> & a lamp.'
  for (const kind of kinds.filter((kind) => /changed|cancelled|confirmation/.test(kind))) {
    const { html, text } = await composeEmail({ ...pendingEmails(locale)[kind], message }, sender)
    const from = fill(languages[locale]?.message ?? '', { organisation: 'Literaturhaus Köln' })
    expect(text).toContain(`${from}:\n> The hall is under water.\n> <b>Bring boots</b> & a lamp.\n\n`)
    const quoted = /<blockquote.*?<\/blockquote>/s.exec(html)?.[0] ?? ''
    expect(visibleText(quoted)).toContain('<b>Bring boots</b> & a lamp.')
    expect(quoted).not.toContain('<b>')
    expect(html).toContain(from)
  }
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
    'Please pay €97.00 by 15 April 2027 at 23:59, quoting the reference K7Q2M9XD.',
    '2 × Regular',
    '€98.00',
    'Discount',
    '\u2212€10.00',
    'Total',
    '€137.00',
    'DE75 5121 0800 1245 1261 99',
    'Guests Grace Hopper Ada Lovelace Katherine Johnson',
  ]) {
    expect(seen(confirmation)).toContain(part)
  }
  expect(await text(ofBuyer('order_confirmation', { payment_due_at: null }))).toContain(
    'Please pay €97.00, quoting the reference K7Q2M9XD.',
  )
  const free = await text(
    ofBuyer('order_confirmation', { amount_due: 0, total: 0, discount_total: 14_700, amount_paid: 0 }),
  )
  expect(free).toContain('There is nothing to pay.')
  expect(free).not.toContain('DE75')
})

test('the buyer of a cancelled order is told whether to pay, and what is returned', async () => {
  const { order_cancelled: cancelled, ticket_cancelled: ticket, event_cancelled: event } = pendingEmails()
  const none = { currency: 'EUR', amount_unpaid: 0, amount_retained: 0, amount_refundable: 0 }
  const doNotPay = 'Please do not make a payment now.'
  const { subject, text: both } = await composeEmail(cancelled, sender)
  expect(subject).toBe('Order K7Q2M9XD cancelled, €40.00 will be refunded: Lange Nacht der Übersetzung')
  expect(seen(both)).toContain(
    `Your order K7Q2M9XD for Lange Nacht der Übersetzung has been cancelled, with all its tickets. ${doNotPay} The €40.00 you have paid will be refunded.`,
  )
  // How to pay is what nobody should read any more.
  expect(both).not.toContain('DE75')
  const ofEvent = { ...cancelled, order: { ...cancelled.order, cancellation_reason: 'event_cancelled' as const } }
  expect(seen(await text(ofEvent))).toContain(
    'Unfortunately, Lange Nacht der Übersetzung has been cancelled, and with it your order K7Q2M9XD',
  )
  for (const pending of [cancelled, ticket, event]) {
    const unpaid = seen(await text({ ...pending, money: { ...none, amount_unpaid: 1 } }))
    expect([unpaid.includes(doNotPay), unpaid.includes('refunded')]).toEqual([true, false])
    const paid = seen(await text({ ...pending, money: { ...none, amount_refundable: 4000 } }))
    expect([paid.includes(doNotPay), paid.includes('The €40.00 you have paid will be refunded.')]).toEqual([
      false,
      true,
    ])
  }
  const kept = { ...none, amount_retained: 2000, amount_refundable: 17_900 }
  for (const pending of [cancelled, ticket, event]) {
    expect(seen(await text({ ...pending, money: kept }))).toContain(
      'Of what you have paid, we keep €20.00. €179.00 will be refunded.',
    )
    // What was kept is all that was not refunded before.
    const settled = seen(await text({ ...pending, money: { ...kept, amount_refundable: 0 } }))
    expect([settled.includes('we keep €20.00.'), settled.includes('refunded')]).toEqual([true, false])
  }
  // A guest is told nothing of it.
  for (const pending of [ticket, event]) expect(await text(pending)).not.toMatch(/payment|refunded/)
})

test.each([...locales])(
  'in %s the headline of an e-mail about money has the amount, and the date of what is due',
  async (locale) => {
    const emails = pendingEmails(locale)
    const none = { currency: 'EUR', amount_unpaid: 0, amount_retained: 0, amount_refundable: 0 }
    const money = { ...none, amount_refundable: 4000 }
    const headlineOf = async (pending: PendingEmail) =>
      /<td class="(?:text|good|notice|bad)"[^>]*>\s*<p[^>]*>([^<]*)/.exec(
        (await composeEmail(pending, sender)).html,
      )?.[1]
    for (const pending of [emails.order_confirmation, emails.payment_reminder]) {
      const { amount_due } = pending.order
      const headline = await headlineOf(pending)
      expect([headline?.includes(`${amount_due / 100}`), headline?.includes('15')], headline).toEqual([true, true])
      const undated = { ...pending, order: { ...pending.order, payment_due_at: null } } as PendingEmail
      expect(await headlineOf(undated)).toContain(`${amount_due / 100}`)
    }
    const { ticket_cancelled, event_cancelled, order_cancelled } = emails
    for (const pending of [ticket_cancelled, event_cancelled, order_cancelled]) {
      expect(await headlineOf({ ...pending, money })).toContain('40')
      expect(await headlineOf({ ...pending, money: none })).not.toContain('40')
    }
    for (const pending of [emails.payment_received, emails.payment_voided])
      expect(await headlineOf(pending)).toContain('40')
  },
)

test('each e-mail to a buyer links to the order, and none to a guest; what is to be done has the one button', async () => {
  for (const [kind, pending] of Object.entries(pendingEmails())) {
    const isToBuyer = 'lines' in pending && pending.lines !== null
    const { html, text } = await composeEmail(pending, sender)
    const buttons = html.match(/<a href="[^"]*" style="[^"]*text-decoration:none;/g) ?? []
    expect(
      [html, text].map((part) => part.includes('https://tickets.example/o/9c41aa')),
      kind,
    ).toEqual([isToBuyer, isToBuyer])
    expect(buttons, kind).toHaveLength(
      ['order_confirmation', 'answers_reminder', 'waiting_list_offer'].includes(kind) ? 1 : 0,
    )
    const { html: without } = await composeEmail({ ...pending, order_url: null }, sender)
    expect(without).not.toContain('/o/')
  }
})

test('amounts are written in the currency of the order', async () => {
  const yen = await text(ofBuyer('payment_reminder', { currency: 'JPY', amount_due: 4900 }))
  expect(yen).toContain('There is still JP¥4,900 to pay')
  expect(await text(ofBuyer('payment_reminder', { currency: 'KWD', amount_due: 4900 }))).toMatch(
    /still KWD\s4\.900 to pay/,
  )
})

test('a receipt says what is left, and what follows', async () => {
  expect(seen(await text(pendingEmails().payment_received))).toContain(
    'There is still €97.00 to pay by 15 April 2027 at 23:59.',
  )
  const all = await text(ofBuyer('payment_received', { amount_due: 0, amount_paid: 13_700 }))
  expect(all).toContain('Your order is now paid in full.')
  expect(all).not.toContain('Still to pay')
  const refunded = await text(
    ofBuyer('payment_received', { amount_paid: 16_000, amount_refunded: 6_000, amount_due: 3_700 }),
  )
  expect(refunded.replaceAll(/\s+/g, ' ')).toMatch(/Total:? €137.00 Paid:? €100.00 Still to pay:? €37.00/)
  const cancelled = await text(ofBuyer('payment_received', { status: 'cancelled', amount_due: 0 }))
  expect(cancelled).toContain('We received your payment of €40.00')
  expect(cancelled).not.toMatch(/paid in full|still/i)
  // The second of two quick payments completed it: its receipt says so.
  const { payment_received: first } = pendingEmails()
  const order = { ...first.order, amount_due: 0, amount_paid: 13_700 }
  expect(await text({ ...first, order, payment: { ...first.payment, is_latest: false } })).not.toContain('paid in full')
})

test('a change shows what was, beside what is, and nothing that stayed', async () => {
  const changed = await text(pendingEmails().event_changed)
  expect(changed).toMatch(/Event – before +Lange Nacht\n/)
  expect(changed).toMatch(/Event – now +Lange Nacht der Übersetzung\n/)
  expect(changed).toMatch(/When – before +Saturday 24\sApril 2027\n/)
  expect(changed).toMatch(/Where – before +To be announced\nWhere – now +Altes Pfandhaus\n/)
  expect(changed).not.toContain('Online')
})

test('an offer that is repeated because the event changed says what has', async () => {
  const { event_changed, waiting_list_offer: first } = pendingEmails()
  const { previous } = event_changed
  expect(await text(first)).toContain('Good news, Katherine Johnson: a place has become available')
  const again = await text({ ...first, previous })
  expect(seen(again)).toContain('Katherine Johnson, the event has changed since we offered you a place. We are still')
  expect(again).toMatch(/Where – before +To be announced\nWhere – now +Altes Pfandhaus\n/)
  expect(again).not.toContain('Good news')
  // Back to what was offered.
  expect(await text({ ...first, previous: first.event })).toBe(await text(first))
})

test('an offer and a reminder of questions have a button, or say whom to write to', async () => {
  const { waiting_list_offer: offer, answers_reminder: reminder } = pendingEmails()
  expect(await text(offer)).toContain(`Take it or decline it\n${offer.offer_url}`)
  expect(await text(offer)).not.toContain('please reply')
  expect(seen(await text({ ...offer, offer_url: null }))).toContain('please reply to this e-mail before then')
  expect(await text(reminder)).toMatch(/Questions for you +What do you eat\?\n +How are you travelling\?/)
  expect(await text(reminder)).toContain(`Answer now\n${reminder.answer_url}`)
  expect(await text({ ...reminder, answer_url: null })).toContain('Please send your answers to Literaturhaus Köln.')
})

test('whoever has not paid is not told that a ticket is valid', async () => {
  const { event_changed: changed } = pendingEmails()
  expect(await text(changed)).toContain('Your ticket remains valid.')
  const [held] = changed.holders.map((holder) => ({ ...holder, status: 'awaiting_payment' as const }))
  const unpaid = await text({ ...changed, holders: held ? [held] : [] })
  expect(unpaid).toContain('You will receive your ticket as soon as the order is paid.')
  expect(unpaid).not.toContain('valid')
})

test('a cancellation says whose tickets it is about, and the HTML of each kind begins with its headline', async () => {
  const { ticket_cancelled: one } = pendingEmails()
  expect(await text(one)).toContain('The ticket for Ada Lovelace has been cancelled and is no longer valid.')
  const holders = one.holders.flatMap((held) => [held, { ...held, name: 'Grace Hopper', ticket_type: 'Supporter' }])
  const both = await text({ ...one, holders })
  expect(seen(both)).toContain('The tickets for Ada Lovelace and Grace Hopper have been cancelled')
  expect(seen(both)).toContain('Ticket Regular Supporter')
  for (const kind of kinds) {
    const { html, subject } = await composeEmail(pendingEmails()[kind], sender)
    const [headline] = subject.split(': ')
    expect(html.match(/<\/h1>[\s\S]*?<p[^>]*>([^<]*)</)?.[1], kind).toBe(headline)
  }
})

test('one e-mail tells an address of all its tickets, of which order, and what holds for each', async () => {
  const { event_changed: changed, event_cancelled: cancelled } = pendingEmails()
  const [held] = changed.holders
  if (held === undefined) throw new Error('no ticket')
  const grace = { ...held, name: 'Grace Hopper', ticket_url: 'https://tickets.example/t/b', guest: null }
  const unpaid = { ...held, name: 'Katherine Johnson', reference: 'B1B2B3B4', status: 'awaiting_payment' as const }
  const told = async (holders: (typeof held)[]) => seen(await text({ ...changed, holders }))

  const several = await told([held, grace, { ...unpaid, ticket_type: 'Supporter', ticket_url: null }])
  for (const part of [
    'Your tickets remain valid. The tickets that have not been paid yet will follow',
    'Ticket Ada Lovelace – Regular Grace Hopper – Regular Katherine Johnson – Supporter',
    'Order K7Q2M9XD B1B2B3B4',
    'Open your ticket in the browser – Grace Hopper – Regular https://tickets.example/t/b',
  ])
    expect(several).toContain(part)
  expect(several).not.toContain('browser – Katherine')
  expect(await told([unpaid, unpaid])).toContain('You will receive your tickets as soon as they are paid.')
  expect(await told([held, unpaid])).toContain('Your ticket remains valid. The tickets that have not')
  // Those of one person are counted; of many the first hundred are named, and none is linked.
  expect(await told([held, held])).toContain('Ticket 2 × Regular')
  const many = await told(Array.from({ length: 101 }, (_, i) => ({ ...held, name: `Guest ${i + 1}.` })))
  expect(many).toContain('Guest 100. – Regular …')
  expect(many).not.toMatch(/Guest 101|tickets\.example\/t/)

  const email = await composeEmail({ ...cancelled, holders: [held, { ...grace, ticket_type: 'Supporter' }] }, sender)
  expect(seen(email.text)).toContain('Ada Lovelace – Regular Grace Hopper – Supporter')
  const calendar = email.attachments.find(({ filename }) => filename.endsWith('.ics'))?.content.toString()
  expect(calendar).toContain('Ticket: Regular\\, Supporter')
})

test('only news of an event links to where it is switched off', async () => {
  for (const kind of kinds) {
    const { html, text, optOutUrl } = await composeEmail(pendingEmails()[kind], sender)
    const url = ['event_changed', 'organiser_message'].includes(kind) ? 'https://tickets.example/u/7d1e9b' : undefined
    expect([kind, optOutUrl]).toEqual([kind, url])
    for (const part of [html, text]) expect(part.includes('/u/7d1e9b')).toBe(url !== undefined)
  }
})

test('the notes of an event stand in its ticket, in their language or that of the event', async () => {
  const guest_notes = { de: 'Bitte **Ausweis** mitbringen.', fr: '<b>' }
  const { html, text } = await composeEmail(pendingTicket({ event: { locale: 'de', guest_notes } }), sender)
  expect(html).toContain('Bitte <strong>Ausweis</strong> mitbringen.')
  expect(text).toContain('Nachricht von Literaturhaus Köln:\n\nBitte Ausweis mitbringen.\n\n')
  const other = await composeEmail(pendingTicket({ event: { locale: 'en', guest_notes } }), sender)
  for (const part of [other.html, other.text]) expect(part).not.toMatch(/Ausweis|Message from/)
})

test("a message has the organiser's subject alone, then their words", async () => {
  const { organiser_message: pending } = pendingEmails('de')
  const organiser_message = { subject: 'Lampe', message: 'Bringt eine **Lampe** mit: https://a.example' }
  const { subject, html, text } = await composeEmail({ ...pending, organiser_message }, sender)
  expect(subject).toBe('Lampe')
  expect(html).toMatch(/Bringt eine <strong>Lampe<\/strong> mit: <a href="https:\/\/a\.example\/"/)
  expect(text).toMatch(/^Lampe\nLange Nacht.*\n\nBringt eine Lampe mit: https:\/\/a\.example\n\nWann/s)
})

test('an IBAN stays on one line, and what stands beside it does not', async () => {
  for (const [line, iban] of [
    ['IBAN: DE75 5121 0800 1245 1261 99, BIC SOGEDEFF', 'DE75 5121 0800 1245 1261 99'],
    ['MT84 MALT 0110 0001 2345 MTLC AST0 01S', undefined],
    ['FR7630006000011234567890189', 'FR7630006000011234567890189'],
    ['NL91 ABNA 0417 1643 00', 'NL91 ABNA 0417 1643 00'],
  ] as const) {
    const { order_confirmation: pending } = pendingEmails()
    const organisation = { ...pending.organisation, payment_instructions: line }
    const { html } = await composeEmail({ ...pending, organisation }, sender)
    expect(html.match(/<span style="white-space:nowrap;[^"]*">([^<]*)</)?.[1]).toBe(iban ?? line)
  }
})

test('a ticket links to the page of its holder, in words for what can be done there', async () => {
  const url = 'https://tickets.example/g/4b1d'
  const labels = async (locale: (typeof locales)[number], acts: GuestLink['acts'], open: number) => {
    const { html, text } = await composeEmail(
      pendingTicket({ event: { locale }, attendee: { guest: { url, acts, open } } }),
      sender,
    )
    expect(text).toContain(url)
    return Array.from(html.matchAll(/href="https:\/\/tickets.example\/g\/4b1d"[^>]*>([^<]*)</g), ([, label]) => label)
  }
  expect(await labels('en', [], 1)).toEqual(['Answer 1 question'])
  expect(await labels('en', ['correct', 'pass_on'], 2)).toEqual(['Answer 2 questions', 'Change or pass on your ticket'])
  const all = await Promise.all(locales.map((locale) => labels(locale, ['answer', 'give_back', 'pass_on'], 0)))
  expect(all.flat()).toEqual([
    'Change, pass on or give back your ticket',
    'Ticket ändern, weitergeben oder zurückgeben',
    'Modifier, transmettre ou rendre votre billet',
    'Cambiar, ceder o devolver tu entrada',
    'Je ticket wijzigen, doorgeven of teruggeven',
  ])
})

test('several tickets to one address are one e-mail with each code, page and name', async () => {
  const other = { company: null, ticket_type: 'Regular', ticket_url: 'https://tickets.example/t/b', guest: null }
  const others = [
    { ...other, email_id: 'b', name: 'Grace Hopper', ticket_code: 'BBBBCCCCDDDDEEEE' },
    { ...other, email_id: 'c', name: 'Katherine Johnson', ticket_code: 'FFFFGGGGHHHHJJJJ', ticket_type: 'Supporter' },
  ]
  const email = await composeEmail(pendingTicket({ others }), sender)
  expect(email.subject).toBe('Your 3 tickets: Lange Nacht der Übersetzung')
  for (const part of [visibleText(email.html), email.text]) {
    for (const said of ['Ada Lovelace', 'Grace Hopper', 'BBBB CCCC DDDD EEEE', 'FFFF GGGG HHHH JJJJ', 'Supporter'])
      expect(part).toContain(said)
  }
  const cids = Array.from(email.html.matchAll(/src="cid:([^"]*)"/g), ([, cid]) => cid)
  expect(new Set(cids).size).toBe(3)
  const codes = cids.map((cid) => readPng(email.attachments.find((file) => file.cid === cid)?.content as Buffer))
  expect(codes).toEqual(['7K3MQ9ZTB2XW4D8H', 'BBBBCCCCDDDDEEEE', 'FFFFGGGGHHHHJJJJ'])
  expect(email.attachments.map(({ filename }) => filename)).toContain('lange-nacht-ticket-3.png')
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
      // A cancelled entry has no code to look for.
      ...(String(entry?.getFirstPropertyValue('description')).includes('QR') && { code: true }),
      ...Object.fromEntries(['uid', 'status', 'sequence'].map((name) => [name, entry?.getFirstPropertyValue(name)])),
    }
  }

  test('updates the entry of a changed event, and removes that of a cancelled one', async () => {
    const { ticket, event_changed, event_cancelled, ticket_cancelled } = pendingEmails()
    const uid = ticket.event.id
    const { sequence } = (await entryOf(ticket)) as unknown as { sequence: number }
    expect(await entryOf({ ...event_changed, event: { ...event_changed.event, version: 9 } })).toEqual({
      type: 'text/calendar; charset=utf-8; method=PUBLISH',
      ...{ method: 'PUBLISH', uid, status: 'CONFIRMED', sequence: sequence + 9 - ticket.event.version, code: true },
    })
    for (const cancelled of [event_cancelled, ticket_cancelled]) {
      expect(await entryOf(cancelled)).toEqual({
        type: 'text/calendar; charset=utf-8; method=CANCEL',
        ...{ method: 'CANCEL', uid, status: 'CANCELLED', sequence },
      })
    }
  })

  test('keeps the entry while the mailbox has another ticket', async () => {
    const cancelled = pendingEmails().ticket_cancelled
    const pending: PendingEmail = { ...cancelled, attendee: { ...cancelled.attendee, has_another_ticket: true } }
    expect(await entryOf(pending)).toBeUndefined()
    expect(await text(pending)).not.toContain('calendar')
  })

  test('is neither there nor promised where nothing is paid yet', async () => {
    const { event_changed: changed } = pendingEmails()
    expect(await text(changed)).toContain('The attached calendar file updates the entry in your calendar.')
    const pending = {
      ...changed,
      holders: changed.holders.map((held) => ({ ...held, status: 'awaiting_payment' as const })),
    }
    expect(await entryOf(pending)).toBeUndefined()
    expect(await text(pending)).not.toContain('calendar')
  })

  test('is not sent to buyers', async () => {
    for (const kind of [
      'order_confirmation',
      'payment_received',
      'payment_reminder',
      'order_expired',
      'order_cancelled',
    ] as const) {
      expect((await composeEmail(pendingEmails()[kind], sender)).attachments).toEqual([])
    }
  })
})

test('a logo is linked and shown on white, no larger than the head has room for', async () => {
  const pending = pendingTicket()
  const logo_url = 'https://acme.example/logo.png?a=1&b="'
  const { html } = await composeEmail({ ...pending, organisation: { ...pending.organisation, logo_url } }, sender)
  expect(html).toContain('<img src="https://acme.example/logo.png?a=1&amp;b=&quot;" height="45" alt=""')
  expect(html).toContain('max-width:180px;max-height:56px;')
})

test('a reminder of what is paid in part says that the tickets stay, and names no deadline that is over', async () => {
  const { payment_reminder: unpaid } = pendingEmails()
  const inTime = { ...unpaid, order: { ...unpaid.order, amount_paid: 4000, amount_due: 9700 } }
  const { payment_due_at } = inTime.order
  const late = { ...inTime, order: { ...inTime.order, payment_reminded_at: payment_due_at } }
  for (const locale of locales) {
    for (const pending of [inTime, late]) {
      const of = { ...pending, event: { ...pending.event, locale } }
      const { reserved, consequence } = wordsOf(locale).kinds.payment_reminder
      const said = seen(await text(of))
      expect(said).toContain(seen(reserved))
      expect(said).not.toContain(seen(consequence))
    }
  }
  expect(seen(await text(inTime))).toContain('There is still €97.00 to pay by 15 April 2027')
  const { subject, text: overdue } = await composeEmail(late, sender)
  expect(subject).toMatch(/^Please pay €97.00 for order K7Q2M9XD: /)
  expect(seen(overdue)).toContain('There is still €97.00 to pay. Please quote')
})

test('a reminder names the deadline and what follows it, but only of an order that will expire', async () => {
  const { payment_reminder: dated } = pendingEmails()
  const open = { ...dated, order: { ...dated.order, payment_due_at: null } }
  const completed = { ...dated, order: { ...dated.order, status: 'completed' as const } }
  expect(await text(dated)).toContain('If it is not paid by then, the order will be cancelled')
  for (const pending of [open, completed]) {
    const { subject, text: plain } = await composeEmail(pending, sender)
    expect(subject).toMatch(new RegExp(`^Please pay €137.00 for order ${dated.order.reference}: `))
    expect(plain).toMatch(/There is still .* to pay\. Please quote/)
    expect(plain).not.toContain('cancelled')
  }
})
