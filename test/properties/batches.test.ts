// A batch gives each registration what a call of its own would have given: the same calls go to one tenant as one batch, and to its twin
// one by one. Outcomes, errors and what is in the database afterwards are compared.

import fc from 'fast-check'
import { beforeAll, expect, inject, test } from 'vitest'
import { ApiError } from '../../src/gateway/api-error.ts'
import { prefixOf } from '../../src/gateway/api-key.ts'
import { DataApi } from '../../src/gateway/data-api.ts'
import { apiErrorOfDatabase, fieldsOf } from '../../src/gateway/database-error.ts'
import { createTokens, type Tokens } from '../../src/gateway/tokens.ts'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { expectProperty, withTime } from './property.ts'

let tokens: Tokens
let dataApi: DataApi
beforeAll(async () => {
  tokens = await createTokens({ secret: inject('jwtSecret') })
  dataApi = new DataApi({ url: inject('dataApiUrl') }, tokens)
})

const usual = 12
const unknown = '00000000-0000-4000-8000-000000000000'

type Twin = Awaited<ReturnType<typeof createTwin>>

/** One in which everything that a registration may be refused for can be named. */
async function createTwin() {
  const organisation = await createOrganisation()
  const { id: api_key_id, family_id } = await row<{ id: string; family_id: string }>(
    'select id, family_id from public.api_keys where prefix = $1',
    [prefixOf(await organisation.key())],
  )
  const holder = { api_key_id, family_id, organisation_id: organisation.id }
  // One after the other, so that the twins' rows have the same order.
  const event = await organisation.event()
  const draft = await organisation.event({ status: 'draft' })
  const full = await organisation.event({ capacity: 2 })
  const ended = await organisation.event()
  const { rows: added } = await studio.query<{ id: string; name: string }>(
    `insert into public.ticket_types
       (event_id, name, price, quantity, status, sales_start_at, sales_end_at, min_per_order, max_per_order)
     values
       ($1, 'priced', 4900, null, 'active', null, null, 1, null),
       ($1, 'two', 0, 2, 'active', null, null, 1, null),
       ($1, 'archived', 0, null, 'archived', null, null, 1, null),
       ($1, 'early', 0, null, 'active', now() + interval '1 day', null, 1, null),
       ($1, 'late', 0, null, 'active', null, now() - interval '1 day', 1, null),
       ($1, 'single', 0, null, 'active', null, null, 1, 1),
       ($1, 'pair', 0, null, 'active', null, null, 2, null)
     returning id, name`,
    [event.id],
  )
  type Added = 'priced' | 'two' | 'archived' | 'early' | 'late' | 'single' | 'pair'
  const types = {
    ...(Object.fromEntries(added.map(({ id, name }) => [name, id])) as Record<Added, string>),
    free: event.ticketTypeId,
    draft: draft.ticketTypeId,
    full: full.ticketTypeId,
    ended: ended.ticketTypeId,
    unknown,
  }
  // AMOUNT is in euros 50: more than one ticket, less than two.
  await studio.query(
    `insert into public.promo_codes (
       event_id, code, percent_off, amount_off, status, valid_from, valid_until, max_redemptions, ticket_type_ids
     )
     values
       ($1, 'HALF', 50, null, 'active', null, null, null, '{}'),
       ($1, 'ONCE', 50, null, 'active', null, null, 1, '{}'),
       ($1, 'AMOUNT', null, 5000, 'active', null, null, null, '{}'),
       ($1, 'OFF', 50, null, 'disabled', null, null, null, '{}'),
       ($1, 'SOON', 50, null, 'active', now() + interval '1 day', null, null, '{}'),
       ($1, 'PAST', 50, null, 'active', null, now() - interval '1 day', null, '{}'),
       ($1, 'OTHER', 50, null, 'active', null, null, null, array[$2::uuid])`,
    [event.id, types.two],
  )
  await studio.query(
    "update public.events set starts_at = now() - interval '2 days', ends_at = now() - interval '1 day' where id = $1",
    [ended.id],
  )
  const events = { event: event.id, draft: draft.id, full: full.id, ended: ended.id, unknown }
  return { organisation, events, types, holder }
}

type Registration = {
  event: keyof Twin['events']
  type: keyof Twin['types']
  guests: number
  own: boolean
  invoice: boolean
  promo: string | undefined
  externalId: string | undefined
  guestId: string | undefined
  email: string
  key: number | undefined
  fingerprint: number
}

const often = <T>(usually: T, ...others: T[]) =>
  fc.oneof(
    { weight: 4 + others.length, arbitrary: fc.constant(usually) },
    { weight: others.length, arbitrary: fc.constantFrom(...others) },
  )

const registration: fc.Arbitrary<Registration> = fc.record({
  event: often<Registration['event']>('event', 'draft', 'full', 'ended', 'unknown'),
  type: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom<Registration['type']>('free', 'two', 'priced') },
    {
      weight: 1,
      arbitrary: fc.constantFrom<Registration['type']>(
        ...(['archived', 'early', 'late', 'single', 'pair', 'draft', 'full', 'ended', 'unknown'] as const),
      ),
    },
  ),
  guests: often(1, 2, 3, 0),
  own: fc.boolean(),
  invoice: fc.boolean(),
  promo: often<string | undefined>(undefined, 'HALF', 'half', 'AMOUNT', 'ONCE', 'OFF', 'SOON', 'PAST', 'OTHER', 'NONE'),
  externalId: often<string | undefined>(undefined, 'a', 'b'),
  guestId: often<string | undefined>(undefined, 'x', 'y'),
  email: often('ada@example.com', 'nobody', ''),
  key: often<number | undefined>(undefined, 1, 2, 3),
  fingerprint: often(1, 2),
})

