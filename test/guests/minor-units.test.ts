// One truth for the decimals of a currency: e-mails, the door and answers over MCP say amounts as the database does.

import { expect, test } from 'vitest'
import { decimalsOf as decimalsAtTheDoor } from '../../src/apps/door/browser/minor-units.ts'
import { amountOf } from '../../src/guests/facts.ts'
import { decimalsOf } from '../../src/guests/minor-units.ts'
import { wordsOf } from '../../src/guests/words/index.ts'
import { studio } from '../support/database.ts'

test('every currency has the decimals that the database counts with', async () => {
  const currencies = Intl.supportedValuesOf('currency')
  const { rows } = await studio.query(
    'select c as currency, private.minor_units(c) as units from unnest($1::text[]) c',
    [currencies],
  )
  expect(rows.length).toBeGreaterThan(100)
  for (const { currency, units } of rows) {
    expect(
      [decimalsOf, decimalsAtTheDoor].map((decimals) => 10 ** decimals(currency)),
      currency,
    ).toEqual([units, units])
  }
})

test('an amount in forints has its two decimals, though shops do without', () => {
  expect(amountOf(299_000, 'HUF', wordsOf('en'))).toMatch(/2,990\.00/)
})
