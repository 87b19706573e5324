// What a ticket e-mail says, before anything sends it.

import { describe, expect, test } from 'vitest'
import type { Email } from '../../src/courier/email.ts'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import type { PendingTicket } from '../../src/guests/pending.ts'
import { readPng } from '../support/qr.ts'
import { hostileNames, visibleText } from './hostile.ts'
import { type Changes, pendingTicket, sender } from './pending-ticket.ts'

const compose = (changes: Changes = {}) => composeEmail(pendingTicket(changes), sender)
const seen = (text: string) => text.replace(/\s+/g, ' ')

test('comes from the organiser, for the attendee, and answers go to the organiser', async () => {
  const pending = pendingTicket()
  const email = await composeEmail(pending, sender)
  expect(email).toMatchObject({
    id: pending.id,
    from: { name: 'Literaturhaus Köln', address: sender },
    to: { name: 'Ada Lovelace', address: 'ada@engines.example' },
    replyTo: { name: 'Literaturhaus Köln', address: 'hello@literaturhaus.example' },
    subject: 'Your ticket: Lange Nacht der Übersetzung',
    messageId: `<${pending.id}@usher.example>`,
  })
  expect(email.html).toContain('<title>Your ticket: Lange Nacht der Übersetzung</title>')
})

test('an organiser without an address for replies is not promised to answer', async () => {
  const email = await compose({ organisation: { reply_to: null } })
  expect(email).not.toHaveProperty('replyTo')
  for (const part of [email.text, visibleText(email.html)]) {
    expect(part).toContain('Questions? Please ask Literaturhaus Köln.')
    expect(part).not.toContain('Reply')
  }
})

/** What both its pictures hold. */
function codeOf({ attachments: [inline, saved] }: Email): string | undefined {
  expect(saved?.content).toEqual(inline?.content)
  return readPng(inline?.content as Buffer)
}

test('a repeat is the same e-mail, and another ticket to the same address is another', async () => {
  const pending = pendingTicket()
  const first = await composeEmail(pending, sender)
  expect(await composeEmail({ ...pending, attempt: 2, claim: 'another' }, sender)).toEqual({ ...first, attempt: 2 })

  const sibling: PendingTicket = {
    ...pending,
    id: '5d1e3f62-0000-4000-8000-000000000001',
    attendee: { ...pending.attendee, name: 'Guest of Ada', ticket_code: '0000111122223333' },
  }
  const second = await composeEmail(sibling, sender)
  expect(second.to.address).toBe(first.to.address)
  expect(second.messageId).not.toBe(first.messageId)
  expect([codeOf(first), codeOf(second)]).toEqual(['7K3MQ9ZTB2XW4D8H', '0000111122223333'])
})

