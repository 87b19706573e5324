import { expect, test } from 'vitest'
import { at, differences, optional, type State } from './state.ts'

const ada = { id: '1', name: 'Ada', status: 'active', ends_at: '2027-05-01T10:00:00+00:00' }
const grace = { id: '2', name: 'Grace', status: 'active', ends_at: null }

test.each<[title: string, expected: State, actual: State, found: RegExp[]]>([
  ['what is as expected', { guests: [ada, grace] }, { guests: [grace, ada] }, []],
  [
    'an instant, however it is written',
    { guests: [{ ...ada, ends_at: at('2027-05-01T12:00+02:00') }] },
    { guests: [ada] },
    [],
  ],
  [
    'a change',
    { guests: [ada] },
    { guests: [{ ...ada, status: 'gone' }] },
    [/^guests: status of "Ada" is "gone", not "active"$/],
  ],
  ['a row that is gone', { guests: [ada, grace] }, { guests: [ada] }, [/"Grace".* is gone$/]],
  ['a row too many', { guests: [ada] }, { guests: [ada, grace] }, [/"Grace".* should not be there$/]],
  ['a table that was not expected', {}, { guests: [ada] }, [/should not be there$/]],
  ['a new row', { guests: [{ name: 'Grace', status: 'active' }] }, { guests: [grace] }, []],
  [
    'a new row twice',
    { guests: [{ name: 'Grace' }] },
    { guests: [grace, { ...grace, id: '3' }] },
    [/should not be there$/],
  ],
  ['a new row that is missing', { guests: [{ name: 'Grace' }] }, { guests: [] }, [/"Grace".* is missing$/]],
  [
    'a new row that differs',
    { guests: [{ name: 'Grace', status: 'cancelled' }] },
    { guests: [grace] },
    [/^guests: status of the new "Grace" is "active", not "cancelled"$/],
  ],
  ['an optional row that is there', { guests: [optional({ name: 'Grace' })] }, { guests: [grace] }, []],
  ['an optional row that is not', { guests: [optional({ name: 'Grace' })] }, { guests: [] }, []],
  [
    'an optional row, and another',
    { guests: [optional({ name: 'Ada' })] },
    { guests: [grace] },
    [/should not be there$/],
  ],
])('%s', (_, expected, actual, found) => {
  expect(differences(expected, actual)).toEqual(found.map((sentence) => expect.stringMatching(sentence)))
})
