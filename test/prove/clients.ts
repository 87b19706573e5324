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

export type Crowd = {
  history: Attempt[]
  /** Milliseconds since the history began. */
  now(): number
  /** What was answered to a key that may not have it. */
  trespasses: { about: string; detail: string }[]
  /** Answers that are no refusal of the domain, for a look at what clients met. */
  tally: Map<string, number>
  /** @param pauseMs between two calls */
  work(client: number, random: Random, until: () => boolean, pauseMs?: number): Promise<void>
  edit(random: Random, database: () => Promise<pg.Client>, until: () => boolean): Promise<void>
  spy(key: string, random: Random, until: () => boolean): Promise<void>
}

const attemptsPerCall = 6

export function createCrowd(hall: Hall, send: Send, keys: string[], prefix: string): Crowd {
  const history: Attempt[] = []
  const trespasses: Crowd['trespasses'] = []
  const tally = new Map<string, number>()
  const known: Known = { orders: [], guests: [], payments: [], checkIns: [], entries: [] }
  let isOver = () => false
  const startedAt = Date.now()
  const now = () => Date.now() - startedAt

  type Write = {
    key: string
    operation: string
    method?: string
    path: string
    body?: unknown
    money?: Attempt['money']
    /** Without an idempotency key, and so sent once. */
    isUnkeyed?: boolean
    idOf?: (data: Record<string, unknown>) => unknown
    /** Takes the place of one attempt for the call. */
    record?: (attempt: Omit<Attempt, 'key' | 'operation'>, answer: Answer | undefined) => void
  }

  /** Sends it until there is an answer, through either API; sometimes it gives up first. @returns what was done. */
  async function write(client: number, random: Random, call: Write): Promise<Record<string, unknown> | undefined> {
    const { key, operation, method = 'POST', path, body = {}, money, isUnkeyed = false, idOf } = call
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
      }
      if (call.record) call.record(attempt, answer)
      else history.push({ key, operation, ...attempt })
      if (outcome === 'ok') return data
      if (outcome === 'refused' || isUnkeyed || isOver() || random.next() < 0.1) return undefined
      await new Promise((resolve) => setTimeout(resolve, random.between(20, 400)))
    }
    return undefined
  }

  type Line = { id: string; ticket_code: string }
  function learn(order: Record<string, unknown>, isGroup: boolean): void {
    known.orders.push({ id: String(order.id), total: Number(order.total), isGroup })
    for (const [i, { id, ticket_code: code }] of (order.attendees as Line[]).entries()) {
      known.guests.push({ id, code, orderId: String(order.id), isErasable: isGroup && i > 0 })
    }
  }
  const idOfData = (data: Record<string, unknown>) => data.id
  const guest = (name: string) => ({ name, email: `${name.replaceAll(/\W/g, '-')}@example.com` })
  const [few, priced, many] = hall.ticketTypeIds
  const registrations = `/events/${hall.eventId}/registrations`

  const doings: [weight: number, work: (client: number, random: Random, key: string) => Promise<unknown>][] = [
    [
      10,
      async (client, random, key) => {
        const path = registrations
        const type = random.pick([few, many, many])
        const body = { ...guest(key), attendees: undefined, ticket_type_id: type, metadata: { prove: key } }
        const order = await write(client, random, { key, operation: 'register', path, body, idOf: idOfData })
        if (order) learn(order, false)
      },
    ],
    [
      3,
      // With one key and at once, so that they share an RPC; some of them are refused.
      async (client, random, key) => {
        const one = async (i: number) => {
          const guestKey = `${key}+${i}`
          const type = random.pick([few, many, many])
          const body = { ...guest(guestKey), ticket_type_id: type, metadata: { prove: guestKey } }
          const call = { key: guestKey, operation: 'register at once', path: registrations, body, idOf: idOfData }
          const order = await write(client, random, call)
          if (order) learn(order, false)
        }
        await Promise.all(Array.from({ length: 8 }, (_, i) => one(i)))
      },
    ],
    [
      4,
      async (client, random, key) => {
        const body = { ...guest(key), ticket_type_id: many, metadata: { prove: key } }
        const call = { key, operation: 'register without a key', path: registrations, body, idOf: idOfData }
        const order = await write(client, random, { ...call, isUnkeyed: true })
        if (order) learn(order, false)
      },
    ],
    [
      10,
      async (client, random, key) => {
        const attendees = Array.from({ length: random.between(2, 3) }, (_, i) => guest(`${key}.${i}`))
        const body = {
          ticket_type_id: priced,
          attendees,
          payment_method: 'invoice',
          metadata: { prove: key },
          ...(random.next() < 0.5 && { promo_code: 'FEW' }),
        }
        const call = { key, operation: 'register a group', path: registrations, body, idOf: idOfData }
        const order = await write(client, random, call)
        if (order) learn(order, true)
      },
    ],
    [
      3,
      async (client, random, key) => {
        const keyOf = (i: number) => `${key}/${i}`
        const attendees = [0, 1, 2].map((i) => ({ ...guest(keyOf(i)), external_id: keyOf(i) }))
        await write(client, random, {
          key,
          operation: 'import',
          path: `/events/${hall.eventId}/attendees/import`,
          body: { ticket_type_id: random.pick([few, many]), attendees },
          record(attempt, answer) {
            type Result = { result: string; order_id?: string; error?: { code: string } }
            const results = answer?.body.data?.results as Result[] | undefined
            for (const i of attendees.keys()) {
              // What it left for another call was not done.
              const result = results?.[i]
              const isDone =
                result?.result === 'created' || result?.result === 'unchanged' || result?.result === 'updated'
              const outcome = attempt.outcome === 'ok' ? (isDone ? 'ok' : 'refused') : attempt.outcome
              history.push({ ...attempt, key: keyOf(i), operation: 'import', outcome })
            }
          },
        })
      },
    ],
    [
      10,
      async (client, random, key) => {
        const order = random.pick(known.orders.filter(({ total }) => total > 0))
        if (!order) return
        const amount = random.pick([order.total, order.total, Math.ceil(order.total / 2), 1]) ?? 1
        const done = await write(client, random, {
          key,
          operation: 'pay',
          path: `/orders/${order.id}/payments`,
          body: { amount, external_reference: key },
          money: { orderId: order.id, amount },
        })
        const payments = (done?.payments ?? []) as { id: string; external_reference: string }[]
        const mine = payments.find(({ external_reference }) => external_reference === key)
        if (mine) known.payments.push({ id: mine.id, orderId: order.id, amount, isWhole: amount === order.total })
      },
    ],
    [
      1,
      async (client, random) => {
        const payment = random.pick(known.payments)
        if (!payment) return
        await write(client, random, {
          key: `void:${payment.id}`,
          operation: 'void',
          path: `/payments/${payment.id}/void`,
          money: { orderId: payment.orderId, amount: -payment.amount },
        })
      },
    ],
    [
      5,
      async (client, random, key) => {
        // Of most orders that were paid at once: only those, and cancelled ones, have anything to give back.
        const whole = known.payments.filter(({ isWhole }) => isWhole || random.next() < 0.2)
        const payment = random.pick(whole)
        if (!payment) return
        await write(client, random, {
          key,
          operation: 'refund',
          path: `/orders/${payment.orderId}/refunds`,
          body: { amount: 1, external_reference: key },
          money: { orderId: payment.orderId, amount: -1 },
        })
      },
    ],
    [
      3,
      async (client, random) => {
        const order = random.pick(known.orders.filter(({ isGroup }) => !isGroup))
        if (!order) return
        const call = { key: `cancel order:${order.id}`, operation: 'cancel order', path: `/orders/${order.id}/cancel` }
        await write(client, random, { ...call, idOf: idOfData })
      },
    ],
    [
      4,
      async (client, random) => {
        const groups = new Set(known.orders.filter(({ isGroup }) => isGroup).map(({ id }) => id))
        const one = random.pick(known.guests.filter(({ orderId }) => groups.has(orderId)))
        if (!one) return
        const call = { key: `cancel:${one.id}`, operation: 'cancel', path: `/attendees/${one.id}/cancel` }
        await write(client, random, { ...call, idOf: idOfData })
      },
    ],
    [
      9,
      async (client, random, key) => {
        const one = random.pick(known.guests)
        if (!one) return
        const isAtPoint = random.next() < 0.6
        const direction = isAtPoint && random.next() < 0.4 ? 'exit' : 'entry'
        const done = await write(client, random, {
          key,
          operation: direction === 'entry' ? 'check in' : 'check out',
          path: '/check-ins',
          body: {
            event_id: hall.eventId,
            code: one.code,
            device: key,
            ...(isAtPoint && { check_in_point_id: hall.pointId, direction }),
          },
          idOf: idOfData,
        })
        if (done) known.checkIns.push(String(done.id))
      },
    ],
    [
      3,
      async (client, random) => {
        const id = random.pick(known.checkIns)
        if (!id) return
        const call = { key: `undo:${id}`, operation: 'undo', path: `/check-ins/${id}/undo`, idOf: idOfData }
        await write(client, random, call)
      },
    ],
    [
      5,
      async (client, random, key) => {
        const one = random.pick(known.guests.filter(({ isErasable }) => !isErasable))
        if (!one) return
        const done = await write(client, random, {
          key,
          operation: 'transfer',
          method: 'PATCH',
          path: `/attendees/${one.id}`,
          body: { ...guest(`to ${key}`), metadata: { prove: key } },
        })
        if (done?.ticket_code) one.code = String(done.ticket_code)
      },
    ],
    [
      2,
      async (client, random) => {
        const one = random.pick(known.guests.filter(({ isErasable }) => isErasable))
        if (!one) return
        const call = { key: `erase:${one.id}`, operation: 'erase', path: `/attendees/${one.id}/erase` }
        await write(client, random, call)
      },
    ],
    [
      6,
      async (client, random, key) => {
        const done = await write(client, random, {
          key,
          operation: 'wait',
          path: `/events/${hall.eventId}/waiting-list`,
          body: { ticket_type_id: random.pick([few, priced]), ...guest(key), external_id: key },
          idOf: idOfData,
        })
        if (done) known.entries.push(String(done.id))
      },
    ],
    [
      6,
      async (client, random) => {
        const path = `/events/${hall.eventId}/waiting-list?status=offered`
        const offered = await send(client, keys[client % keys.length] ?? '', 'GET', path).catch(() => undefined)
        const id =
          random.pick((offered?.body.data ?? []) as unknown as { id: string }[])?.id ?? random.pick(known.entries)
        if (!id) return
        const accept = { key: `accept:${id}`, operation: 'accept', path: `/waiting-list-entries/${id}/accept` }
        const order = await write(client, random, { ...accept, idOf: idOfData })
        if (order) learn(order, false)
      },
    ],
  ]
  const total = doings.reduce((sum, [weight]) => sum + weight, 0)
  let written = 0

  return {
    history,
    now,
    trespasses,
    tally,
    async work(client, random, until, pauseMs = 0) {
      isOver = until
      while (!until()) {
        let n = random.below(total)
        for (const [weight, work] of doings) {
          n -= weight
          if (n >= 0) continue
          written += 1
          await work(client, random, `${prefix}-${client}-${written}`)
          break
        }
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
        await new Promise((resolve) => setTimeout(resolve, random.between(50, 250)))
      }
      await client?.end().catch(() => {})
    },
    /** Somebody with a key of another organisation. */
    async spy(key, random, until) {
      while (!until()) {
        const [order, one] = [random.pick(known.orders), random.pick(known.guests)]
        for (const path of [order && `/orders/${order.id}`, one && `/attendees/${one.id}`]) {
          if (!path) continue
          const answer = await send(random.below(2), key, 'GET', path).catch(() => undefined)
          if (answer && answer.status < 300) trespasses.push({ about: 'another organisation', detail: path })
        }
        await new Promise((resolve) => setTimeout(resolve, random.between(100, 400)))
      }
    },
  }
}
