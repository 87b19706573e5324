// The search of the door page: in the list alone, as somebody says a name who stands before it.

import { expect, test } from 'vitest'
import type { Ticket } from '../../src/browser/door/offline-rules.ts'

/** What is tried here. The types of the page know a window, which those of the tests do not. */
type TicketList = {
  put(tickets: readonly Ticket[]): void
  search(text: string, most: number): { found: Ticket[] }
  nearest(text: string, most: number): Ticket[]
}
const folder = new URL('../../src/browser/door/', import.meta.url)
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
  expect([find('navy'), find('undefined'), find('null')]).toEqual([['Grace Hopper'], [], []])
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
