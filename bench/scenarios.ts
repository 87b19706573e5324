// What is measured. A scenario declares its calls, against whom, and its targets; compare.ts runs it.

import { type Comparison, compare, type Effort, type Plan } from './compare.ts'
import { drainWebhooks, startReceiver, subscribe, untilDelivered } from './courier.ts'
import { door } from './door.ts'
import { exportFile } from './export.ts'
import { memory, neverAnalysed, startUp } from './growth.ts'
import { lists } from './lists.ts'
import { logGrowth } from './log-growth.ts'
import { whileMailing } from './mailing.ts'
import { figureOf, fixed, judged, type Outcome, printComparison, ratio, type Target, times } from './report.ts'
import { singleCalls } from './single-call.ts'
import { type Organiser, registerInBulk, type Stack } from './stack.ts'
import { type Call, registration, type SubjectName } from './subjects.ts'

export type Scenario = { name: string; about: string; run(stack: Stack, effort: Effort): Promise<Outcome> }

type Limit = {
  figure: 'rate' | 'p50' | 'p95' | 'p99'
  at: number
  /** Left out: the figure itself is the limit, not a ratio. */
  against?: SubjectName
  /** Connections of the other side, if not the same. */
  againstAt?: number
  atLeast?: number | undefined
  atMost?: number | undefined
}

const names = { rate: 'throughput', p50: 'p50', p95: 'p95', p99: 'p99' }

