// What may grow with use: the time of a start, the memory of Node, and the cost of a registration on a database without statistics.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Effort } from './compare.ts'
import { addFaults, countFaults, noFaults } from './counts.ts'
import { load } from './load.ts'
import { memoryMb } from './processes.ts'
import { fixed, judged, type Outcome, spread, times } from './report.ts'
import { addOrganiser, type Organiser, registerInBulk, type Stack, startStack } from './stack.ts'
import { registration, subjects } from './subjects.ts'

export async function startUp(_stack: Stack, { rounds }: Effort): Promise<Outcome> {
  const cold: number[] = []
  const warm: number[] = []
  for (let i = 0; i < rounds; i++) {
    const dataDir = await mkdtemp(join(tmpdir(), 'usher-bench-'))
    try {
      for (const kind of [cold, warm]) {
        const started = await startStack(dataDir)
        kind.push(started.readyMs)
        await started.stop()
      }
    } finally {
      await rm(dataDir, { recursive: true, force: true })
    }
  }
  for (const [name, all] of Object.entries({ cold, warm })) {
    const { median, min, max } = spread(all)
    console.log(`  ${name} ${fixed(median)} ms (${fixed(min)}–${fixed(max)})`)
  }
  return { figures: { cold, warm }, targets: [] }
}

export async function memory(stack: Stack): Promise<Outcome> {
  const organiser = await addOrganiser(stack)
  const usher = await subjects.usher(stack)
  const request = await usher.open(organiser)
  const read = request({ operation: 'get_api_key', args: {} })
  let nth = 0
  const next = () => (nth++ % 10 === 0 ? request(registration(organiser, nth)) : read)
  const after = async (amount: number) => {
    await load({ url: usher.url, connections: 64, seconds: 0, amount, request: next })
    return memoryMb(stack.pids.node)
  }
  const few = await after(10_000)
  const many = await after(90_000)
  const figure = `${fixed(few)} MB, then ${fixed(many)} MB`
  return {
    figures: { few, many },
    targets: [judged('memory after 100,000 requests ≤ 1.15× that after 10,000', figure, many / few, { atMost: 1.15 })],
  }
}

const bulk = 100_000
const perTurn = 1_000
const turns = 5

type Side = { stack: Stack; organiser: Organiser; nth: number; acknowledged: string[] }

/** The new database is in a stack of its own, so that both take turns; the sessions of both have cached their plans on empty tables. */
export async function neverAnalysed(stack: Stack): Promise<Outcome> {
  const another = await startStack()
  try {
    const full = await withoutStatistics(stack)
    const empty = await withoutStatistics(another)
    for (const side of [full, empty]) await register(side, 16, 500)
    for (let guests = 0; guests < bulk; guests += 1_000) await registerInBulk(full.stack, full.organiser, 1_000)
    const rates: number[] = []
    const singles: number[] = []
    const [ofFull, ofEmpty]: [number[], number[]] = [[], []]
    for (let turn = 0; turn < turns; turn++) {
      const a = await register(full, 16, perTurn)
      const b = await register(empty, 16, perTurn)
      rates.push(a.rate / b.rate)
      ofFull.push(a.rate)
      ofEmpty.push(b.rate)
      singles.push((await register(full, 1, 100)).p50 / (await register(empty, 1, 100)).p50)
    }
    console.log(
      `  16 connections: ${fixed(spread(ofFull).median)}/s after ${bulk} registrations, ${fixed(spread(ofEmpty).median)}/s on a new database`,
    )
    let faults = noFaults
    for (const { stack, organiser, acknowledged } of [full, empty]) {
      const found = await countFaults(stack, 'registrations', [organiser], acknowledged)
      faults = addFaults(faults, { ...found, unsold: 0 })
    }
    const [rate, single] = [spread(rates), spread(singles)]
    return {
      faults,
      figures: { ofFull, ofEmpty, singles },
      targets: [
        judged('throughput at 16 connections ≥ 0.85× a new database', times(rate), rate.median, { atLeast: 0.85 }),
        judged('p50 of a single registration ≤ 1.15× a new database', times(single), single.median, { atMost: 1.15 }),
      ],
    }
  } finally {
    await another.stop()
  }
}

async function withoutStatistics(stack: Stack): Promise<Side> {
  const { rows } = await stack.database.query(
    "select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('public', 'private')",
  )
  for (const { name } of rows) await stack.database.query(`alter table ${name} set (autovacuum_enabled = false)`)
  return { stack, organiser: await addOrganiser(stack), nth: 0, acknowledged: [] }
}

async function register(side: Side, connections: number, amount: number) {
  const usher = await subjects.usher(side.stack)
  const request = await usher.open(side.organiser)
  return load({
    url: usher.url,
    connections,
    seconds: 0,
    amount,
    request: () => request(registration(side.organiser, side.nth++)),
    onAnswer(status, body) {
      const id = status < 300 ? /"id":"([^"]+)"/.exec(body)?.[1] : undefined
      if (id !== undefined) side.acknowledged.push(id)
    },
  })
}