function argumentsOf(call: Registration, { events, types }: Twin): Record<string, unknown> {
  const type = types[call.event === 'event' ? call.type : call.event === 'full' ? 'full' : call.type]
  const guest = { name: 'Ada', email: call.email, ...(call.guestId && { external_id: call.guestId }) }
  return {
    event_id: events[call.event],
    ...(call.guests === 1
      ? { ticket_type_id: type, ...guest, ...(call.externalId && { external_id: call.externalId }) }
      : {
          ...(!call.own && { ticket_type_id: type }),
          attendees: Array.from({ length: call.guests }, (_, i) => ({
            ...guest,
            ...(call.guestId && i > 0 && { external_id: `${call.guestId}${i}` }),
            ...(call.own && { ticket_type_id: type }),
          })),
          ...(call.externalId && { external_id: call.externalId }),
        }),
    ...(call.invoice && { payment_method: 'invoice' }),
    ...(call.promo && { promo_code: call.promo }),
    ...(call.key && { idempotency_key: `key-${call.key}`, request_fingerprint: `${call.fingerprint}` }),
  }
}

/** What a caller reads, without what differs between twins: ids, codes and moments. */
function normalised(answer: unknown): unknown {
  const told = answer instanceof ApiError ? { status: answer.status, ...answer.body('request') } : answer
  return JSON.parse(
    JSON.stringify(told)
      .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, 'id')
      .replaceAll(/"\d{4}-\d\d-\d\dT[^"]+"/g, '"moment"')
      .replaceAll(/"(reference|ticket_code|code)":"[0-9A-HJKMNP-TV-Z]{8,16}"/g, '"$1":"generated"'),
  )
}

const alone = (call: Record<string, unknown> = {}, token: string) =>
  dataApi.rpc('register_attendee', call, token, { repeatable: true }).catch((error: unknown) => error)

/** What each call was answered, and the order in which they came: those that the batch leaves to a call of their own come last. */
async function asABatch(
  calls: Record<string, unknown>[],
  token: string,
): Promise<{ answers: unknown[]; order: number[] }> {
  const given = (await dataApi.rpc('register_attendees', { calls }, token, { repeatable: true })) as {
    outcome?: unknown
    error?: never
  }[]
  expect(given).toHaveLength(calls.length)
  const answers: unknown[] = given.map(({ outcome, error }, i) =>
    error === undefined ? outcome : apiErrorOfDatabase(error, 400, fieldsOf(calls[i] ?? {}), true),
  )
  const left = [...calls.keys()].filter((i) => answers[i] === undefined)
  const order = [...[...calls.keys()].filter((i) => answers[i] !== undefined), ...left]
  for (const i of left) answers[i] = await alone(calls[i], token)
  return { answers, order }
}

async function oneByOne(calls: Record<string, unknown>[], order: number[], token: string): Promise<unknown[]> {
  const answers: unknown[] = []
  for (const i of order) answers[i] = await alone(calls[i], token)
  return answers
}

async function stateOf({ organisation }: Pick<Twin, 'organisation'>): Promise<unknown> {
  const { rows } = await studio.query(
    `select jsonb_build_object(
       'orders', (select jsonb_agg(jsonb_build_array(o.status, o.payment_status, o.total, o.external_id, o.version) order by o.id) from public.orders o where o.organisation_id = $1),
       'attendees', (select jsonb_agg(jsonb_build_array(a.status, a.price, a.discount, a.external_id, a.checked_in_at is null, a.ticket_email_status) order by a.id) from public.attendees a where a.organisation_id = $1),
       'sold', (select jsonb_agg(t.quantity_sold order by t.id) from public.ticket_types t where t.organisation_id = $1),
       'redeemed', (select jsonb_agg(c.times_redeemed order by c.id) from public.promo_codes c where c.organisation_id = $1),
       'notifications', (select jsonb_agg(jsonb_build_array(n.type, n.data ->> 'status', jsonb_array_length((n.data -> 'attendees')::jsonb)) order by n.data ->> 'object', n.data ->> 'id', n.transaction_id, n.id) from public.notifications n where n.organisation_id = $1),
       'emails', (select count(*) from public.emails e where e.organisation_id = $1),
       'idempotency', (select jsonb_agg(jsonb_build_array(r.idempotency_key, r.outcome ->> 'status') order by r.idempotency_key) from private.idempotency_records r where r.organisation_id = $1)
     ) as state`,
    [organisation.id],
  )
  return rows[0].state
}

test(
  'a batch of registrations answers and does what they do one by one, whatever refuses them',
  withTime(usual),
  async () => {
    const refusals = new Set<string>()
    await expectProperty(
      usual,
      fc.asyncProperty(fc.array(registration, { minLength: 2, maxLength: 12 }), async (calls) => {
        const [apart, together] = await Promise.all([createTwin(), createTwin()])
        const token = (twin: Twin) => tokens.forPrincipal(twin.holder, 'scope_attendees_write', 'api')
        const sent = (twin: Twin) => calls.map((call) => argumentsOf(call, twin))
        const { answers, order } = await asABatch(sent(together), await token(together))
        const expected = await oneByOne(sent(apart), order, await token(apart))
        expect(answers.map(normalised)).toEqual(expected.map(normalised))
        expect(await stateOf(together)).toEqual(await stateOf(apart))
        for (const result of answers) if (result instanceof ApiError) refusals.add(result.code)
      }),
    )
    // Not a property of nothing.
    expect(refusals.size).toBeGreaterThan(2)
  },
)