test('the QR code in the page and the one to save hold the code and nothing else', async () => {
  const email = await compose()
  const { html, attachments } = email
  const [inline, saved, calendar] = attachments
  expect([inline?.filename, saved?.filename, calendar?.filename]).toEqual([
    'qr-code.png',
    'lange-nacht-ticket.png',
    'lange-nacht.ics',
  ])
  expect([inline?.contentType, saved?.contentType]).toEqual(['image/png', 'image/png'])
  expect(calendar?.contentType).toBe('text/calendar; charset=utf-8; method=PUBLISH')
  expect(codeOf(email)).toBe('7K3MQ9ZTB2XW4D8H')
  expect([saved?.cid, calendar?.cid]).toEqual([undefined, undefined])
  expect(Array.from(html.matchAll(/<img src="([^"]*)"/g), ([, source]) => source)).toEqual([`cid:${inline?.cid}`])
})

describe('HTML and text tell the same', () => {
  const facts = {
    'a whole ticket': [
      {},
      [
        ...['Lange Nacht der Übersetzung', 'Literaturhaus Köln', 'Saturday 1 May 2027', '19:00 – 22:30'],
        ...['Europe/Berlin (UTC+2)', 'Altes Pfandhaus', 'Kartäuserwall 20', '50678 Köln', 'Germany', 'Ada Lovelace'],
        ...['Analytical Engines', 'Regular', 'K7Q2M9XD', '7K3M Q9ZT B2XW 4D8H', 'Show the QR code at the entrance'],
        ...['a file for your calendar', 'Reply to this e-mail'],
      ],
    ],
    'an event online': [
      { event: { venue: null, online_url: 'https://stream.example/live?a=1&b=2' } },
      ['https://stream.example/live?a=1&b=2', 'Please have this ticket to hand'],
    ],
    'an event at a place and online': [
      { event: { online_url: 'https://stream.example/live' } },
      ['Altes Pfandhaus', 'https://stream.example/live', 'Show the QR code at the entrance'],
    ],
    'an event of which little is known': [
      { event: { venue: null, starts_at: null, ends_at: null }, attendee: { company: null } },
      ['When To be announced', 'Where To be announced', 'The QR code is attached as an image.'],
    ],
    'a venue with holes, and lines in its address': [
      { event: { venue: { name: null, address: 'Hof 3\r\nHaus B\n', city: 'Köln', postcode: null, country: 'ZZ' } } },
      ['Where Hof 3 Haus B Köln', 'Ada Lovelace'],
    ],
  } satisfies Record<string, [Changes, string[]]>

  test.each(Object.entries(facts))('%s', async (_, [changes, expected]) => {
    const { html, text } = await compose(changes)
    for (const fact of expected) {
      expect(seen(text)).toContain(fact)
      expect(seen(visibleText(html))).toContain(fact)
    }
  })

  test('and neither says what is not there', async () => {
    const { html, text } = await compose({
      event: { online_url: null, starts_at: null },
      attendee: { company: null },
    })
    for (const part of [text, visibleText(html)]) {
      expect(part).not.toMatch(/null|undefined|Invalid Date|Company|Online|calendar/)
    }
  })
})

test('the page loads nothing from anywhere and runs nothing', async () => {
  const { html } = await compose({ event: { online_url: 'https://stream.example/live' } })
  const sources = Array.from(
    html.matchAll(/(?:src|href|background|action)\s*=\s*"([^"]*)"/g),
    ([, value]) => `${value}`,
  )
  expect(sources.filter((source) => !source.startsWith('cid:'))).toEqual([
    'https://stream.example/live',
    'mailto:hello@literaturhaus.example',
  ])
  expect(html).not.toMatch(/url\(|@import|<script|<link|<iframe|<form|\son\w+=/i)
})

test('only an address of the web becomes a link', async () => {
  for (const online_url of ['javascript:alert(1)', 'data:text/html,x', 'no address at all']) {
    const { html, text } = await compose({ event: { venue: null, online_url } })
    expect(html).not.toMatch(/href="(?!mailto:)/)
    expect(text).not.toContain(online_url)
  }
})

describe('hostile text in every name', () => {
  test.each(Object.entries(hostileNames))('%s stays in its place, in headers and on its lines', async (_, text) => {
    const named = (name: string): Changes => ({
      organisation: { name },
      event: { name, venue: { name, address: null, city: name, postcode: null, country: null } },
      ticket_type: { name },
      order: { reference: name },
      attendee: { name, company: name },
    })
    const [email, harmless] = [await compose(named(text)), await compose(named('A'))]
    const headers = [email.subject, email.from.name, email.to.name, email.replyTo?.name].join('')
    expect([email.from.address, email.to.address]).toEqual([sender, 'ada@engines.example'])
    expect(headers).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u)
    expect(headers.isWellFormed()).toBe(true)
    for (const header of [email.subject, email.from.name, email.to.name]) expect(header.length).toBeLessThan(2000)
    // No line of the text can be mistaken for another: there are as many as with harmless names.
    expect(email.text.split(/[\r\n\u0085\u2028\u2029]/).length).toBe(harmless.text.split('\n').length)
  })

  test('is shown as it was typed', async () => {
    for (const name of [hostileNames['a script'], hostileNames.emoji, hostileNames['right to left'], "D'Arcy & <Co>"]) {
      const { html, text, subject } = await compose({ event: { name }, attendee: { name } })
      expect(visibleText(html)).toContain(name)
      expect(text).toContain(name)
      expect(subject).toBe(`Your ticket: ${name}`)
    }
  })

  test('a file name is made of harmless letters', async () => {
    const { attachments } = await compose({ event: { slug: '../..\r\n/Évil"' } })
    expect(attachments.map(({ filename }) => filename)).toEqual(['qr-code.png', 'vil-ticket.png', 'vil.ics'])
    const nameless = await compose({ event: { slug: '' } })
    expect(nameless.attachments.map(({ filename }) => filename)).toContain('event.ics')
  })
})
