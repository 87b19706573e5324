// apply_event: what a plan says, that applying it does exactly that, and when it is outdated.

import { expect, test } from 'vitest'
import { actAs } from '../database/actor.ts'
import { createTenant } from '../database/tenant-fixture.ts'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { type RestAnswer, rest } from '../support/rest.ts'
import { edit } from '../support/studio.ts'

type Step = { action: string; kind: string; name: string; changes?: Record<string, unknown>; error?: { code: string } }

const conference = {
  changes: {
    name: 'Data Days',
    starts_at: '2027-05-03T09:00:00+02:00',
    ends_at: '2027-05-04T17:00:00+02:00',
    timezone: 'Europe/Berlin',
    venue: { city: 'Berlin' },
    status: 'published',
  },
  ticket_types: [
    { name: 'Standard', price: 29900, quantity: 200, sales_end_at: '2027-05-01T18:00:00+02:00' },
    { name: 'VIP', price: 59900, external_id: 'vip' },
  ],
  promo_codes: [{ code: 'EARLY', percent_off: 20, ticket_types: ['standard'] }],
  check_in_points: [
    { name: 'Door', admission: 'once_per_day' },
    { name: 'Lounge', ticket_types: ['VIP'] },
  ],
}

async function organiser() {
  const organisation = await createOrganisation()
  const send = rest(await organisation.key())
  const call = (body: object, headers?: Record<string, string>) => send('POST', '/event-plans', body, headers)
  /** Plans it, and applies the plan. */
  const apply = async (body: object) => {
    const plan = await call(body)
    expect([plan.status, plan.body.data?.refusals], JSON.stringify(plan.body)).toEqual([200, 0])
    const applied = await call({ ...body, plan_id: plan.body.data.plan_id })
    expect(applied.status, JSON.stringify(applied.body)).toBe(200)
    return { plan: plan.body.data, applied: applied.body.data, effect: applied.body.effect }
  }
  const belongings = async (eventId: string) => {
    const list = async (path: string) => (await send('GET', `/events/${eventId}/${path}`)).body.data
    return {
      event: (await send('GET', `/events/${eventId}`)).body.data,
      ticketTypes: await list('ticket-types'),
      promoCodes: await list('promo-codes'),
      points: await list('check-in-points'),
    }
  }
  return { organisation, send, call, apply, belongings }
}

const said = ({ steps }: { steps: Step[] }) => steps.map(({ action, kind, name }) => `${action} ${kind} ${name}`)
const refusal = ({ status, body }: RestAnswer) => [status, body.error?.code, body.error?.details?.reason]

test('a plan says what the defaults are that matter, and counts only what it was sent', async () => {
  const { call, apply } = await organiser()
  const { data } = (await call(conference)).body
  const of = (kind: string) => data.steps.filter((step: Step) => step.kind === kind).map((step: Step) => step.changes)
  expect(of('check_in_point')).toMatchObject([{ admission: 'once_per_day' }, { admission: 'once' }])
  expect(of('event')).toMatchObject([{ status: 'draft' }, { status: ['draft', 'published'] }])

  const { applied } = await apply({ ...conference, changes: { ...conference.changes, slug: 'data-days' } })
  const event = applied.event.id
  expect((await call({ event, ticket_types: [{ name: 'Late', price: 100 }] })).body.data.unchanged).toBe(0)
  expect((await call({ event, changes: { name: 'Data Days' } })).body.data.unchanged).toBe(1)
})

