// The process of the courier that `usher start` keeps running: see courier-process.ts. It ends when the channel to its parent closes,
// whatever became of that.

import { once } from 'node:events'
import { setPriority } from 'node:os'
import { createCourierRpc } from '../gateway/courier-rpc.ts'
import { DataApi } from '../gateway/data-api.ts'
import { createDatabaseHealth } from '../gateway/database-health.ts'
import { createCourierProbe } from '../gateway/database-probe.ts'
import { createLog, openLogStream } from '../process/log.ts'
import { signals } from '../process/stop-signals.ts'
import type { FromCourier, Instructions, NextToken } from './courier-process.ts'
import { startDeliveries } from './deliveries.ts'

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

const instructed = await Promise.race([once(process, 'message'), disconnected.then(() => null)])
if (instructed === null) process.exit(0)
const [{ options, address, logLevel, logFormat, observed, ...given }] = instructed as [Instructions]
let { token } = given
process.on('message', (next: NextToken) => {
  token = next.token
})
const tokens = {
  forCourier: async () => token,
  async inPlaceOf(refused: string) {
    if (refused === token) {
      tell({ refused })
      await Promise.race([once(process, 'message'), disconnected])
    }
    return token
  },
}
const log = createLog(logLevel, await openLogStream(logFormat))
const health = createDatabaseHealth(createCourierProbe(address, tokens))
const rpc = createCourierRpc(new DataApi(address, tokens, { health }), tokens)
const observe = observed ? (...observation: [string, string, number]) => void tell({ observation }) : undefined
const deliveries = startDeliveries(options, rpc, log, observe)
tell({ started: true })
await disconnected
await deliveries.stop()
process.exit(0)
