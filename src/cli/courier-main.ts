// The process of the courier that `usher start` keeps running: see courier-process.ts. It ends when the channel to its parent closes,
// whatever became of that.

import { once } from 'node:events'
import { setPriority } from 'node:os'
import { createCourierRpc } from '../gateway/courier-rpc.ts'
import { DataApi } from '../gateway/data-api.ts'
import { createDatabaseHealth } from '../gateway/database-health.ts'
import { createCourierProbe } from '../gateway/database-probe.ts'
import { createLog } from '../process/log.ts'
import { openLogStream } from '../process/log-stream.ts'
import { signals } from '../process/stop-signals.ts'
import type { Credentials, FromCourier, Instructions } from './courier-process.ts'
import { startDeliveries } from './deliveries.ts'

// A token is good for a minute at least when it comes.
const reuseMs = 30_000
// Requests come before deliveries where both want the processor.
const niceness = 5

// The channel may have closed during the imports.
if (!process.connected) process.exit(0)
const disconnected = once(process, 'disconnect')
// Sent to the whole group by a terminal or a supervisor: the parent stops this process, when its requests have ended.
for (const signal of signals) process.on(signal, () => {})
try {
  setPriority(niceness)
} catch {
  // Not everywhere permitted.
}

const tell = (message: FromCourier) => process.connected && process.send?.(message, undefined, undefined, () => {})

let credentials: Credentials = { token: '', ownPorts: [] }
let isFreshUntil = 0
let turn: Promise<unknown> = Promise.resolve()

async function ask(refused?: string): Promise<void> {
  if (!process.connected) return
  const answer = once(process, 'message') as Promise<[Credentials]>
  tell({ asks: 'token', ...(refused !== undefined && { refused }) })
  const answered = await Promise.race([answer, disconnected.then(() => null)])
  if (answered === null) return
  credentials = answered[0]
  isFreshUntil = performance.now() + reuseMs
}

/** Calls follow one another, so that each answer is that of its question. */
function tokenAfter(work: () => Promise<void>): Promise<string> {
  const token = turn.then(work).then(() => credentials.token)
  turn = token
  return token
}

const tokens = {
  forCourier: () => tokenAfter(async () => void (performance.now() < isFreshUntil || (await ask()))),
  inPlaceOf: (refused: string) => tokenAfter(async () => void (refused === credentials.token && (await ask(refused)))),
}

const instructed = await Promise.race([once(process, 'message'), disconnected.then(() => null)])
if (instructed === null) process.exit(0)
const [{ options, address, logLevel, logFormat, observed }] = instructed as [Instructions]
const log = createLog(logLevel, await openLogStream(logFormat))
const health = createDatabaseHealth(createCourierProbe(address, tokens))
const rpc = createCourierRpc(new DataApi(address, tokens, { health }), tokens)
await tokens.forCourier()
const observe = observed ? (...observation: [string, string, number]) => void tell({ observation }) : undefined
const deliveries = startDeliveries(options, rpc, log, observe, () => credentials.ownPorts)
tell({ started: true })
await disconnected
await deliveries.stop()
process.exit(0)
