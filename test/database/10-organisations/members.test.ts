// Members over the Data API: secrets, views, and the settings of the workspace. test/database/tenancy-of-people.test.ts tests the rights of
// each role on each table.

import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { isWellFormedKey } from '../../../src/gateway/api-key.ts'
import { refusalOf, row, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { rest } from '../../support/rest.ts'
import { tracesFromNow } from '../../support/traces.ts'
import type { Claims } from '../actor.ts'
import { send, sign } from '../data-api-client.ts'
import { createTenant, join as joinAs, signUp, type Tenant } from '../tenant-fixture.ts'

const roles = ['owner', 'manager', 'door', 'viewer', 'stranger'] as const
type Role = (typeof roles)[number]

let tenant: Tenant
const tokens = {} as Record<Role, string>
const people = {} as Record<Role, Claims>
beforeAll(async () => {
  tenant = await createTenant()
  for (const role of roles) {
    people[role] = await signUp()
    if (role !== 'stranger') await joinAs(tenant.id, people[role], role)
    tokens[role] = await sign({ ...people[role], role: 'authenticated' } as Claims)
  }
})

const as = (role: Role) => (method: string, path: string, body?: unknown) =>
  send(
    {
      method,
      path,
      ...(body !== undefined && { body }),
      headers: { [method === 'GET' ? 'Accept-Profile' : 'Content-Profile']: 'public' },
    },
    tokens[role],
  )

test('no member reads a ticket code, a secret or a key from any table or view', async () => {
  for (const role of roles) {
    for (const path of [
      '/attendees?select=ticket_code',
      '/attendees?select=ticket_token',
      '/attendees?select=search_text',
      '/check_ins?select=code',
      '/emails?select=sent_code',
      '/notifications?select=data',
      '/webhook_secrets',
      '/api_key_hashes',
      '/idempotency_records',
    ]) {
      expect([role, path, (await as(role)('GET', path)).status]).toEqual([
        role,
        path,
        expect.toSatisfy((s) => s >= 400),
      ])
    }
  }
})

test('a function shows ticket codes to owner, manager and door', async () => {
  const codes = (role: Role) => as(role)('POST', '/rpc/ticket_codes', { event_id: tenant.event.id })
  for (const role of ['owner', 'manager', 'door'] as const) {
    expect((await codes(role)).body).toContainEqual(
      expect.objectContaining({
        ticket_code: expect.stringMatching(/^[0-9A-Z]{16}$/),
        ticket_path: expect.stringMatching(/^\/t\/[0-9a-f]{32}$/),
      }),
    )
  }
  for (const role of ['viewer', 'stranger'] as const) {
    expect(await codes(role)).toMatchObject({ status: 404, code: 'not_found' })
  }
})

const viewNames = [
  'event_sales',
  'registrations',
  'unpaid_orders',
  'door_list',
  'arrivals',
  'undelivered_tickets',
  'failing_webhook_endpoints',
  'members',
  'audit_trail',
  'attendee_export',
  'order_export',
  'payment_export',
  'check_in_export',
]
test.each(viewNames)('the view %s shows a member their own organisations, and a stranger nothing', async (view) => {
  await studio.query("update public.attendees set ticket_email_status = 'failed' where id = $1", [tenant.attendeeId])
  await studio.query(
    "update public.webhook_endpoints set status = 'disabled', disabled_reason = 'It answered 410 Gone.' where organisation_id = $1",
    [tenant.id],
  )
  const read = async (role: Role) => (await as(role)('GET', `/${view}`)).body as { organisation_id: string }[]
  const seen = await read('owner')
  expect(seen.length).toBeGreaterThan(0)
  expect(new Set(seen.map(({ organisation_id }) => organisation_id))).toEqual(new Set([tenant.id]))
  expect(await read('stranger')).toEqual([])
})

test('the figures of sales are true, or are not shown to who may not read attendees', async () => {
  const read = async (role: Role) => (await as(role)('GET', '/event_sales')).body as { ordered: string }[]
  const seen = await read('owner')
  expect([await read('manager'), await read('viewer'), await read('door')]).toEqual([seen, seen, []])
})

test('no_shows has who had a ticket for an event that is over, and did not come', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const guests = [await event.guest(), await event.guest()]
  const names = () =>
    studio
      .query('select attendee_id from public.no_shows where event_id = $1', [event.id])
      .then(({ rows }) => rows.map(({ attendee_id }) => attendee_id))
  await studio.query('insert into public.check_ins (event_id, attendee_id) values ($1, $2)', [
    event.id,
    guests[0]?.attendeeId,
  ])
  expect(await names()).toEqual([])
  await studio.query("update public.events set starts_at = '2020-01-01Z', ends_at = '2020-01-02Z' where id = $1", [
    event.id,
  ])
  expect(await names()).toEqual([guests[1]?.attendeeId])
})

