// What holds in Studio whatever the status: keys that stay revoked, metadata that stays flat.

import { beforeAll, describe, expect, test } from 'vitest'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { row } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { edit, read, refusalOfEdit } from '../support/studio.ts'

describe('an API key', () => {
  async function addKey() {
    const organisation = await createOrganisation()
    const { id } = await row<{ id: string }>('select id from public.api_keys where prefix = $1', [
      prefixOf(await organisation.key()),
    ])
    return id
  }

  test.each(['null', "now() + interval '1 day'"])('that was revoked stays revoked: %s is refused', async (value) => {
    const id = await addKey()
    await edit('api_keys', id, 'revoked_at = now()')
    const before = await read('api_keys', id, 'revoked_at')
    expect(await refusalOfEdit('api_keys', id, `revoked_at = ${value}`)).toEqual({
      sqlstate: 'PT409',
      code: 'api_key_revoked',
      param: 'revoked_at',
    })
    expect(await read('api_keys', id, 'revoked_at')).toEqual(before)
    // The rest of it can still be edited, with the whole row sent as Studio does.
    await edit('api_keys', id, "name = 'Old scanner', revoked_at = revoked_at")
  })

  test.each(["now() + interval '1 day'", "'2000-01-01'"])('is revoked now, though %s was meant', async (value) => {
    const id = await addKey()
    await edit('api_keys', id, `revoked_at = ${value}`)
    const { revoked_at } = await read('api_keys', id, 'revoked_at')
    expect(Math.abs(Number(revoked_at) - Date.now())).toBeLessThan(60_000)
  })

  test.each([
    ['scopes', "'{}'"],
    ['scopes', "'{null}'"],
  ])('with %s = %s is refused', async (param, value) => {
    const refusal = await refusalOfEdit('api_keys', await addKey(), `${param} = ${value}`)
    expect(refusal).toMatchObject({ sqlstate: 'PT422', code: 'validation_failed', param })
  })

  test('begins a family of its own when it is not made by rotation', async () => {
    const id = await addKey()
    expect(await read('api_keys', id, 'family_id')).toEqual({ family_id: id })
  })
})

describe('metadata', () => {
  let rows: (readonly [Parameters<typeof edit>[0], string])[]
  beforeAll(async () => {
    const event = await (await createOrganisation()).event()
    const { orderId, attendeeId } = await event.guest()
    rows = [
      ['events', event.id],
      ['ticket_types', event.ticketTypeId],
      ['orders', orderId],
      ['attendees', attendeeId],
    ]
  })

  const keys = (n: number) => Object.fromEntries(Array.from({ length: n }, (_, i) => [`key_${i}`, i]))

  test.each([
    ['an object inside', { a: { b: 1 } }],
    ['a list inside', { a: [1] }],
    ['51 keys', keys(51)],
    ['an empty key', { '': 1 }],
    ['a key of 41 characters', { ['k'.repeat(41)]: 1 }],
    ['a text of 501 characters', { a: 'x'.repeat(501) }],
    ['a whole number beyond 2^53 - 1', '{"a": 9007199254740992}'],
    ['a whole number below that', '{"a": -9007199254740993}'],
    ['a huge number', '{"a": 1e300}'],
    ['a number of too many digits', '{"a": 0.1000000000000000055}'],
    ['a number that is too small', '{"a": 1e-400}'],
    ['a key that JavaScript takes for another', '{"__proto__": 1}'],
    ['a list for an object', []],
    ['a text for an object', 'text'],
    ['null for an object', null],
  ])('with %s is refused, on every table that has it', async (_what, metadata) => {
    for (const [table, id] of rows) {
      const json = typeof metadata === 'string' && metadata.startsWith('{') ? metadata : JSON.stringify(metadata)
      const refusal = await refusalOfEdit(table, id, 'metadata = $2', [json])
      expect([table, refusal]).toMatchObject([
        table,
        { sqlstate: 'PT422', code: 'validation_failed', param: 'metadata' },
      ])
    }
  })

  test.each([
    ['nothing', {}],
    ['50 keys', keys(50)],
    [
      'numbers that a double holds',
      { a: 2 ** 53 - 1, b: 1 - 2 ** 53, c: 0.1, d: 1.7976931348623157e-300, e: 5e-324, f: -0.5 },
    ],
    ['every kind of value', { text: 'x'.repeat(500), number: 1.5, yes: true, none: null }],
  ])('with %s is kept as it is', async (_what, metadata) => {
    for (const [table, id] of rows) {
      await edit(table, id, 'metadata = $2', [JSON.stringify(metadata)])
      expect((await read(table, id, 'metadata')).metadata).toEqual(metadata)
    }
  })
})

test('whatever is edited says when', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { orderId, attendeeId, code } = await event.guest()
  await organisation.key()
  const idOf = async (sql: string, ...values: unknown[]) => (await row<{ id: string }>(sql, values)).id
  const checkInId = await idOf(
    'insert into public.check_ins (event_id, code) values ($1, $2) returning id',
    event.id,
    code,
  )
  const keyId = await idOf('select id from public.api_keys where organisation_id = $1', organisation.id)
  for (const [table, id, assignment] of [
    ['organisations', organisation.id, "name = 'Renamed'"],
    ['api_keys', keyId, "name = 'Renamed'"],
    ['events', event.id, "name = 'Renamed'"],
    ['ticket_types', event.ticketTypeId, "name = 'Renamed'"],
    ['orders', orderId, "name = 'Renamed'"],
    ['attendees', attendeeId, "name = 'Renamed'"],
    ['check_ins', checkInId, 'undone_at = now()'],
  ] as const) {
    const before = await read(table, id, 'updated_at', 'created_at')
    await edit(table, id, `${assignment}, updated_at = updated_at`)
    const after = await read(table, id, 'updated_at', 'created_at')
    expect(Number(after.updated_at), table).toBeGreaterThan(Number(before.updated_at))
    expect(after.created_at).toEqual(before.created_at)
  }
})
