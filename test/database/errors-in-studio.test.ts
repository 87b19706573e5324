// Refusals of an edit in Studio that breaks a rule of several columns or of a form: a sentence and the field, never the raw row.
// mistakes-in-studio.test.ts covers mistakes in one column.

import pg from 'pg'
import { beforeAll, describe, expect, test } from 'vitest'
import { during, refusalOf, row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { addOrder, edit, pay, read, refusalOfEdit, remove } from '../support/studio.ts'
import { createTenant } from './tenant-fixture.ts'

async function errorOf(work: Promise<unknown>): Promise<pg.DatabaseError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof pg.DatabaseError)) throw new Error('nothing was refused')
  return error
}

/** Nothing of the row is told but which one it is, and nothing that only a programmer reads. */
function expectSentence(error: pg.DatabaseError): void {
  expect(error.message).toMatch(/^[A-Z][ -~]*\.$/)
  expect(error.hint).toMatch(/\w/)
  expect(`${error.message} ${error.detail} ${error.hint}`).not.toMatch(/constraint|Failing row|relation|_fkey/)
}

// The same for all: nothing that is refused changes them.
const ids: Record<string, string> = {}
beforeAll(async () => {
  const { id, keyId, event, orderId, attendeeId } = await createTenant()
  Object.assign(ids, { organisations: id, api_keys: keyId, events: event.id, ticket_types: event.ticketTypeId })
  Object.assign(ids, { orders: orderId, attendees: attendeeId })
  for (const table of ['promo_codes', 'check_in_points', 'webhook_endpoints']) {
    ids[table] = (await row<{ id: string }>(`select id from public.${table} where organisation_id = $1`, [id])).id
  }
})

const before = "now() - interval '1 second'"

const named = ['organisations', 'api_keys', 'events', 'ticket_types', 'orders', 'attendees', 'check_in_points']

test.each([
  ...named.map((table) => [table, 'name', "name = E'two\\nlines'"]),
  ['events', 'ends_at', "ends_at = starts_at - interval '1 hour'"],
  ['events', 'ends_at', "starts_at = ends_at + interval '1 hour'"],
  ['events', 'starts_at', 'starts_at = null'],
  ['events', 'capacity', 'capacity = 0'],
  ['ticket_types', 'sales_end_at', `sales_start_at = now(), sales_end_at = ${before}`],
  ['ticket_types', 'max_per_order', 'min_per_order = 0'],
  ['ticket_types', 'max_per_order', 'min_per_order = 3, max_per_order = 2'],
  ['promo_codes', 'valid_until', `valid_from = now(), valid_until = ${before}`],
  ['promo_codes', 'max_redemptions', 'max_redemptions = 0'],
  ['promo_codes', 'percent_off', 'percent_off = 101'],
  ['promo_codes', 'percent_off', 'percent_off = null'],
  ['promo_codes', 'amount_off', 'amount_off = 500'],
  ['promo_codes', 'amount_off', 'percent_off = null, amount_off = 0'],
  ['check_in_points', 'closes_at', `opens_at = now(), closes_at = ${before}`],
  ['check_in_points', 'ticket_type_ids', `ticket_type_ids = array[gen_random_uuid()]`],
  ['webhook_endpoints', 'url', "url = 'http://hooks.example.com'"],
  ['organisations', 'reply_to_email', "reply_to_email = 'desk'"],
  ...["'red'", "'#12345'", "'#1234567'", "E'#12345\\n'"].map((colour) => [
    'organisations',
    'accent_colour',
    `accent_colour = ${colour}`,
  ]),
  ...[
    "'logo.png'",
    "'http://acme.example/logo.png'",
    "'https://me:secret@acme.example/'",
    "'data:image/png;base64,AA'",
  ].map((url) => ['organisations', 'logo_url', `logo_url = ${url}`]),
  ['organisations', 'payment_instructions', "payment_instructions = repeat('x', 2001)"],
  ['organisations', 'seller_details', "seller_details = repeat('x', 1001)"],
  ['organisations', 'tax_note', "tax_note = repeat('x', 1001)"],
])('of %s, a bad %s is refused in a sentence: %s', async (table, param, assignments) => {
  const error = await errorOf(
    studio.query(`update public.${table} set ${assignments} where id = $1`, [ids[table as string]]),
  )
  expectSentence(error)
  expect([error.code, JSON.parse(error.detail ?? '')]).toEqual([
    'PT422',
    {
      code: 'validation_failed',
      param,
      details: { fields: [{ param, message: error.message }] },
      row: expect.objectContaining({ id: ids[table as string] }),
    },
  ])
})