// A row that is added to the view of registrations is a registration: see registrations-view.test.ts.
test.each([...viewNames, 'no_shows'])(
  'a write to the view %s is refused for want of a privilege, and told of in a sentence',
  async (view) => {
    const isAddedTo = view === 'registrations'
    for (const [method, path, body] of [
      ['POST', `/${view}`, { organisation_id: tenant.id }],
      ['PATCH', `/${view}?organisation_id=eq.${tenant.id}`, { organisation_id: tenant.id }],
      ['DELETE', `/${view}?organisation_id=eq.${tenant.id}`, undefined],
    ] as const) {
      if (isAddedTo && method === 'POST') continue
      expect(await as('owner')(method, path, body)).toMatchObject({
        status: 403,
        sqlstate: '42501',
        body: { message: `permission denied for view ${view}` },
      })
    }
    const write = isAddedTo
      ? `delete from public.${view} where organisation_id = $1`
      : `insert into public.${view} (organisation_id) values ($1)`
    expect(await refusalOf(studio.query(write, [tenant.id]))).toMatchObject({
      sqlstate: 'PT405',
      code: 'method_not_allowed',
    })
  },
)

test('a member has the name and address of their account, and those that were typed where it has none', async () => {
  const { id } = await createOrganisation()
  const other = await createOrganisation()
  const add = async (account: { email?: string; meta?: object }, typed: { name?: string; email?: string }) => {
    const person = await signUp()
    const { sub } = person
    // Accounts have addresses that no other has.
    await studio.query('update auth.users set email = $2, raw_user_meta_data = $3 where id = $1', [
      sub,
      account.email && `${randomUUID()}-${account.email}`,
      account.meta,
    ])
    for (const organisationId of [id, other.id]) await joinAs(organisationId, person, 'viewer')
    await studio.query(
      'update public.organisation_members set name = $3, email = $4 where organisation_id = $1 and user_id = $2',
      [id, sub, typed.name, typed.email],
    )
    return person
  }
  const typed = { name: 'Typed', email: 'typed@example.com' }
  const people = [
    await add({ email: 'ada@example.com', meta: { full_name: 'Ada Lovelace', name: 'ada' } }, typed),
    await add({ email: 'bea@example.com', meta: { name: ' Bea\nand two lines ' } }, typed),
    await add({ meta: { full_name: '', nickname: 'Cy' } }, typed),
    await add({ email: 'dan@example.com' }, {}),
    await add({}, {}),
  ]
  const membersFor = async (person: Claims, organisationId: string) => {
    const { body } = await send(
      {
        path: `/members?organisation_id=eq.${organisationId}&order=user_id`,
        headers: { 'Accept-Profile': 'public' },
      },
      await sign({ ...person, role: 'authenticated' } as Claims),
    )
    const byUser = new Map((body as { user_id: string; name: string; email: string }[]).map((m) => [m.user_id, m]))
    return people.map(({ sub }) => [byUser.get(sub as string)?.name, byUser.get(sub as string)?.email])
  }
  expect(await membersFor(people[0] as Claims, id)).toEqual([
    ['Ada Lovelace', expect.stringMatching(/-ada@example.com$/)],
    ['Bea and two lines', expect.stringMatching(/-bea@example.com$/)],
    ['Typed', 'typed@example.com'],
    [null, expect.stringMatching(/-dan@example.com$/)],
    [null, null],
  ])
  // What was typed belongs to the organisation.
  expect((await membersFor(people[0] as Claims, other.id))[2]).toEqual([null, null])
  const stranger = await signUp()
  expect(await membersFor(stranger, id)).toEqual(people.map(() => [undefined, undefined]))
})