test('a conference is set up and published in two calls, the second of which says no more than the plan', async () => {
  const { call, belongings, organisation } = await organiser()
  const plan = await call(conference)
  expect(plan.body).toMatchObject({
    data: {
      object: 'event_plan',
      applied: false,
      event: { id: null, name: 'Data Days', status: 'published', starts_at: '2027-05-03T09:00:00+02:00' },
      refusals: 0,
      more_steps: 0,
    },
  })
  expect(said(plan.body.data)).toEqual([
    'create event Data Days',
    'create ticket_type Standard',
    'create ticket_type VIP',
    'create promo_code EARLY',
    'create check_in_point Door',
    'create check_in_point Lounge',
    'change event Data Days',
  ])
  expect(plan.body.data.steps[1].changes).toEqual({
    price: 'EUR 299.00',
    quantity: 200,
    sales_end_at: '2027-05-01T18:00:00+02:00',
  })
  expect(await row('select count(*)::int from public.events where organisation_id = $1', [organisation.id])).toEqual({
    count: 0,
  })

  const applied = await call({ plan_id: plan.body.data.plan_id })
  expect(said(applied.body.data)).toEqual(said(plan.body.data))
  const { event, ticketTypes, promoCodes, points } = await belongings(applied.body.data.event.id)
  expect(event).toMatchObject({ status: 'published', slug: 'data-days', venue: { city: 'Berlin' } })
  expect(ticketTypes.map((t: { name: string; price: number }) => [t.name, t.price])).toEqual([
    ['Standard', 29900],
    ['VIP', 59900],
  ])
  expect(promoCodes[0].ticket_type_ids).toEqual([ticketTypes[0].id])
  expect(points.map((p: { admission: string }) => p.admission)).toEqual(['once_per_day', 'once'])
  expect(points[1].ticket_type_ids).toEqual([ticketTypes[1].id])
})

test('what is so already makes no step, what is named changes, and what is not named stays or is archived', async () => {
  const { apply, belongings } = await organiser()
  const { applied } = await apply(conference)
  const { id } = applied.event
  const again = await apply({ ...conference, event: 'DATA days' })
  expect(again.plan).toMatchObject({ steps: [], unchanged: 6 })

  const { plan } = await apply({
    event: 'data-days',
    changes: { capacity: 300, description: null },
    ticket_types: [
      { external_id: 'vip', name: 'Gold' },
      { name: 'Student', price: 4900 },
    ],
    promo_codes: [{ code: 'early', amount_off: 500, ticket_types: [] }],
    check_in_points: [{ id: 'lounge', name: 'Gold lounge', closes_at: '2027-05-04T12:00:00+02:00' }],
    archive_missing: true,
  })
  expect(plan.steps).toEqual([
    { action: 'change', kind: 'event', name: 'Data Days', changes: { capacity: [null, 300] } },
    { action: 'change', kind: 'ticket_type', name: 'VIP', changes: { name: ['VIP', 'Gold'] } },
    { action: 'create', kind: 'ticket_type', name: 'Student', changes: { price: 'EUR 49.00' } },
    { action: 'archive', kind: 'ticket_type', name: 'Standard', changes: { status: ['active', 'archived'] } },
    {
      action: 'change',
      kind: 'promo_code',
      name: 'EARLY',
      changes: {
        code: ['EARLY', 'early'],
        percent_off: [20, null],
        amount_off: [null, 'EUR 5.00'],
        ticket_types: [['Standard'], []],
      },
    },
    {
      action: 'change',
      kind: 'check_in_point',
      name: 'Lounge',
      changes: { name: ['Lounge', 'Gold lounge'], closes_at: [null, '2027-05-04T12:00:00+02:00'] },
    },
    { action: 'archive', kind: 'check_in_point', name: 'Door', changes: { status: ['active', 'archived'] } },
  ])
  const { event, ticketTypes, promoCodes, points } = await belongings(id)
  expect(event).toMatchObject({ capacity: 300, status: 'published', name: 'Data Days' })
  expect(ticketTypes.map((t: { name: string; status: string }) => `${t.name} ${t.status}`).sort()).toEqual([
    'Gold active',
    'Standard archived',
    'Student active',
  ])
  expect(promoCodes).toMatchObject([{ code: 'early', percent_off: null, amount_off: 500, status: 'active' }])
  expect(points.map((p: { name: string; status: string }) => `${p.name} ${p.status}`)).toEqual([
    'Door archived',
    'Gold lounge active',
  ])
})

