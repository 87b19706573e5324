// What one call costs Postgres when nothing is shared: PostgREST called directly, one call at a time. Each call takes turns with the same
// one on a stack without rules (floor.sql), and with `--base` on the stack of another checkout.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Effort } from './compare.ts'
import { backendsCpuUs } from './processes.ts'
import { fixed, judged, type Outcome, spread, times } from './report.ts'
import { addOrganiser, type Organiser, type Stack, startStack } from './stack.ts'
import { type Call, registration, subjects } from './subjects.ts'

export type Kind = {
  name: string
  perSecond: number
  prepare?: ((side: Side, calls: number) => Promise<void>) | undefined
  call(side: Side): Call
}

export type Side = {
  stack: Stack
  organiser: Organiser
  nth: number
  ids: string[]
  send(call: Call): Promise<{ data: { id: string; attendees: { ticket_code: string }[] } }>
}

// Plain lines may cost a single call so much of what clever ones did.
const mostOfBefore = 1.3

export const kinds: Kind[] = [
  {
    name: 'registration',
    perSecond: 80,
    call: ({ organiser, nth }) => registration(organiser, nth),
  },
  {
    name: 'check-in',
    perSecond: 150,
    async prepare(side, calls) {
      side.ids = []
      for (let i = 0; i < calls; i++) {
        const order = await side.send(registration(side.organiser, side.nth++))
        side.ids.push(order.data.attendees[0]?.ticket_code ?? '')
      }
    },
    call: ({ organiser, ids }) => ({
      operation: 'check_in',
      args: { event_id: organiser.eventId, code: ids.pop() ?? 'NONE' },
    }),
  },
  {
    name: 'invoice payment',
    perSecond: 60,
    async prepare(side, calls) {
      side.ids = []
      for (let i = 0; i < calls; i++) {
        const order = await side.send(registration(side.organiser, side.nth++, { payment_method: 'invoice' }))
        side.ids.push(order.data.id)
      }
    },
    call: ({ ids }) => ({
      operation: 'record_invoice_payment',
      args: { order_id: ids.pop(), method: 'bank_transfer', amount: 10_000, currency: 'EUR' },
    }),
  },
  {
    name: 'import of 1,000',
    perSecond: 0.5,
    call: ({ organiser, nth }) => ({
      operation: 'import_attendees',
      args: {
        event_id: organiser.eventId,
        ticket_type_id: organiser.ticketTypeIds[0],
        send_email: false,
        attendees: Array.from({ length: 1000 }, (_, i) => ({
          name: `Guest ${nth} ${i}`,
          email: `guest-${nth}-${i}@example.com`,
          external_id: `import-${nth}-${i}`,
        })),
      },
    }),
  },
]

export async function singleCalls(stack: Stack, { rounds, seconds, base }: Effort): Promise<Outcome> {
  const floor = await startStack()
  try {
    const sides = await Promise.all([stack, floor, ...(base ? [base] : [])].map(openSide))
    await floor.database.query(readFileSync(join(import.meta.dirname, 'floor.sql'), 'utf8'))
    const figures: Record<string, number[][]> = {}
    const targets = []
    for (const kind of kinds) {
      const calls = Math.max(1, Math.round(kind.perSecond * seconds))
      const costs: number[][] = sides.map(() => [])
      for (const side of sides) await costOf(kind, side, Math.ceil(calls / 4))
      for (let round = 0; round < rounds; round++) {
        for (const [i, side] of round % 2 ? [...sides.entries()].reverse() : sides.entries()) {
          costs[i]?.push(await costOf(kind, side, calls))
        }
      }
      figures[kind.name] = costs
      const [own = [], without = [], before] = costs
      const ms = (all: number[]) => `${fixed(spread(all).median)} ms`
      const against = (others: number[]) => spread(own.map((cost, i) => cost / (others[i] ?? Number.NaN)))
      console.log(
        `  ${kind.name}: ${ms(own)} of Postgres; without rules ${ms(without)}: ${times(against(without))}${before ? `; before ${ms(before)}` : ''}`,
      )
      if (before !== undefined) {
        const ratio = against(before)
        targets.push(
          judged(`CPU of Postgres of one ${kind.name} ≤ ${mostOfBefore}× before`, times(ratio), ratio.median, {
            atMost: mostOfBefore,
          }),
        )
      }
    }
    return { figures, targets }
  } finally {
    await floor.stop()
  }
}

export async function openSide(stack: Stack): Promise<Side> {
  const organiser = await addOrganiser(stack, { price: 10_000 })
  const postgrest = await subjects.postgrest(stack)
  const request = await postgrest.open(organiser)
  return {
    stack,
    organiser,
    nth: 0,
    ids: [],
    async send(call) {
      const { method, path, headers, body } = request(call)
      const answer = await fetch(postgrest.url + path, { method, headers, body: body ?? null })
      const text = await answer.text()
      if (!answer.ok) throw new Error(`${call.operation}: ${answer.status} ${text}`)
      return JSON.parse(text)
    },
  }
}

export async function callsOneByOne(kind: Kind, side: Side, calls: number): Promise<void> {
  for (let i = 0; i < calls; i++) {
    await side.send(kind.call(side))
    side.nth++
  }
}

/** In milliseconds for each call. */
async function costOf(kind: Kind, side: Side, calls: number): Promise<number> {
  await kind.prepare?.(side, calls)
  const before = backendsCpuUs(side.stack.pids.postgres)
  await callsOneByOne(kind, side, calls)
  return (backendsCpuUs(side.stack.pids.postgres) - before) / 1_000 / calls
}
