// Clients that write to one small event without regard for one another, and repeat what was not answered with the same idempotency key, as
// an integrator would. Whatever they do goes into the history.

import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import type { Attempt } from './history.ts'
import type { Random } from './random.ts'
import type { Answer, Send } from './send.ts'

type Guest = { id: string; code: string; orderId: string; isErasable: boolean }
type Known = {
  orders: { id: string; total: number; isGroup: boolean }[]
  guests: Guest[]
  payments: { id: string; orderId: string; amount: number; isWhole: boolean }[]
  checkIns: string[]
  entries: string[]
}

export type Hall = {
  eventId: string
  /** Free with few places, priced with few places, and free with many. */
  ticketTypeIds: [string, string, string]
  pointId: string
}

export type Stranger = { key: string; eventId: string; ticketTypeId: string }

export type Crowd = {
  history: Attempt[]
  /** Milliseconds since the history began. */
  now(): number
  /** What was answered to a key that may not have it. */
  trespasses: { about: string; detail: string }[]
  /** Answers that are no refusal of the domain, for a look at what clients met. */
  tally: Map<string, number>
  /** Attendees with whose tickets guests alone do anything. */
  holders: string[]
  /** @param pauseMs between two calls */
  work(client: number, random: Random, until: () => boolean, pauseMs?: number): Promise<void>
  edit(random: Random, database: () => Promise<pg.Client>, until: () => boolean): Promise<void>
  spy(stranger: Stranger, random: Random, until: () => boolean): Promise<void>
}

const attemptsPerCall = 6

/** A quarter of the offers is declined by their pages, and by nothing accepted. */
export const willDecline = (entryId: string): boolean => /[0-3]$/.test(entryId)