test('a plan merges metadata, of the event, a ticket type and a copy, and says what they come to', async () => {
  const { apply, belongings } = await organiser()
  const metadata = { hall: 3, caterer: 'Kopps' }
  const list = {
    changes: { ...conference.changes, external_id: 'dd', metadata },
    ticket_types: [{ name: 'VIP', price: 100, metadata: { ...metadata, none: null } }],
  }
  const { applied } = await apply(list)
  expect((await apply({ ...list, event: 'dd' })).plan.steps).toEqual([])

  const change = { hall: null, bar: true }
  const { plan } = await apply({
    event: 'dd',
    changes: { metadata: change },
    ticket_types: [{ name: 'VIP', metadata: change }],
  })
  const merged = { bar: true, caterer: 'Kopps' }
  expect(plan.steps.map(({ changes }: Step) => changes)).toEqual(Array(2).fill({ metadata: [{ ...metadata }, merged] }))
  const { event, ticketTypes } = await belongings(applied.event.id)
  expect([event.metadata, ticketTypes[0].metadata]).toEqual([merged, merged])

  const copy = await apply({
    copy_of: 'dd',
    move: 'P364D',
    changes: { metadata: { hall: 4 } },
    ticket_types: [{ name: 'VIP', metadata: { hall: 4 } }],
  })
  const copied = await belongings(copy.applied.event.id)
  const both = { ...merged, hall: 4 }
  expect([copied.event.metadata, copied.ticketTypes[0].metadata]).toEqual([both, both])
})

test('an id is never taken for a name, and an event with many promo codes is changed and moved', async () => {
  const { organisation, call } = await organiser()
  const event = await organisation.event()
  await event.ticketType({ name: event.ticketTypeId })
  await studio.query(
    `insert into public.promo_codes (event_id, code, percent_off) select $1, 'X' || i, 5 from generate_series(1, 501) i`,
    [event.id],
  )
  const { body } = await call({ event: event.id, move: '-PT2H', ticket_types: [{ id: event.ticketTypeId, price: 5 }] })
  expect(said(body.data)).toEqual(['change event Test event', 'change ticket_type General'])
  const copy = { copy_of: event.id, move: 'P1Y' }
  expect((await call(copy)).body.error).toMatchObject({ code: 'validation_failed', param: 'promo_codes' })
  const without = await call({ ...copy, promo_codes: [], archive_missing: true })
  expect(said(without.body.data)).toHaveLength(3)
})

test('an event is known by the external_id or the slug that it is to have', async () => {
  const { apply } = await organiser()
  const first = await apply({ changes: { name: 'Fair', external_id: 'crm-1', slug: 'fair' } })
  for (const known of [{ external_id: 'crm-1' }, { slug: 'fair' }]) {
    const { applied } = await apply({ changes: { ...known, description: JSON.stringify(known) } })
    expect(applied.event.id).toBe(first.applied.event.id)
  }
})

test('of two plans for one slug or external_id the second is refused as a new event would be', async () => {
  const { organisation, send, call } = await organiser()
  const taken = { slug: 'fair', external_id: 'crm-1' }
  for (const [param, value] of Object.entries(taken)) {
    const plans = await Promise.all(
      ['One', 'Two'].map((name) => call({ changes: { name: `${name} by ${param}`, [param]: value } })),
    )
    const ids = plans.map(({ body }) => body.data.plan_id)
    // Both at once, and once more each.
    const applied = await Promise.all(ids.map((plan_id) => call({ plan_id })))
    const refused = applied.filter(({ status }) => status !== 200)
    expect(refused, JSON.stringify(applied)).toHaveLength(1)
    const created = await send('POST', '/events', { name: 'Three', [param]: value })
    expect(created.status).toBe(409)
    const of = ({ code, message, param }: Record<string, unknown>) => ({ code, message, param })
    expect([refused[0]?.status, of(refused[0]?.body.error)]).toEqual([409, of(created.body.error)])

    const event = await organisation.event()
    const plan = await call({ event: event.id, changes: { [param]: value } })
    expect(plan.body.data).toMatchObject({ refusals: 1, steps: [{ error: of(created.body.error) }] })
    const copy = { copy_of: event.id, move: 'P7D', changes: { name: 'Copy', [param]: value } }
    expect((await call(copy)).body.data.steps[0]).toMatchObject({ error: of(created.body.error) })
  }
})

