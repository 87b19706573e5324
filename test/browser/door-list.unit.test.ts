// The search of the door page: in the list alone, as somebody says a name who stands before it.

import { expect, test } from 'vitest'
import type { Door, Ticket } from '../../src/apps/door/browser/offline-rules.ts'

/** What is tried here. The types of the page know a window, which those of the tests do not. */
type TicketList = {
  put(tickets: readonly Ticket[]): void
  search(text: string, most: number): { found: Ticket[] }
  nearest(text: string, most: number): Ticket[]
  count(door: Door, pointId: string | null, waiting: Map<string, unknown[]>): { arrived: number; expected: number }
}
const folder = new URL('../../src/apps/door/browser/', import.meta.url)
const { TicketList } = (await import(new URL('list.ts', folder).href)) as { TicketList: new () => TicketList }

function listOf(...people: [name: string, more?: Partial<Ticket>][]): TicketList {
  const list = new TicketList()
  list.put(
    people.map(([name, more]) => ({
      ...{
        attendee_id: name,
        code_hash: name,
        name,
        company: null,
        ticket_type_id: 'type',
        status: 'active',
        entries: [],
      },
      ...more,
    })),
  )
  return list
}

const namesOf = (tickets: readonly Ticket[]) => tickets.map(({ name }) => name)

test('people are found by the reference of their order, as it is read out; a list of an older page has none', () => {
  const list = listOf(['Ada Lovelace', { reference: '7KQ2M9XZ' }], ['Grace Hopper', { company: 'Navy' }])
  const find = (text: string) => namesOf(list.search(text, 30).found)
  expect([find('7kq2m9xz'), find('7KQ2 M9XZ'), find('ada 7kq')]).toEqual(Array(3).fill(['Ada Lovelace']))
  // O is 0 and L is 1 where codes are read aloud.
  list.put([{ ...list.search('ada', 1).found[0], reference: '01GZD4XF' } as Ticket])
  expect(find('OlGZ\u2013D4XF')).toEqual(['Ada Lovelace'])
  expect([find('navy'), find('undefined'), find('null')]).toEqual([['Grace Hopper'], [], []])
})

test('every apostrophe, dash, blank and form of a letter is one, in the list as in what is typed', () => {
  const list = listOf(
    ...['Bob O\u2019Leary', 'Cy Smith\u2013Wesson', 'Eva Novakova\u0301', 'J\u00fcrgen  Gro\u00df'].map(
      (name) => [name] as [string],
    ),
  )
  const find = (text: string) => namesOf(list.search(text, 30).found)
  for (const text of ["o'leary", 'O\u2018Leary', 'O`LEARY', 'o leary']) expect(find(text)).toEqual(['Bob O\u2019Leary'])
  for (const text of ['smith-wes', 'SMITH\u2011WES', 'smith\u2212wes'])
    expect(find(text)).toEqual(['Cy Smith\u2013Wesson'])
  for (const text of ['nov\u00e1k', 'nova\u0301k', '\u200bNo\u00advak'])
    expect(find(text)).toEqual(['Eva Novakova\u0301'])
  for (const text of ['juergen gross', 'JURGEN\u00a0GRO\u00df', 'gross, j\u00fcrgen'])
    expect(find(text)).toEqual(['J\u00fcrgen  Gro\u00df'])
})

test('at a point where people come and go those inside are counted, and elsewhere those who came', () => {
  const entry = { scanned_at: '2026-01-15T10:00:00Z', exited_at: null, day: null }
  const left = { ...entry, exited_at: '2026-01-15T11:00:00Z' }
  const at = (id: string) => [
    { ...entry, check_in_point_id: id },
    { ...left, check_in_point_id: id },
  ]
  const list = listOf(
    ...['hall', 'gate', null].flatMap((id) =>
      at(id as string).map((each, i): [string, Partial<Ticket>] => [`${id} ${i}`, { entries: [each] }]),
    ),
  )
  const point = { name: '', status: 'active', ticket_type_ids: [], opens_at: null, closes_at: null } as const
  const door: Door = {
    event: { id: 'event', name: '', status: 'published', timezone: 'UTC' },
    points: [
      { ...point, ticket_type_ids: [], id: 'hall', admission: 're_entry' },
      { ...point, ticket_type_ids: [], id: 'gate', admission: 'once' },
    ],
  }
  const count = (id: string | null) => list.count(door, id, new Map())
  expect([count('hall'), count('gate'), count(null)]).toEqual([
    { arrived: 1, expected: 6 },
    { arrived: 2, expected: 6 },
    { arrived: 6, expected: 6 },
  ])
})

test('of a name that was heard wrong, the nearest three are shown, and of one that nobody has none', () => {
  const list = listOf(
    ...(['Petra Kowalski', 'Peter Kowal', 'Paul Kowalewski', 'Jürgen Müller', 'Anna Schmidt', 'John Doe'] as const).map(
      (name) => [name] as [string],
    ),
  )
  const near = (text: string) => namesOf(list.nearest(text, 3))
  expect(near('Kowalsky')).toEqual(['Petra Kowalski', 'Peter Kowal', 'Paul Kowalewski'])
  expect(near('petra kovalski')).toEqual(['Petra Kowalski'])
  expect(near('Mühler')).toEqual(['Jürgen Müller'])
  expect(near('ana schmitt')).toEqual(['Anna Schmidt'])
  expect([near('Zuckerberg'), near('jo'), near('')]).toEqual([[], [], []])
})
