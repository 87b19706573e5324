// apply_event: what a plan says, that applying it does exactly that, and when it is outdated.

import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { clients } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'
import { type RestAnswer, rest } from '../support/rest.ts'

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
  check_in_points: [{ name: 'Door', admission: 'once_per_day' }, { name: 'Lounge', ticket_types: ['VIP'] }],
}

async function organiser() {
  const organisation = await createOrganisation()
  const send = rest(await organisation.key())
  const call = (body: object, headers?: Record<string, string>) => send('POST', '/events/apply', body, headers)
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