test('a plan names all that is refused, by the rules of the tables, and cannot be applied', async () => {
  const { organisation, call, belongings } = await organiser()
  const event = await organisation.event({ status: 'published' })
  await event.guest()
  const twins = [await event.ticketType({ name: 'Twin' }), await event.ticketType({ name: 'twín' })]
  const { body } = await call({
    event: event.id,
    changes: { ends_at: '2020-01-01T00:00:00Z', status: 'draft' },
    ticket_types: [
      { name: 'General', quantity: 0 },
      { name: 'TWIN', price: 100 },
      { name: 'New', sales_start_at: '2027-05-02T00:00:00Z', sales_end_at: '2027-05-01T00:00:00Z' },
      { name: 'Late', price: 5 },
      { name: 'late', price: 6 },
      { id: 'nobody', price: 7 },
    ],
    promo_codes: [
      { code: 'A', percent_off: 10, amount_off: 10 },
      { code: 'B', percent_off: 10, ticket_types: ['New', 'Late'] },
      { code: 'C', percent_off: 10, ticket_types: ['Nothing'] },
      { percent_off: 10 },
    ],
  })
  const errors = body.data.steps.filter((step: Step) => step.action === 'refuse')
  expect(
    errors.map((s: { name: string; error: { code: string; param: string } }) => [s.name, s.error.code, s.error.param]),
  ).toEqual([
    ['Test event', 'validation_failed', 'ends_at'],
    ['General', 'quantity_below_sold', 'quantity'],
    ['TWIN', 'ambiguous_name', 'name'],
    ['New', 'validation_failed', 'sales_end_at'],
    ['late', 'validation_failed', 'name'],
    ['nobody', 'not_found', 'id'],
    ['A', 'validation_failed', 'amount_off'],
    ['C', 'validation_failed', 'ticket_types'],
    [null, 'validation_failed', 'code'],
  ])
  expect(errors[2].error.details.candidates.map((c: { id: string }) => c.id).sort()).toEqual(twins.sort())
  expect(errors[7].error.details.ticket_types).toContain('Late')
  expect(body.data.refusals).toBe(9)
  expect(refusal(await call({ plan_id: body.data.plan_id }))).toEqual([409, 'plan_outdated', 'refused'])
  expect((await belongings(event.id)).ticketTypes).toHaveLength(3)
})

test('what no plan can be made of is refused at once', async () => {
  const { organisation, call, apply } = await organiser()
  const { applied } = await apply({ changes: { name: 'Fair' } })
  await apply({ changes: { name: 'fáir' } })
  const stranger = await createOrganisation()
  const foreign = await stranger.event()
  const draft = await organisation.event({ status: 'draft' })

  const missing = await call({ copy_of: '00000000-0000-7000-8000-000000000000', move: 'P1Y' })
  const hidden = await call({ copy_of: foreign.id, move: 'P1Y' })
  for (const { body } of [missing, hidden]) delete body.error.request_id
  expect([hidden.status, hidden.body.error]).toEqual([404, missing.body.error])
  expect(hidden.body.error).toMatchObject({ code: 'not_found', param: 'copy_of' })

  const many = Array.from({ length: 1000 }, (_, i) => ({ name: `Type ${i}` }))
  for (const [body, param, message] of [
    [{ event: draft.id, ticket_types: many }, 'ticket_types', /at most 100 ticket types/],
    [{ event: 'FAIR', changes: { capacity: 1 } }, 'event', /More than one/],
    [{}, 'changes', /nothing to plan/],
    [{ event: draft.id, copy_of: draft.id }, 'event', /copy is a new event/],
    [{ copy_of: draft.id }, 'move', /its own start/],
    [{ event: applied.event.id, move: 'P7D' }, 'move', /no start/],
    [{ event: draft.id, move: 'P7D', changes: { starts_at: '2027-05-03T09:00:00Z' } }, 'move', /different times/],
    [{ changes: { name: 'New' }, move: 'P7D' }, 'move', /existing/],
    [{ event: draft.id, move: 'next week' }, 'move', /duration/],
    [{ event: draft.id, move: '2027-02-30' }, 'move', /duration, a day or a time/],
    [{ event: draft.id, move: 'P9999Y' }, 'move', /duration/],
    [{ changes: { name: 'X', status: 'cancelled' } }, 'status', /draft, published/],
    [{ event: draft.id, promo_codes: [{ code: 'A', ticket_type_ids: [] }] }, 'promo_codes.0.ticket_type_ids', /known/],
  ] as const) {
    const { status, body: answer } = await call(body)
    expect([status, answer.error?.param], JSON.stringify(answer)).toEqual([422, param])
    expect(answer.error.message).toMatch(message)
  }
})