describe('in a statement of many rows', () => {
  const rowOf = async (sql: string, values: unknown[]) =>
    JSON.parse((await errorOf(studio.query(sql, values))).detail ?? '').row

  test.each([
    ['a value that cannot be', "company = case when a.name = 'Bea' then repeat('x', 201) end"],
    ['a name that is empty', "name = case when a.name = 'Bea' then ' ' else a.name end"],
    ['an address that is none', "email = case when a.name = 'Bea' then 'bea' else a.email end"],
    ['a field that is fixed', "price = case when a.name = 'Bea' then 100 else a.price end"],
    ['a field that Usher keeps', "version = case when a.name = 'Bea' then 9 else a.version end"],
    ['a field that follows from the scans', "inside = a.name = 'Bea'"],
    ['a step that there is not', "status = case when a.name = 'Bea' then 'awaiting_payment' else a.status end"],
  ])('%s is refused with the row that has it', async (_what, assignments) => {
    const event = await (await createOrganisation()).event()
    for (const name of ['Ann', 'Bea', 'Cay']) {
      const { attendeeId } = await event.guest()
      await edit('attendees', attendeeId, `name = '${name}'`)
    }
    const { rows } = await studio.query("select id, name from public.attendees where event_id = $1 and name = 'Bea'", [
      event.id,
    ])
    const told = await rowOf(`update public.attendees a set ${assignments} where a.event_id = $1`, [event.id])
    expect(told.id).toBe(rows[0].id)
    expect(told.name?.trim() || 'Bea').toBe('Bea')
  })

  test('a new row is told by its name, an order by its reference, and one of many that are deleted', async () => {
    const organisation = await createOrganisation()
    const event = await organisation.event()
    const insert = "insert into public.ticket_types (event_id, name, price) values ($1, 'Day', 100), ($1, 'Night', -1)"
    expect(await rowOf(insert, [event.id])).toMatchObject({ name: 'Night' })
    const { orderId, attendeeId } = await event.guest()
    const { reference } = await read('orders', orderId, 'reference')
    const write = "update public.orders set status = 'pending' where event_id = $1"
    expect(await rowOf(write, [event.id])).toEqual({ id: orderId, name: 'Guest', reference })
    const remove = 'delete from public.attendees where event_id = $1'
    expect(await rowOf(remove, [event.id])).toEqual({ id: attendeeId, name: 'Guest' })
  })

  test('keys are told of no row', async () => {
    const organisation = await createOrganisation()
    const { id } = await organisation.event()
    const claims = JSON.stringify({ organisation_id: organisation.id, role: 'scope_events_write' })
    const call = `select api.update_event('${id}', '{"timezone": "Nowhere"}')`
    const error = await during(async (client) => {
      await client.query(
        "select set_config('request.jwt.claims', $1, true), set_config('role', 'scope_events_write', true)",
        [claims],
      )
      return errorOf(client.query(call))
    })
    expect(JSON.parse(error.detail ?? '')).not.toHaveProperty('row')
  })
})

describe('deleting what is in use', () => {
  async function world() {
    const organisation = await createOrganisation()
    const event = await organisation.event()
    const { id, attendeeIds } = await addOrder(event, { subtotal: 4900, discount: 900 })
    const promo = await studio.query('select promo_code_id as id from public.orders where id = $1', [id])
    const guest = await event.guest()
    await studio.query('insert into public.check_ins (event_id, code) values ($1, $2)', [event.id, guest.code])
    await pay(id, 100)
    return {
      organisations: organisation.id,
      events: event.id,
      ticket_types: event.ticketTypeId,
      promo_codes: promo.rows[0].id as string,
      orders: id,
      attendees: guest.attendeeId,
      unpaid: attendeeIds[0] as string,
    }
  }

  test.each([
    ['organisations', /^The organisation is in use/, /Revoke/],
    ['events', /^The event is in use/, /^Cancel it instead/],
    ['ticket_types', /^The ticket type is in use/, /^Archive it instead/],
    ['promo_codes', /^The promo code is in use/, /^Disable it instead/],
    ['orders', /^The order is in use/, /^Cancel it instead/],
    ['attendees', /^The attendee is in use/, /^Cancel the ticket instead/],
    [
      'attendees',
      /^A valid ticket cannot be deleted/,
      /^Set status to cancelled instead\. .* erase_attendee/,
      'unpaid',
    ],
  ] as const)('of %s is refused, and the hint says what to do instead: %s', async (...of) => {
    const [table, message, hint, id = table] = of
    const ids = await world()
    const error = await errorOf(remove(table, ids[id]))
    expectSentence(error)
    expect([error.code, JSON.parse(error.detail ?? '')]).toEqual([
      'PT409',
      { code: 'in_use', row: expect.objectContaining({ id: ids[id] }) },
    ])
    expect(error.message).toMatch(message)
    expect(error.hint).toMatch(hint)
  })
})