export function createCrowd(hall: Hall, send: Send, keys: string[], prefix: string): Crowd {
  const history: Attempt[] = []
  const trespasses: Crowd['trespasses'] = []
  const tally = new Map<string, number>()
  const holders: string[] = []
  const known: Known = { orders: [], guests: [], payments: [], checkIns: [], entries: [] }
  let isOver = () => false
  const startedAt = Date.now()
  const now = () => Date.now() - startedAt

  type By = { client: number; random: Random; key: string }
  type Write = {
    key: string
    operation: string
    method?: string
    path: string
    body?: unknown
    money?: Attempt['money']
    /** Without an idempotency key, and so sent once. */
    isUnkeyed?: boolean
    isTraceless?: boolean
    idOf?: (data: Record<string, unknown>) => unknown
    /** Takes the place of one attempt for the call. */
    record?: (attempt: Omit<Attempt, 'key' | 'operation'>, answer: Answer | undefined) => void
  }

  /** Sends it until there is an answer, through either API; sometimes it gives up first. @returns what was done. */
  async function write({ client, random }: By, call: Write): Promise<Record<string, unknown> | undefined> {
    const { key, operation, method = 'POST', path, body = {}, money, isUnkeyed = false, isTraceless, idOf } = call
    const idempotencyKey = isUnkeyed ? undefined : `${prefix} ${client} ${key} ${history.length}`
    for (let n = 0; n < attemptsPerCall; n++) {
      const start = now()
      let answer: Answer | undefined
      let outcome: Attempt['outcome'] = 'unknown'
      let why: string | undefined
      try {
        answer = await send(client + n, keys[client % keys.length] ?? '', method, path, body, idempotencyKey)
        outcome = answer.status < 300 ? 'ok' : answer.status < 500 && answer.status !== 408 ? 'refused' : 'unknown'
        if (outcome !== 'ok') why = `${answer.status} ${answer.body.error?.code}`
      } catch (error) {
        why = String((error as { code?: string }).code ?? (error as Error).name)
      }
      const tallied = `${operation} ${outcome}${why === undefined ? '' : ` ${why}`}`
      tally.set(tallied, (tally.get(tallied) ?? 0) + 1)
      const data = answer?.body.data
      const id = outcome === 'ok' && data && idOf ? String(idOf(data)) : undefined
      const attempt = {
        start,
        end: now(),
        outcome,
        ...(why && { why }),
        ...(id && { id }),
        ...(money && { money }),
        ...(isUnkeyed && { isUnkeyed }),
        ...(isTraceless && { isTraceless }),
      }
      if (call.record) call.record(attempt, answer)
      else history.push({ key, operation, ...attempt })
      if (outcome === 'ok') return data
      if (outcome === 'refused' || isUnkeyed || isOver() || random.next() < 0.1) return undefined
      await sleep(random.between(20, 400))
    }
    return undefined
  }

  type Line = { id: string; ticket_code: string }
  function learn(order: Record<string, unknown> | undefined, isGroup = false): void {
    if (order === undefined) return
    known.orders.push({ id: String(order.id), total: Number(order.total), isGroup })
    for (const [i, { id, ticket_code: code }] of (order.attendees as Line[]).entries()) {
      known.guests.push({ id, code, orderId: String(order.id), isErasable: isGroup && i > 0 })
    }
  }
  const idOf = (data: Record<string, unknown>) => data.id
  const guest = (name: string) => ({ name, email: `${name.replaceAll(/\W/g, '-')}@example.com` })
  const [few, priced, many] = hall.ticketTypeIds
  const registrations = `/events/${hall.eventId}/registrations`

  function writeOrder(by: By, operation: string, more: Partial<Write> & { type?: string | undefined } = {}) {
    const { key = by.key, type = by.random.pick([few, many, many]), ...rest } = more
    const body = { ...guest(key), ticket_type_id: type, metadata: { prove: key } }
    return write(by, { key, operation, path: registrations, body, idOf, ...rest })
  }
  const registerOne = async (...order: Parameters<typeof writeOrder>) => learn(await writeOrder(...order))

  const doings = {
    register: (by) => registerOne(by, 'register'),
    // With one key and at once, so that they share an RPC; some of them are refused.
    registerAtOnce: (by) =>
      Promise.all(Array.from({ length: 8 }, (_, i) => registerOne(by, 'register at once', { key: `${by.key}+${i}` }))),
    registerWithoutKey: (by) => registerOne(by, 'register without a key', { type: many, isUnkeyed: true }),
    async registerHolder(by) {
      const order = await writeOrder(by, 'register a holder')
      if (order) holders.push(...(order.attendees as Line[]).map(({ id }) => id))
    },
    async registerGroup(by) {
      const { random, key } = by
      const attendees = Array.from({ length: random.between(2, 3) }, (_, i) => guest(`${key}.${i}`))
      const promo = random.next() < 0.5 && { promo_code: 'FEW' }
      const metadata = { prove: key }
      const body = { ticket_type_id: priced, attendees, payment_method: 'invoice', metadata, ...promo }
      learn(await write(by, { key, operation: 'register a group', path: registrations, body, idOf }), true)
    },
    async openEvent(by) {
      const { key } = by
      const dates = { starts_at: '2035-05-01T18:00:00Z', ends_at: '2035-05-01T22:00:00Z', timezone: 'Europe/London' }
      const event = await write(by, { key, operation: 'open', path: '/events', body: { name: key, ...dates }, idOf })
      if (!event) return
      const type = { path: `/events/${event.id}/ticket-types`, body: { name: 'Guest' } }
      const exported = { path: '/exports/attendees', body: { event_id: event.id } }
      for (const [i, call] of [type, { path: `/events/${event.id}/publish` }, exported].entries()) {
        await write(by, { key: `${key} ${i}`, operation: 'go on with an event', isTraceless: true, ...call })
      }
    },
    async import(by) {
      const keyOf = (i: number) => `${by.key}/${i}`
      const attendees = [0, 1, 2].map((i) => ({ ...guest(keyOf(i)), external_id: keyOf(i) }))
      await write(by, {
        key: by.key,
        operation: 'import',
        path: `/events/${hall.eventId}/attendees/import`,
        body: { ticket_type_id: by.random.pick([few, many]), attendees },
        record(attempt, answer) {
          const results = answer?.body.data?.results as { result: string }[] | undefined
          for (const i of attendees.keys()) {
            // What it left for another call was not done.
            const isDone = ['created', 'unchanged', 'updated'].includes(results?.[i]?.result ?? '')
            const outcome = attempt.outcome === 'ok' ? (isDone ? 'ok' : 'refused') : attempt.outcome
            history.push({ ...attempt, key: keyOf(i), operation: 'import', outcome })
          }
        },
      })
    },
    async pay(by) {
      const { random, key } = by
      const order = random.pick(known.orders.filter(({ total }) => total > 0))
      if (!order) return
      const amount = random.pick([order.total, order.total, Math.ceil(order.total / 2), 1]) ?? 1
      const body = { amount, external_reference: key }
      const money = { orderId: order.id, amount }
      const done = await write(by, { key, operation: 'pay', path: `/orders/${order.id}/payments`, body, money })
      const payments = (done?.payments ?? []) as { id: string; external_reference: string }[]
      const mine = payments.find(({ external_reference }) => external_reference === key)
      if (mine) known.payments.push({ id: mine.id, orderId: order.id, amount, isWhole: amount === order.total })
    },
    async void(by) {
      const payment = by.random.pick(known.payments)
      if (!payment) return
      const money = { orderId: payment.orderId, amount: -payment.amount }
      await write(by, { key: `void:${payment.id}`, operation: 'void', path: `/payments/${payment.id}/void`, money })
    },
    async refund(by) {
      // Of most orders that were paid at once: only those, and cancelled ones, have anything to give back.
      const payment = by.random.pick(known.payments.filter(({ isWhole }) => isWhole || by.random.next() < 0.2))
      if (!payment) return
      const { key } = by
      const body = { amount: 1, external_reference: key }
      const money = { orderId: payment.orderId, amount: -1 }
      await write(by, { key, operation: 'refund', path: `/orders/${payment.orderId}/refunds`, body, money })
    },
    async cancelOrder(by) {
      const order = by.random.pick(known.orders.filter(({ isGroup }) => !isGroup))
      if (!order) return
      const key = `cancel order:${order.id}`
      await write(by, { key, operation: 'cancel order', path: `/orders/${order.id}/cancel`, idOf })
    },
    async cancel(by) {
      const groups = new Set(known.orders.filter(({ isGroup }) => isGroup).map(({ id }) => id))
      const one = by.random.pick(known.guests.filter(({ orderId }) => groups.has(orderId)))
      if (!one) return
      await write(by, { key: `cancel:${one.id}`, operation: 'cancel', path: `/attendees/${one.id}/cancel`, idOf })
    },
    async scan(by) {
      const { random, key } = by
      const one = random.pick(known.guests)
      if (!one) return
      const isAtPoint = random.next() < 0.6
      const direction = isAtPoint && random.next() < 0.4 ? 'exit' : 'entry'
      const point = isAtPoint && { check_in_point_id: hall.pointId, direction }
      const body = { event_id: hall.eventId, code: one.code, device: key, ...point }
      const operation = direction === 'entry' ? 'check in' : 'check out'
      const done = await write(by, { key, operation, path: '/check-ins', body, idOf })
      if (done) known.checkIns.push(String(done.id))
    },
    async undo(by) {
      const id = by.random.pick(known.checkIns)
      if (id) await write(by, { key: `undo:${id}`, operation: 'undo', path: `/check-ins/${id}/undo`, idOf })
    },
    async transfer(by) {
      const { key } = by
      const one = by.random.pick(known.guests.filter(({ isErasable }) => !isErasable))
      if (!one) return
      const body = { ...guest(`to ${key}`), metadata: { prove: key } }
      const call: Write = { key, operation: 'transfer', method: 'PATCH', path: `/attendees/${one.id}`, body }
      const done = await write(by, call)
      if (done?.ticket_code) one.code = String(done.ticket_code)
    },
    async erase(by) {
      const one = by.random.pick(known.guests.filter(({ isErasable }) => isErasable))
      if (one) await write(by, { key: `erase:${one.id}`, operation: 'erase', path: `/attendees/${one.id}/erase` })
    },
    async wait(by) {
      const { key } = by
      const body = { ticket_type_id: by.random.pick([few, priced]), ...guest(key), external_id: key }
      const call: Write = { key, operation: 'wait', path: `/events/${hall.eventId}/waiting-list`, body, idOf }
      const done = await write(by, call)
      if (done && !willDecline(String(done.id))) known.entries.push(String(done.id))
    },
    async accept(by) {
      const { client, random } = by
      const path = `/events/${hall.eventId}/waiting-list?status=offered`
      const answer = await send(client, keys[client % keys.length] ?? '', 'GET', path).catch(() => undefined)
      const offered = (answer?.body.data ?? []) as unknown as { id: string }[]
      const id = random.pick(offered.filter(({ id }) => !willDecline(id)))?.id ?? random.pick(known.entries)
      if (!id) return
      const accept = { key: `accept:${id}`, operation: 'accept', path: `/waiting-list-entries/${id}/accept` }
      learn(await write(by, { ...accept, idOf }))
    },
  } satisfies Record<string, (by: By) => Promise<unknown>>
  const weights: Record<keyof typeof doings, number> = {
    register: 10,
    registerAtOnce: 3,
    registerWithoutKey: 4,
    registerHolder: 8,
    registerGroup: 10,
    openEvent: 1,
    import: 3,
    pay: 10,
    void: 1,
    refund: 5,
    cancelOrder: 3,
    cancel: 4,
    scan: 9,
    undo: 3,
    transfer: 5,
    erase: 2,
    wait: 6,
    accept: 6,
  }
  let written = 0

  return {
    history,
    now,
    trespasses,
    tally,
    holders,
    async work(client, random, until, pauseMs = 0) {
      isOver = until
      while (!until()) {
        const doing = doings[random.weighted(weights)]
        written += 1
        await doing({ client, random, key: `${prefix}-${client}-${written}` })
        if (pauseMs > 0) await sleep(pauseMs)
      }
    },
    /** An organiser at the SQL editor: changes limits, and edits people. */
    async edit(random, database, until) {
      let client: pg.Client | undefined
      while (!until()) {
        written += 1
        const key = `${prefix}-sql-${written}`
        const one = random.pick(known.guests.filter(({ isErasable }) => !isErasable))
        const start = now()
        let outcome: Attempt['outcome'] = 'unknown'
        let rows = 0
        let why: string | undefined
        try {
          client ??= await database()
          if (one === undefined || random.next() < 0.4) {
            await client.query('update public.ticket_types set quantity = quantity + $2 where id = $1', [
              random.pick([few, priced]),
              random.pick([1, -1, -1]),
            ])
            if (random.next() < 0.3)
              await client.query('update public.events set capacity = capacity + 1 where id = $1', [hall.eventId])
          } else {
            const update = client.query('update public.attendees set company = $2 where id = $1', [one.id, key])
            rows = (await update).rowCount ?? 0
            outcome = 'ok'
          }
        } catch (error) {
          const { code, message } = error as { code?: string; message: string }
          // What Postgres refuses is rolled back; of a connection that ends nobody knows.
          outcome = code !== undefined && /^(PT|40|55|23)/.test(code) ? 'refused' : 'unknown'
          why = code ?? message
          if (outcome === 'unknown') {
            await client?.end().catch(() => {})
            client = undefined
          }
        }
        const isOfPerson = rows > 0 || outcome !== 'ok'
        if (isOfPerson && one)
          history.push({ key, operation: 'edit in SQL', start, end: now(), outcome, ...(why && { why }) })
        await sleep(random.between(50, 250))
      }
      await client?.end().catch(() => {})
    },
    /** Somebody with a key of another organisation, for tests: reads what is not theirs, and registers guests whom nothing may reach. */
    async spy({ key, eventId, ticketTypeId }, random, until) {
      while (!until()) {
        written += 1
        const path = `/events/${eventId}/registrations`
        const body = { ...guest(`tester ${written}`), ticket_type_id: ticketTypeId }
        const registered = await send(random.below(2), key, 'POST', path, body).catch(() => undefined)
        const tallied = `register for a test ${registered?.body.error?.code ?? registered?.status ?? 'unknown'}`
        tally.set(tallied, (tally.get(tallied) ?? 0) + 1)
        const [order, one] = [random.pick(known.orders), random.pick(known.guests)]
        for (const path of [order && `/orders/${order.id}`, one && `/attendees/${one.id}`]) {
          if (!path) continue
          const answer = await send(random.below(2), key, 'GET', path).catch(() => undefined)
          if (answer && answer.status < 300) trespasses.push({ about: 'another organisation', detail: path })
        }
        await sleep(random.between(100, 400))
      }
    },
  }
}