test('what was typed of a member is erased where nothing else has the address, or their name', async () => {
  const tracesOf = await tracesFromNow()
  const organisation = await createOrganisation()
  const email = `desk-${randomUUID()}@example.com`
  const type = async (name: string | null, isRemoved = false) => {
    const person = await signUp()
    await joinAs(organisation.id, person, 'viewer')
    const typed = [organisation.id, person.sub, name, email]
    const where = 'public.organisation_members set name = $3, email = $4 where organisation_id = $1 and user_id = $2'
    await studio.query(`update ${where}`, typed)
    if (isRemoved) await studio.query('delete from public.organisation_members where user_id = $1', [person.sub])
  }
  const erase = (names: string[] | null = null) =>
    row<{ receipt: { people: number; kept: { what: string }[] } }>(
      'select public.erase_person($1, $2, organisation_id => $3) as receipt',
      [email, names, organisation.id],
    )
  const typed = async () =>
    (
      await studio.query<{ name: string }>(
        'select name from public.organisation_members where organisation_id = $1 and email = $2 order by name',
        [organisation.id, email],
      )
    ).rows.map(({ name }) => name)
  await type('Ann')
  await type('Bob')
  await type('Bob', true)
  expect(await refusalOf(erase())).toMatchObject({ code: 'several_people', param: 'names' })
  expect(await refusalOf(erase(['Adam']))).toMatchObject({ sqlstate: 'PT404', param: 'names' })
  const { id: eventId, ticketTypeId } = await organisation.event()
  await studio.query(
    "insert into public.registrations (event_id, ticket_type_id, name, email) values ($1, $2, 'Ann', $3)",
    [eventId, ticketTypeId, email],
  )
  const { receipt } = await erase(['bob'])
  expect(receipt).toMatchObject({ people: 1, attendees: 0 })
  expect(receipt.kept.map(({ what }) => what)).not.toContain('names_not_found')
  expect(await typed()).toEqual(['Ann'])
  expect(await refusalOf(erase(['Bob']))).toMatchObject({ sqlstate: 'PT404', param: 'names' })
  expect((await erase()).receipt).toMatchObject({ people: 1, attendees: 1 })
  expect(await typed()).toEqual([])
  // Of one without a name there is the address alone.
  await type(null)
  expect((await erase()).receipt).toMatchObject({ people: 1, attendees: 0 })
  expect(await tracesOf(email)).toEqual([])
  expect(await refusalOf(erase())).toMatchObject({ sqlstate: 'PT404', param: 'email' })
})

test('money is shown in the decimals of its currency', async () => {
  const { rows } = await studio.query(
    "select private.money_text(4900, 'EUR') as eur, private.money_text(4900, 'JPY') as jpy, private.money_text(4900, 'KWD') as kwd",
  )
  expect(rows).toEqual([{ eur: 'EUR 49.00', jpy: 'JPY 4900', kwd: 'KWD 4.900' }])
})