test('a plan is applied once, by its key, within ten minutes, with its arguments', async () => {
  const { organisation, call } = await organiser()
  const event = await organisation.event()
  const body = { event: event.id, changes: { capacity: 50 }, archive_missing: true }
  const planned = async () => (await call(body)).body.data.plan_id as string

  const id = await planned()
  const other = rest(await organisation.key())
  expect(refusal(await other('POST', '/event-plans', { plan_id: id }))).toEqual([409, 'plan_outdated', 'unknown'])
  expect(refusal(await call({ plan_id: 'nothing' }))).toEqual([409, 'plan_outdated', 'unknown'])

  const changed = await call({ ...body, changes: { capacity: 51 }, notify: 'everybody', plan_id: id })
  expect(refusal(changed)).toEqual([409, 'plan_outdated', 'arguments'])
  expect(changed.body.error.details.arguments).toEqual(['changes', 'notify'])
  expect(refusal(await call({ event: event.id, changes: { capacity: 50 }, plan_id: id }))[2]).toBe('arguments')

  await studio.query("update private.event_plans set expires_at = expires_at - interval '11 minutes' where id = $1", [
    id,
  ])
  expect(refusal(await call({ ...body, plan_id: id }))).toEqual([409, 'plan_outdated', 'expired'])

  const good = await planned()
  const once = { 'Idempotency-Key': 'once' }
  const first = await call({ plan_id: good }, once)
  expect(first.body.data).toMatchObject({ applied: true, event: { id: event.id } })
  const replayed = await call({ plan_id: good }, once)
  expect([replayed.headers.get('idempotent-replayed'), replayed.body]).toEqual(['true', first.body])
  const twice = await call({ plan_id: good })
  expect(refusal(twice)).toEqual([409, 'plan_outdated', 'applied'])
  expect(twice.body.error.details.event_id).toBe(event.id)
})

test('a change of what the plan read makes it outdated, a ticket sold does not unless the tables refuse it then', async () => {
  const { organisation, send, call, belongings } = await organiser()
  const event = await organisation.event()
  const plan = async (body: object) => (await call({ event: event.id, ...body })).body.data.plan_id
  const types = { ticket_types: [{ name: 'General', quantity: 2 }] }

  for (const [change, kind] of [
    [() => send('PATCH', `/events/${event.id}`, { description: 'Other' }), 'event'],
    [() => event.ticketType({ name: 'Other' }), 'ticket_types'],
  ] as const) {
    const id = await plan(types)
    await change()
    const { body } = await call({ plan_id: id })
    expect(body.error).toMatchObject({ code: 'plan_outdated', details: { reason: 'changed', changed: [kind] } })
  }

  const draft = await organisation.event({ status: 'draft' })
  const gone = await call({ event: draft.id, changes: { capacity: 5 } })
  await send('DELETE', `/events/${draft.id}`)
  expect(refusal(await call({ plan_id: gone.body.data.plan_id }))).toEqual([409, 'plan_outdated', 'changed'])

  const good = await plan(types)
  await event.guest()
  expect((await call({ plan_id: good })).status).toBe(200)

  const tight = await plan({ ticket_types: [{ name: 'General', quantity: 1 }] })
  await event.guest()
  const { body } = await call({ plan_id: tight })
  expect(body.error.details).toMatchObject({ reason: 'changed', step: { error: { code: 'quantity_below_sold' } } })
  expect((await belongings(event.id)).ticketTypes[0].quantity).toBe(2)
})

