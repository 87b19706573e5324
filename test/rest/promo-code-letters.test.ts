// One rule for promo codes: what the API validates, and what the database does, of any alphabet.

import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganiser } from '../support/organiser.ts'

const codes = [
  'TEN',
  'SOMMERGR\u00dcN',
  'e\u0301t\u00e9',
  '\u590f',
  '10%-OFF!',
  'x'.repeat(50),
  '\u00fc'.repeat(50),
  '\u{1f389}'.repeat(50),
]
const noCodes = [
  '',
  'TWO WORDS',
  'A\u00a0B',
  'A\u200bB',
  'A\u00adB',
  'A\u3164',
  'A\u2800',
  'A\u202eB',
  'A\ufeffB',
  'A\u2003B',
  'A\tB',
  'A\u0085',
  'x'.repeat(51),
]

test('what may be a promo code is the same over REST and in the database', async () => {
  const { event, send } = await createOrganiser()
  const overRest = async (code: string) =>
    (await send('POST', `/events/${event.id}/promo-codes`, { code, percent_off: 10 })).status
  const inStudio = (code: string) =>
    studio.query('update public.promo_codes set code = $2 where event_id = $1', [event.id, code]).then(
      () => 201,
      ({ code: sqlstate }: { code: string }) => Number(sqlstate.replace('PT', '')),
    )
  for (const code of [...codes, ...noCodes]) {
    const expected = codes.includes(code) ? 201 : 422
    expect([code, await overRest(code)]).toEqual([code, expected])
  }
  await studio.query('delete from public.promo_codes where event_id = $1', [event.id])
  await studio.query("insert into public.promo_codes (event_id, code, percent_off) values ($1, 'A', 1)", [event.id])
  for (const code of [...codes, ...noCodes]) {
    expect([code, await inStudio(code)]).toEqual([code, codes.includes(code) ? 201 : 422])
  }
})

test('a promo code beyond ASCII is taken in any case and however its letters are composed, and is no other one', async () => {
  const { event, send } = await createOrganiser()
  const priced = await event.ticketType({ price: 1000 })
  const make = async (code: string, percent_off: number) =>
    (await send('POST', `/events/${event.id}/promo-codes`, { code, percent_off })).body
  expect((await make('SOMMERGR\u00dcN', 10)).data.code).toBe('SOMMERGR\u00dcN')
  expect((await make('sommergru\u0308n', 10)).error.code).toBe('already_exists')
  const planned = await send('POST', '/event-plans', {
    event: event.id,
    promo_codes: [
      { code: 'SOMMERGRUN', percent_off: 20 },
      { code: 'sommergru\u0308n', percent_off: 10 },
    ],
  })
  expect(planned.body.data.steps.map(({ action, name }: never) => [action, name])).toEqual([
    ['create', 'SOMMERGRUN'],
    ['change', 'SOMMERGR\u00dcN'],
  ])
  await make('SOMMERGRUN', 20)
  for (const [typed, discount] of [
    ['sommergr\u00fcn', 100],
    [' SOMMERGRU\u0308N ', 100],
    ['sommergrun', 200],
  ] as const) {
    const { status, body } = await send('POST', `/events/${event.id}/registrations`, {
      ...{
        ticket_type_id: priced,
        name: 'Mary',
        email: 'mary@example.com',
        payment_method: 'invoice',
        promo_code: typed,
      },
    })
    expect([status, body.data.discount_total], typed).toEqual([201, discount])
  }
  const { count } = await row<{ count: number }>(
    'select count(*)::int as count from public.promo_codes where event_id = $1 and code = normalize(code, nfc)',
    [event.id],
  )
  expect(count).toBe(2)
})