describe('the workspace settings', () => {
  test('an owner creates, rotates and revokes a key, which works at once', async () => {
    const call = as('owner')
    const created = await call('POST', '/rpc/create_api_key', {
      name: 'CRM',
      scopes: ['events:read'],
      organisation_id: tenant.id,
    })
    const { key, prefix } = created.body as { key: string; prefix: string }
    expect(isWellFormedKey(key)).toBe(true)
    expect((await rest(key)('GET', '/me')).body.data).toMatchObject({ prefix, name: 'CRM', scopes: ['events:read'] })
    const rotated = (await call('POST', '/rpc/rotate_api_key', { prefix, overlap_hours: 1 })).body as {
      key: string
      prefix: string
    }
    expect([(await rest(key)('GET', '/me')).status, (await rest(rotated.key)('GET', '/me')).status]).toEqual([200, 200])
    expect(await call('POST', '/rpc/revoke_api_key', { prefix: rotated.prefix })).toMatchObject({ status: 200 })
    expect((await rest(rotated.key)('GET', '/me')).body.error.code).toBe('api_key_revoked')
    const { rows } = await studio.query<{ text: string }>(
      'select k::text as text from public.api_keys k where k.prefix = $1',
      [prefix],
    )
    expect(rows[0]?.text).not.toContain(key.slice(19))
  })

  test('nobody but an owner does, and each bad value is named', async () => {
    for (const role of ['manager', 'door', 'viewer', 'stranger'] as const) {
      const call = as(role)
      const create = { name: 'X', scopes: ['events:read'], organisation_id: tenant.id }
      expect(await call('POST', '/rpc/create_api_key', create)).toMatchObject({ status: 404 })
      expect(
        await call('POST', '/rpc/invite_member', { email: 'a@example.com', organisation_id: tenant.id }),
      ).toMatchObject({ status: 404 })
      expect(await call('POST', '/rpc/create_organisation', { name: 'X', slug: `x-${randomUUID()}` })).toMatchObject({
        status: 403,
      })
    }
    const call = as('owner')
    const create = (more: object) =>
      call('POST', '/rpc/create_api_key', { name: 'X', scopes: ['events:read'], ...more })
    expect(await create({ scopes: [] })).toMatchObject({ status: 422, param: 'scopes' })
    expect(await create({ name: '' })).toMatchObject({ status: 422, param: 'name' })
    expect(await create({ expires_at: '2020-01-01T00:00:00Z' })).toMatchObject({ status: 422, param: 'expires_at' })
    expect(await call('POST', '/rpc/rotate_api_key', { prefix: 'usher_live_nobodysK' })).toMatchObject({ status: 404 })
    const { prefix } = (await create({ organisation_id: tenant.id })).body as { prefix: string }
    // Without an end the old key would stay valid.
    for (const overlap_hours of [null, -1, 721]) {
      expect(await call('POST', '/rpc/rotate_api_key', { prefix, overlap_hours })).toMatchObject({
        status: 422,
        param: 'overlap_hours',
      })
    }
  })

  test('an owner gives a person with an account a role, and founds an organisation', async () => {
    const person = await signUp()
    const email = `${randomUUID()}@example.com`
    await studio.query('update auth.users set email = $2 where id = $1', [person.sub, email])
    const call = as('owner')
    const invite = { email: email.toUpperCase(), role: 'door', organisation_id: tenant.id }
    const invited = (await call('POST', '/rpc/invite_member', { ...invite, name: 'Mary Jackson' })).body
    expect(invited).toEqual({ organisation_id: tenant.id, user_id: person.sub, role: 'door' })
    // Another role leaves the name.
    expect(await call('POST', '/rpc/invite_member', { ...invite, role: 'manager' })).toMatchObject({ status: 200 })
    const member = await as('owner')('GET', `/members?user_id=eq.${person.sub}&select=name,email,role`)
    expect(member.body).toEqual([{ name: 'Mary Jackson', email, role: 'manager' }])
    expect(await call('POST', '/rpc/invite_member', { ...invite, email: 'nobody@example.com' })).toMatchObject({
      status: 404,
      param: 'email',
    })
    const slug = `founded-${randomUUID()}`
    expect((await call('POST', '/rpc/create_organisation', { name: 'Founded', slug })).body).toMatchObject({
      slug,
      plan: 'standard',
    })
    expect(await call('POST', '/rpc/create_organisation', { name: 'Founded', slug })).toMatchObject({
      status: 409,
      param: 'slug',
    })
    expect(await call('POST', '/rpc/create_organisation', { name: 'Founded', slug: 'Ä' })).toMatchObject({
      status: 422,
      param: 'slug',
    })
  })

  test('an owner makes one test twin of their organisation, with its look, and owns it', async () => {
    const { id, slug } = await createOrganisation()
    const owner = await signUp()
    await joinAs(id, owner, 'owner')
    await studio.query("update public.organisations set accent_colour = '#8a1c3b' where id = $1", [id])
    const twin = async (organisation_id: string, by = owner) =>
      send(
        {
          ...{ method: 'POST', path: '/rpc/create_test_organisation', body: { organisation_id } },
          headers: { 'Content-Profile': 'public' },
        },
        await sign({ ...by, role: 'authenticated' }),
      )
    expect(await twin(id, await signUp())).toMatchObject({ status: 404 })
    const both = await Promise.all([twin(id), twin(id)])
    const [first, second] = both.toSorted((a, b) => a.status - b.status)
    expect(second).toMatchObject({ status: 409, code: 'already_exists', param: 'slug' })
    const made = first?.body as { id: string; slug: string }
    expect(made.slug).toBe(`${slug}-test`)
    const { rows } = await studio.query(
      `select o.is_test, o.accent_colour, m.role, m.user_id
       from public.organisations o join public.organisation_members m on m.organisation_id = o.id where o.id = $1`,
      [made.id],
    )
    expect(rows).toEqual([{ is_test: true, accent_colour: '#8a1c3b', role: 'owner', user_id: owner.sub }])
    expect(await twin(id)).toMatchObject({ status: 409, param: 'slug' })
    expect(await twin(made.id)).toMatchObject({ status: 422, param: 'organisation_id' })
  })

  test('the last owner stays one, whoever of two leaves first', async () => {
    const { id } = await createOrganisation()
    const owners = [await signUp(), await signUp()]
    for (const owner of owners) await joinAs(id, owner, 'owner')
    const leave = async (owner: Claims | undefined) =>
      send(
        {
          method: 'PATCH',
          path: `/organisation_members?organisation_id=eq.${id}&user_id=eq.${owner?.sub}`,
          body: { role: 'viewer' },
          headers: { 'Content-Profile': 'public' },
        },
        await sign({ ...owner, role: 'authenticated' } as Claims),
      )
    const left = await Promise.all(owners.map(leave))
    expect(left.map(({ status }) => status).sort()).toEqual([204, 409])
    expect(left.find(({ status }) => status === 409)).toMatchObject({ code: 'last_owner', param: 'role' })
    const { rowCount } = await studio.query('delete from public.organisation_members where organisation_id = $1', [id])
    expect(rowCount, 'in Studio everything may go').toBe(2)
  })

  test('a row without an organisation gets the only one of the member', async () => {
    const slug = `mine-${randomUUID()}`
    const add = (role: Role) => as(role)('POST', '/events', { name: 'Mine', slug })
    expect((await add('manager')).status).toBe(201)
    const { rows } = await studio.query('select organisation_id from public.events where slug = $1', [slug])
    expect(rows).toEqual([{ organisation_id: tenant.id }])
    const newcomer = await createOrganisation()
    await joinAs(newcomer.id, people.manager, 'manager')
    expect(await add('manager')).toMatchObject({ status: 422, param: 'organisation_id' })
    expect((await add('viewer')).status).toBe(422)
  })

  test('the SQL editor does the same', async () => {
    const { id } = await createOrganisation()
    const { rows } = await studio.query<{ made: { key: string } }>(
      "select public.create_api_key('Studio', '{events:read}', $1) as made",
      [id],
    )
    expect((await rest(rows[0]?.made.key)('GET', '/me')).status).toBe(200)
  })

  test('a key for a person is of their kind, stays so when it is rotated, and asks nobody', async () => {
    const { id } = await createOrganisation()
    const make = (more = '') =>
      studio.query<{ made: { key: string; prefix: string } }>(
        `select public.create_api_key('Jane Doe', '{events:read}', $1, for_person => true ${more}) as made`,
        [id],
      )
    await expect(make(", confirmations => 'none'")).rejects.toMatchObject({ code: 'PT422' })
    const { key, prefix } = (await make()).rows[0]?.made ?? { key: '', prefix: '' }
    expect(key).toMatch(/^usher_live_/)
    await studio.query('select public.rotate_api_key($1)', [prefix])
    const keys = await studio.query('select kind, name from public.api_keys where organisation_id = $1 order by id', [
      id,
    ])
    expect(keys.rows).toEqual([
      { kind: 'person', name: 'Jane Doe' },
      { kind: 'person', name: 'Jane Doe' },
    ])
    expect((await rest(key)('GET', '/me')).body.error.code).toBe('key_for_people')
  })
})
