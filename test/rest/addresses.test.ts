// One rule for e-mail addresses: what the API validates, and what the database does, by whatever way a row comes.

import { expect, test } from 'vitest'
import * as z from 'zod'
import { operations } from '../../src/operations/index.ts'
import { studio } from '../support/database.ts'

const local64 = 'l'.repeat(64)
const label63 = 'd'.repeat(63)

const addresses = [
  'x&y@example.com',
  'x/y@example.com',
  "!#$%&'*+/=?^_`{|}~-@example.com",
  "o'@example.com",
  'first.last+tag@sub.example.co.uk',
  'a@xn--bcher-kva.de',
  'a@example.xn--p1ai',
  'a@1and1.com',
  `${local64}@example.com`,
  `a@${label63}.com`,
  `a@a--b.${'t'.repeat(63)}`,
]

const noAddresses = [
  ['mary', 'must be an e-mail address'],
  ['a@b', 'must be an e-mail address'],
  ['@example.com', 'must be an e-mail address'],
  ['a..b@example.com', 'must be an e-mail address'],
  ['.a@example.com', 'must be an e-mail address'],
  ['a.@example.com', 'must be an e-mail address'],
  ['"a b"@example.com', 'must be an e-mail address without a space (in a URL, write + as %2B)'],
  ['a@b@example.com', 'must be an e-mail address'],
  ['a@-example.com', 'must be an e-mail address'],
  ['a@example-.com', 'must be an e-mail address'],
  ['a@example.com-', 'must be an e-mail address'],
  ['a@example.c', 'must be an e-mail address'],
  ['a@example.1com', 'must be an e-mail address'],
  ['a@exa_mple.com', 'must be an e-mail address'],
  [`a@${label63}d.com`, 'must be an e-mail address'],
  [`${local64}l@example.com`, 'must have at most 64 characters before the @'],
  ['a b@example.com', 'must be an e-mail address without a space (in a URL, write + as %2B)'],
  ['a@b\u00fccher.de', 'must be an e-mail address, with its domain written as xn--bcher-kva.de'],
  [
    'a@\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444',
    'must be an e-mail address, with its domain written as xn--e1afmkfd.xn--p1ai',
  ],
  ['j\u00fcrgen@example.com', 'must be an e-mail address, without the character U+00FC'],
  ['a\u200b@example.com', 'must be an e-mail address, without the character U+200B'],
  ['a@exam\u00adple.com', 'must be an e-mail address, without the character U+00AD'],
  ['\u{1f600}@example.com', 'must be an e-mail address, without the character U+1F600'],
] as const

/** The inputs that are one guest's or buyer's address, or a filter by it, where it stands. */
const fields = operations.flatMap((operation) => {
  const shape = operation.input.shape as Record<string, z.ZodType>
  const inside = shape.changes instanceof z.ZodObject ? (shape.changes.shape as Record<string, z.ZodType>) : {}
  const field = shape.email ?? inside.email
  return field === undefined || /person/.test(operation.name) ? [] : [[operation.name, field] as const]
})

test('every operation that takes an address, or filters by one, has the one rule', () => {
  expect(fields.map(([name]) => name).sort()).toEqual([
    'add_attendee',
    'join_waiting_list',
    'list_attendees',
    'list_orders',
    'list_waiting_list_entries',
    'register_attendee',
    'update_attendee',
    'update_order',
    'update_waiting_list_entry',
  ])
  for (const [name, field] of fields) {
    expect(
      addresses.filter((address) => !field.safeParse(address).success),
      name,
    ).toEqual([])
    expect(
      noAddresses.map(([text]) => [text, field.safeParse(text).error?.issues[0]?.message]),
      name,
    ).toEqual(noAddresses)
  }
})

test('the database has the same rule, and its hint names the character at fault', async () => {
  const texts = [...addresses, ...noAddresses.map(([text]) => text)]
  const { rows } = await studio.query<{ sound: boolean; hint: string }>(
    `select private.is_email_address(t.text) as sound, private.hint_for_address(t.text) as hint
     from unnest($1::text[]) with ordinality t (text, place) order by t.place`,
    [texts],
  )
  expect(texts.filter((_, i) => rows[i]?.sound)).toEqual(addresses)
  const hintOf = (text: string) => rows[texts.indexOf(text)]?.hint
  expect(hintOf('mary')).toBe('Write it as in name@example.com.')
  expect(hintOf('a\u200b@example.com')).toContain('The character U+200B is not allowed.')
  expect(hintOf('\u{1f600}@example.com')).toContain('U+1F600')
  expect(hintOf('a@b\u00fccher.de')).toContain('name@xn--bcher-kva.de')
})