describe('what Usher keeps itself', () => {
  const refused = (param: string) => ({ sqlstate: 'PT409', code: 'read_only_field', param })
  const stamps = ['version', 'created_at', 'updated_at']
  const kept = {
    organisations: ['created_at', 'updated_at'],
    api_keys: ['created_at', 'updated_at'],
    events: ['organisation_id', 'published_at', 'cancelled_at', 'completed_at', ...stamps],
    ticket_types: ['organisation_id', 'event_id', 'quantity_sold', 'quantity_held', ...stamps],
    promo_codes: ['times_redeemed', ...stamps],
    check_in_points: stamps,
    webhook_endpoints: ['organisation_id', ...stamps],
    orders: [
      ...['organisation_id', 'event_id', 'reference', 'currency', 'subtotal', 'discount_total', 'amount_paid'],
      ...['payment_status', 'payment_check_at', 'payment_remind_at', 'payment_reminded_at', 'completed_at'],
      ...['cancelled_at', ...stamps],
    ],
    attendees: [
      ...['organisation_id', 'event_id', 'order_id', 'price', 'discount', 'ticket_token', 'checked_in_at', 'inside'],
      ...['cancelled_at', ...stamps],
    ],
  }
  const written: Record<string, string> = {
    ...{ status: "'cancelled'", payment_status: "'paid'", ticket_email_status: "'not_requested'" },
    ...{ currency: "'USD'", reference: "'CHZSEN00'", inside: 'true' },
    ...{ ticket_code: "repeat('A', 16)", ticket_token: "repeat('0', 32)" },
  }
  const strange = (column: string) =>
    written[column] ??
    (/_id$/.test(column) ? 'gen_random_uuid()' : /_at$/.test(column) ? "'2000-01-01'" : `${column.length + 90}`)

  test.each(Object.entries(kept))('of %s is refused to other hands: %j', async (table, columns) => {
    const id = ids[table] as string
    const typed = table as Parameters<typeof edit>[0]
    for (const column of columns) {
      const value = column === 'inside' ? 'not inside' : strange(column)
      expect(await refusalOfEdit(typed, id, `${column} = ${value}`)).toEqual(refused(column))
    }
    // As Studio may save a row: with every column as it is. SQL that stamps the row itself does what Usher does.
    await edit(typed, id, columns.map((column) => `${column} = ${column}`).join(', '))
    await edit(typed, id, 'updated_at = now()')
  })

  test.each([
    ['events', 'organisation_id, name', "$1, 'New'", ['published_at', 'cancelled_at', 'completed_at']],
    ['ticket_types', 'event_id, name', "$2, 'New'", ['quantity_sold']],
    ...["'invoice'", 'null'].map((method) => [
      'orders',
      'event_id, name, email, payment_method',
      `$2, 'Buyer', 'buyer@example.com', ${method}`,
      [
        ...['status', 'payment_status', 'subtotal', 'amount_paid', 'currency', 'reference', 'completed_at'],
        'cancelled_at',
      ],
    ]),
    [
      'attendees',
      'order_id, ticket_type_id, name, email',
      "$3, $4, 'Guest', 'guest@example.com'",
      [
        ...['status', 'ticket_code', 'ticket_token', 'checked_in_at', 'inside', 'cancelled_at', 'price', 'currency'],
        'ticket_email_status',
      ],
    ],
  ] as [table: string, given: string, values: string, columns: string[]][])(
    'is not brought along by a new row of %s (%s: %s)',
    async (table, given, values, columns) => {
      const all = [ids.organisations, ids.events, ids.orders, ids.ticket_types]
      for (const column of columns) {
        const insert = `insert into public.${table} (${given}, ${column}) select ${values}, ${strange(column)}
          from (select $1::uuid, $2::uuid, $3::uuid, $4::uuid) as ids`
        expect([column, await refusalOf(studio.query(insert, all))]).toEqual([column, refused(column)])
      }
    },
  )

  test('is named with the way to change it', async () => {
    const event = await (await createOrganisation()).event()
    const { id } = await addOrder(event, { subtotal: 4900 })
    const hintOf = async (assignment: string) => (await errorOf(edit('orders', id, assignment))).hint
    expect(await hintOf("payment_status = 'paid'")).toBe('Record a payment or set status to cancelled instead.')
    expect(await hintOf('discount_total = 490')).toContain(
      'For another discount cancel the order, and register anew with a promo code.',
    )
  })
})
