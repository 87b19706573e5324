// What a file of 200,000 attendees costs others: the memory of the API, and the time of another key's calls, while it is read at full speed
// and slowly.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { Effort } from './compare.ts'
import { grow } from './lists.ts'
import { load } from './load.ts'
import { memoryMb } from './processes.ts'
import { fixed, judged, median, type Outcome, type Target } from './report.ts'
import { addOrganiser, type Organiser, type Stack } from './stack.ts'
import { type Call, registration, subjects } from './subjects.ts'

const attendees = 200_000
const slowBytesPerSecond = 1_000_000

/** A client in a process of its own, so that it does not delay the load generator: how many lines, bytes and seconds. */
const client = `
  const [url, key, perSecond] = process.argv.slice(1)
  const began = performance.now()
  require('node:http').get(url, { headers: { Authorization: 'Bearer ' + key } }, (answer) => {
    let [lines, bytes] = [0, 0]
    answer.on('data', (chunk) => {
      for (const byte of chunk) if (byte === 10) lines += 1
      bytes += chunk.length
      if (perSecond === '0') return
      answer.pause()
      setTimeout(() => answer.resume(), (chunk.length * 1000) / perSecond)
    })
    answer.on('end', () => console.log(JSON.stringify({ lines, bytes, seconds: (performance.now() - began) / 1000 })))
  })`

type Reading = {
  done: () => boolean
  result: Promise<{ lines: number; bytes: number; seconds: number } | undefined>
  stop(): void
}

function read(stack: Stack, { key }: Organiser, perSecond: number): Reading {
  const reader = spawn(
    process.execPath,
    ['-e', client, `${stack.url}/api/v1/exports/attendees`, key, String(perSecond)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  let isDone = false
  const result = Promise.all([text(reader.stdout), once(reader, 'exit')]).then(([printed]) => {
    isDone = true
    return printed === '' ? undefined : JSON.parse(printed)
  })
  return { done: () => isDone, result, stop: () => void reader.kill() }
}

export async function exportFile(stack: Stack, { rounds, seconds }: Effort): Promise<Outcome> {
  const [exporter, other] = [await addOrganiser(stack, { ticketTypes: 2 }), await addOrganiser(stack)]
  await grow(stack, exporter, attendees)
  const usher = await subjects.usher(stack)
  const make = await usher.open(other)
  let nth = 0
  const calls: Record<string, () => Call> = {
    'GET /me': () => ({ operation: 'get_api_key', args: {} }),
    registration: () => registration(other, nth++),
  }
  const p95Of = async (name: string) =>
    (await load({ url: usher.url, connections: 1, seconds, request: () => make((calls[name] as () => Call)()) })).p95

  const targets: Target[] = []
  const figures: Record<string, unknown> = {}
  for (const name of Object.keys(calls)) await p95Of(name)
  for (const [kind, perSecond] of Object.entries({ 'at full speed': 0, slowly: slowBytesPerSecond })) {
    const [alone, during] = [new Map<string, number[]>(), new Map<string, number[]>()]
    const measure = async (name: string, into: Map<string, number[]>) =>
      into.set(name, [...(into.get(name) ?? []), await p95Of(name)])
    for (let i = 0; i < rounds; i++) for (const name of Object.keys(calls)) await measure(name, alone)
    const before = memoryMb(stack.pids.node)
    let most = before
    const sampling = setInterval(() => {
      most = Math.max(most, memoryMb(stack.pids.node))
    }, 100)
    // Again while there are rounds left: a fast one ends before them.
    let reading = read(stack, exporter, perSecond)
    let whole: Awaited<Reading['result']>
    for (let i = 0; i < rounds; i++) {
      for (const name of Object.keys(calls)) {
        if (reading.done()) reading = read(stack, exporter, perSecond)
        await measure(name, during)
        if (reading.done()) whole = await reading.result
      }
    }
    if (perSecond > 0) reading.stop()
    whole = (await reading.result) ?? whole
    clearInterval(sampling)
    if (whole !== undefined && whole.lines !== attendees + 2) throw new Error(`The file has ${whole.lines} lines.`)
    const said =
      whole &&
      `${fixed(whole.seconds)} s, ${fixed(whole.bytes / 1e6)} MB, ${fixed(whole.lines / whole.seconds)} rows/s; `
    console.log(`  ${kind}: ${said ?? ''}memory ${fixed(before)} MB, at most ${fixed(most)} MB`)
    targets.push(
      judged(`${kind}: memory grows by < 100 MB`, `${fixed(most - before)} MB`, most - before, { atMost: 100 }),
      ...Object.keys(calls).map((name) => {
        const [with_, without] = [median(during.get(name) ?? []), median(alone.get(name) ?? [])]
        const figure = `${fixed(with_)} ms, ${fixed(without)} ms alone`
        return judged(`${kind}: p95 of ${name} ≤ 2× that alone`, figure, with_ / without, { atMost: 2 })
      }),
    )
    figures[kind] = { alone: Object.fromEntries(alone), during: Object.fromEntries(during), before, most, whole }
  }
  return { figures, targets }
}