function judge(comparison: Comparison, subject: SubjectName, limits: Limit[]): Target[] {
  return limits.flatMap(({ figure, at, against, againstAt = at, atLeast, atMost }) => {
    const side = { subject, connections: at }
    const found =
      against === undefined
        ? figureOf(comparison, figure, side)
        : ratio(comparison, figure, side, { subject: against, connections: againstAt })
    if (found === undefined) return []
    const bound = atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`
    const other = against === undefined ? '' : `× ${against === subject ? `that at ${againstAt}` : against}`
    const shown = against === undefined ? fixed(found.median) : times(found)
    return judged(`${names[figure]} at ${at} connections ${bound}${other}`, shown, found.median, { atLeast, atMost })
  })
}

/** A scenario that compares; the first subject is the one whose ratios are judged. */
const comparing = (name: string, about: string, plan: Plan, limits: Limit[]): Scenario => ({
  name,
  about,
  async run(stack, effort) {
    const comparison = await compare(stack, plan, effort)
    printComparison(comparison)
    return { ...comparison, targets: judge(comparison, plan.subjects[0] as SubjectName, limits) }
  },
})

const scan = ({ eventId }: Organiser, code: string | undefined): Call => ({
  operation: 'check_in',
  args: { event_id: eventId, code: code ?? 'NONE' },
})

const me = (): Call => ({ operation: 'get_api_key', args: {} })

const baselines: SubjectName[] = ['usher', 'postgrest', 'fastify']
const withDatabase: SubjectName[] = [...baselines, 'database']

const onSale = (at: number): Limit => ({ figure: 'rate', at, against: 'fastify', atLeast: 2 })
const elsewhere = (at: number): Limit => ({ figure: 'rate', at, against: 'fastify', atLeast: 0.8 })

/** Ticket codes that no scan has used, by organiser. */
const codes = new WeakMap<Organiser, string[]>()

async function addTickets(stack: Stack, organiser: Organiser, calls: number): Promise<void> {
  const left = codes.get(organiser) ?? []
  for (let missing = calls - left.length; missing > 0; missing -= 1_000) {
    await registerInBulk(stack, organiser, Math.ceil(Math.min(missing, 1_000) / 50) * 50, 50)
  }
  const { rows } = await stack.database.query(
    'select ticket_code from public.attendees where organisation_id = $1 and checked_in_at is null',
    [organiser.holder.organisation_id],
  )
  codes.set(
    organiser,
    rows.map((row) => row.ticket_code),
  )
}

/** Ids of what can be read, by organiser. */
const objects = new WeakMap<Organiser, Record<'events' | 'ticket_types' | 'orders' | 'attendees', string[]>>()

async function addObjects(stack: Stack, organiser: Organiser): Promise<void> {
  if (objects.has(organiser)) return
  const organisation = organiser.holder.organisation_id
  await addEvents(stack, organiser)
  await registerInBulk(stack, organiser, 200)
  const ids = async (table: string): Promise<string[]> =>
    (await stack.database.query(`select id from public.${table} where organisation_id = $1`, [organisation])).rows.map(
      ({ id }) => id,
    )
  objects.set(organiser, {
    events: await ids('events'),
    ticket_types: await ids('ticket_types'),
    orders: await ids('orders'),
    attendees: await ids('attendees'),
  })
}

async function addEvents({ database }: Stack, { holder }: Organiser): Promise<void> {
  await database.query(
    `insert into public.events (organisation_id, name, slug, starts_at, ends_at)
     select $1, 'Event ' || i, 'event-' || i, now() + interval '1 day', now() + interval '2 days' from generate_series(1, 24) i
     where not exists (select from public.events where organisation_id = $1 and slug = 'event-1')`,
    [holder.organisation_id],
  )
}

/** Ten objects, then two lists. */
function differentRead(organiser: Organiser, nth: number): Call {
  const of = objects.get(organiser)
  // A number that is not repeated soon, so that hardly two in flight read the same.
  const one = (ids: string[] = []) => ids[(nth * 7) % ids.length]
  const kinds: Call[] = [
    { operation: 'get_api_key', args: {} },
    { operation: 'get_event', args: { event_id: one(of?.events) } },
    { operation: 'get_attendee', args: { attendee_id: one(of?.attendees) } },
    { operation: 'get_order', args: { order_id: one(of?.orders) } },
    { operation: 'get_ticket_type', args: { ticket_type_id: one(of?.ticket_types) } },
    { operation: 'get_attendee', args: { attendee_id: one(of?.attendees?.toReversed()) } },
    { operation: 'get_order', args: { order_id: one(of?.orders?.toReversed()) } },
    { operation: 'get_event', args: { event_id: one(of?.events?.toReversed()) } },
    { operation: 'get_attendee', args: { attendee_id: one(of?.attendees) } },
    { operation: 'get_order', args: { order_id: one(of?.orders) } },
    { operation: 'list_events', args: { limit: 5 + (nth % 20) } },
    { operation: 'list_attendees', args: { event_id: organiser.eventId, limit: 5 + (nth % 20) } },
  ]
  return kinds[nth % kinds.length] as Call
}

export const scenarios: Scenario[] = [
  comparing(
    'on-sale',
    'everyone registers for one ticket type',
    { subjects: withDatabase, connections: [1, 16, 64, 256], call: registration, written: 'registrations' },
    [
      { figure: 'rate', at: 64, against: 'postgrest', atLeast: 5 },
      { figure: 'p99', at: 64, against: 'postgrest', atMost: 0.25 },
      { figure: 'rate', at: 256, against: 'usher', againstAt: 64, atLeast: 0.9 },
      { figure: 'p50', at: 1, against: 'postgrest', atMost: 1.4 },
      onSale(64),
    ],
  ),
  comparing(
    'sold-out',
    'the same, and the tickets run out half-way',
    {
      subjects: baselines,
      connections: [64],
      call: registration,
      written: 'registrations',
      sellsOut: true,
      async prepare({ database }, organiser, calls) {
        const { rows } = await database.query(
          `insert into public.ticket_types (event_id, name, quantity) values ($1, 'Few', $2) returning id`,
          [organiser.eventId, Math.ceil(calls / 4)],
        )
        // The first type has no quantity.
        organiser.ticketTypeIds = [rows[0].id]
      },
    },
    [onSale(64)],
  ),
  comparing(
    'idempotency-keys',
    'the same with an idempotency key, every tenth request sent twice',
    {
      subjects: baselines,
      connections: [64],
      call: (organiser, nth) => {
        const effective = nth % 10 === 9 ? nth - 1 : nth
        return registration(organiser, effective, { idempotency_key: `key-${effective}` })
      },
      written: 'registrations',
    },
    [onSale(64)],
  ),
  comparing(
    'invoice',
    'the same, by invoice with a promo code',
    {
      subjects: baselines,
      connections: [64],
      organiser: { price: 10_000 },
      async prepare({ database }, { eventId }) {
        await database.query(
          `insert into public.promo_codes (event_id, code, percent_off) select $1, 'BENCH', 15
           where not exists (select from public.promo_codes where event_id = $1)`,
          [eventId],
        )
      },
      call: (organiser, nth) => registration(organiser, nth, { payment_method: 'invoice', promo_code: 'BENCH' }),
      written: 'registrations',
    },
    [onSale(64)],
  ),
  {
    name: 'webhooks',
    about: 'the same, with two webhook endpoints subscribed',
    async run(stack, effort) {
      const receiver = await startReceiver()
      try {
        const plan: Plan = {
          subjects: baselines,
          connections: [64],
          prepare: (stack, organiser) => subscribe(stack, organiser, receiver.url, 2),
          call: registration,
          written: 'registrations',
          afterwards: untilDelivered,
        }
        return await comparing('', '', plan, [onSale(64)]).run(stack, effort)
      } finally {
        receiver.close()
      }
    },
  },
  comparing(
    'many-ticket-types',
    'registrations spread over 50 ticket types of one event',
    {
      subjects: withDatabase,
      connections: [64],
      organiser: { ticketTypes: 50 },
      call: registration,
      written: 'registrations',
    },
    [elsewhere(64)],
  ),
  comparing(
    'many-organisations',
    'registrations for 32 organisations, each with a key and an event; with --base FOLDER beside another checkout',
    {
      subjects: ['usher', 'postgrest', 'usher-before', 'postgrest-before'],
      connections: [1, 8, 64],
      organisers: 32,
      call: registration,
      written: 'registrations',
    },
    [
      { figure: 'rate', at: 64, against: 'usher-before', atLeast: 0.9 },
      { figure: 'p50', at: 1, against: 'postgrest', atMost: 1.2 },
    ],
  ),
  comparing(
    'hosted',
    'registrations by a backend whose Data API is 20 ms away',
    { subjects: ['hosted'], connections: [1, 64], call: registration, written: 'registrations' },
    [
      // One round trip, and at 64 connections no more than seven times the delay.
      { figure: 'p50', at: 1, atMost: 40 },
      { figure: 'p95', at: 64, atMost: 140 },
    ],
  ),
  comparing(
    'check-in',
    'everyone is checked in at one event',
    {
      subjects: baselines,
      connections: [16, 64],
      prepare: addTickets,
      call: (organiser) => scan(organiser, codes.get(organiser)?.pop()),
      written: 'check-ins',
    },
    [{ figure: 'rate', at: 64, against: 'postgrest', atLeast: 2 }, onSale(64)],
  ),
  {
    name: 'single-call',
    about: 'CPU of Postgres for calls one by one, beside another checkout with --base FOLDER',
    run: singleCalls,
  },
  comparing('me', 'GET /me, a single row', { subjects: baselines, connections: [1, 64], call: me }, [
    { figure: 'rate', at: 64, against: 'postgrest', atLeast: 0.8 },
    { figure: 'p50', at: 1, against: 'postgrest', atMost: 1.4 },
    elsewhere(64),
  ]),
  comparing(
    'list-events',
    'GET /events, a page of 25',
    {
      subjects: baselines,
      connections: [1, 64],
      prepare: addEvents,
      call: () => ({ operation: 'list_events', args: {} }),
    },
    [elsewhere(64)],
  ),
  comparing(
    'different-reads',
    'objects and lists by one key, hardly two of the same at once',
    {
      subjects: baselines.slice(0, 2),
      connections: [1, 64],
      prepare: addObjects,
      call: differentRead,
      varied: true,
    },
    [{ figure: 'rate', at: 64, against: 'postgrest', atLeast: 1 }],
  ),
  comparing(
    'mcp-call',
    'tools/call of get_api_key, beside GET /me',
    { subjects: ['mcp', 'usher'], connections: [1, 64], call: me },
    [{ figure: 'rate', at: 64, against: 'usher', atLeast: 0.15 }],
  ),
  comparing(
    'mcp-list',
    'tools/list',
    { subjects: ['mcp'], connections: [64], call: () => ({ operation: 'tools/list', args: {} }) },
    [{ figure: 'rate', at: 64, atLeast: 400 }],
  ),
  {
    name: 'courier',
    about: '100,000 webhooks to 50 endpoints of ten organisations, which answer at once',
    run: drainWebhooks,
  },
  {
    name: 'while-mailing',
    about: 'everyone registers for one ticket type, alone and while 20,000 tickets are drawn and sent',
    run: whileMailing,
  },
  {
    name: 'start-up',
    about: 'until `usher start` is ready, on a new data directory and on one that exists',
    run: startUp,
  },
  {
    name: 'memory',
    about: 'resident memory of Node after 10,000 and 100,000 requests, one in ten a registration',
    run: memory,
  },
  {
    name: 'never-analysed',
    about: 'without statistics: a database after 100,000 registrations, beside a new one',
    run: neverAnalysed,
  },
  { name: 'lists', about: 'pages and filters at 10,000, 100,000 and 1,000,000 rows, p50 in ms', run: lists },
  {
    name: 'export',
    about: 'a file of 200,000 attendees, read at full speed and slowly, beside another key',
    run: exportFile,
  },
  { name: 'door', about: 'from a code before the camera until the answer, with 20,000 tickets', run: door },
  {
    name: 'log-growth',
    about: 'the log of 1,000 organisations at 100,000 rows and at 10,000,000 (--rows)',
    run: logGrowth,
  },
]