test('of two that apply a plan at once one does, and the other is told so', async () => {
  const { organisation, call } = await organiser()
  const plan = await call({ changes: { name: 'Race' }, ticket_types: [{ name: 'A' }] })
  const answers = await Promise.all(Array.from({ length: 4 }, () => call({ plan_id: plan.body.data.plan_id })))
  expect(answers.map(refusal).sort()).toEqual([
    [200, undefined, undefined],
    ...Array.from({ length: 3 }, () => [409, 'plan_outdated', 'applied']),
  ])
  expect(await row('select count(*)::int from public.events where organisation_id = $1', [organisation.id])).toEqual({
    count: 1,
  })
})

test('a plan tells how many would be told, and tells nobody', async () => {
  const { organisation, call } = await organiser()
  const event = await organisation.event()
  await event.guest()
  const { body } = await call({ event: event.id, move: 'P1D', notify: 'mailed' })
  expect(body.effect).toMatchObject({ dry_run: true, attendees: 1, emails: 1 })
  expect(
    await row("select count(*)::int from public.emails where organisation_id = $1 and kind = 'event_changed'", [
      organisation.id,
    ]),
  ).toEqual({ count: 0 })
})

test('a copy has what its list says in other words, and the rest as it was', async () => {
  const { apply, belongings } = await organiser()
  await apply({ ...conference, changes: { ...conference.changes, external_id: 'dd-27' } })
  const { applied } = await apply({
    copy_of: 'dd-27',
    move: '2028-05-02',
    changes: { name: 'Data Days 2028', starts_at: '2028-05-02T09:00:00+02:00' },
    ticket_types: [{ name: 'Press' }, { name: 'vip' }, { id: 'Standard', name: 'Regular', price: 34900 }],
  })
  const { event, ticketTypes, promoCodes, points } = await belongings(applied.event.id)
  expect(event).toMatchObject({
    name: 'Data Days 2028',
    slug: 'data-days-2028',
    external_id: null,
    status: 'draft',
    starts_at: '2028-05-02T07:00:00.000Z',
    ends_at: '2028-05-03T15:00:00.000Z',
    venue: { city: 'Berlin' },
  })
  expect(ticketTypes).toMatchObject([
    { name: 'Regular', price: 34900, quantity: 200, sales_end_at: '2028-04-30T16:00:00.000Z' },
    { name: 'vip', price: 59900, external_id: null },
    { name: 'Press' },
  ])
  expect(promoCodes).toMatchObject([{ code: 'EARLY', ticket_type_ids: [ticketTypes[0].id] }])
  expect(points.map((p: { ticket_type_ids: string[] }) => p.ticket_type_ids)).toEqual([[], [ticketTypes[1].id]])
})

test('a key keeps 50 plans, and the courier purges those that are over', async () => {
  const { organisation, call } = await organiser()
  for (let i = 0; i < 52; i++) expect((await call({ changes: { name: `Plan ${i}` } })).status).toBe(200)
  const count = () => row('select count(*)::int from private.event_plans where organisation_id = $1', [organisation.id])
  expect(await count()).toEqual({ count: 50 })
  await studio.query(
    "update private.event_plans set expires_at = now() - interval '2 hours' where organisation_id = $1",
    [organisation.id],
  )
  await studio.query('select api.purge()')
  expect(await count()).toEqual({ count: 0 })
})

test('a plan warns of a name that another event has, and of windows that stay', async () => {
  const { claims, event } = await createTenant()
  await edit('ticket_types', event.ticketTypeId, "sales_end_at = now() + interval '1 hour'")
  await actAs('scope_events_write', claims, async ({ rows }) => {
    const warned = async (call: string, values: unknown[] = []) => {
      const [row] = await rows<{ warnings: { code: string }[] | null }>(
        `select ${call} -> 'warnings' as warnings`,
        values,
      )
      return row?.warnings?.map(({ code }) => code) ?? []
    }
    expect(await warned(`api.apply_event(changes => '{"name": "TEST event"}')`)).toEqual(['name_taken'])
    // Refused, for it has no name.
    expect(await warned(`api.apply_event(changes => '{"capacity": 5}')`)).toEqual([])
    const later = `api.apply_event(event => $1, changes => '{"starts_at": "2020-05-01T00:00:00Z"}')`
    expect(await warned(later, [event.id])).toEqual(['windows_stay'])
    expect(await warned("api.apply_event(event => $1, move => 'P1D')", [event.id])).toEqual([])
  })
})

test('plans are made and applied while people register and cancel, and no one waits for another in a circle', async () => {
  const { organisation, send, call } = await organiser()
  const event = await organisation.event({ capacity: 60 })
  const [one, other] = [
    await event.ticketType({ name: 'One', price: 100 }),
    await event.ticketType({ name: 'Other', price: 100 }),
  ]
  await send('POST', `/events/${event.id}/promo-codes`, { code: 'HALF', percent_off: 50, max_redemptions: 30 })
  const statuses = new Set<number>()
  const register = async (i: number) => {
    const { status, body } = await send('POST', `/events/${event.id}/registrations`, {
      payment_method: 'invoice',
      promo_code: 'HALF',
      ticket_type_id: i % 2 ? other : one,
      name: 'Ada',
      email: 'ada@example.com',
    })
    statuses.add(status)
    if (status === 201) statuses.add((await send('POST', `/orders/${body.data.id}/cancel`)).status)
  }
  const change = async (i: number) => {
    const plan = await call({
      event: event.id,
      changes: { capacity: 60 + i },
      ticket_types: [
        { name: 'Other', quantity: 20 + i },
        { name: 'One', quantity: 30 + i },
      ],
      promo_codes: [{ code: 'half', max_redemptions: 30 + i }],
    })
    statuses.add(plan.status).add((await call({ plan_id: plan.body.data?.plan_id })).status)
  }
  await Promise.all([
    ...Array.from({ length: 30 }, (_, i) => register(i)),
    (async () => {
      for (let i = 1; i <= 8; i++) await change(i)
    })(),
  ])
  expect([...statuses].sort()).toEqual([200, 201])
  expect([await event.sold(one), await event.sold(other)]).toEqual([0, 0])
})

test('places that a plan adds are offered to whoever waits, whom it counts; what stays sold out is warned of', async () => {
  const { organisation, send, call } = await organiser()
  const event = await organisation.event({ capacity: 1 })
  await send('PATCH', `/ticket-types/${event.ticketTypeId}`, { quantity: 1 })
  const guest = (name: string) => ({ ticket_type_id: event.ticketTypeId, name, email: `${name}@example.com` })
  expect((await send('POST', `/events/${event.id}/registrations`, guest('ann'))).status).toBe(201)
  expect((await send('POST', `/events/${event.id}/waiting-list`, guest('bob'))).status).toBe(201)

  const larger = { event: event.id, changes: { capacity: 3 } }
  expect((await call(larger)).body).toMatchObject({
    effect: { waiting_list: 0 },
    warnings: [{ code: 'ticket_type_sold_out' }],
  })
  const plan = await call({ ...larger, ticket_types: [{ id: event.ticketTypeId, quantity: 2 }] })
  const offered = { waiting_list: 1, emails: 1, told: 1 }
  expect(plan.body).toMatchObject({ effect: { dry_run: true, ...offered } })
  expect(plan.body.warnings).toBeUndefined()
  const applied = await call({ plan_id: plan.body.data.plan_id })
  expect(applied.body).toMatchObject({ effect: { dry_run: false, ...offered } })
  expect(await row('select status from public.waiting_list_entries where event_id = $1', [event.id])).toEqual({
    status: 'offered',
  })
})

test('what is added to an event concerns nobody who is there, and a change of it does', async () => {
  const { organisation, call } = await organiser()
  const event = await organisation.event()
  await event.guest()
  const effectOf = async (body: object) => (await call({ event: event.id, ...body })).body.effect
  const nobody = { orders: 0, attendees: 0, told: 0, not_told: [] }
  expect(await effectOf({ promo_codes: [{ code: 'FRIENDS', percent_off: 10 }] })).toMatchObject(nobody)
  expect(await effectOf({ check_in_points: [{ name: 'Gate' }] })).toMatchObject(nobody)
  expect(await effectOf({ changes: { name: 'Second' } })).toMatchObject({ orders: 1, attendees: 1 })
})
