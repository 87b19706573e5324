// A TCP proxy on loopback that fails on request: what networks do to connections, between any two parts. Where they speak HTTP, it can also
// send requests twice, as networks and proxies do that believe the first lost.

import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

const ofConnections = ['drop', 'delay', 'truncate', 'half-close', 'stall', 'refuse'] as const
const ofRequests = [...ofConnections, 'duplicate'] as const
export type Cut = (typeof ofRequests)[number]

export type FailingProxy = {
  port: number
  cuts: readonly Cut[]
  /** Requests that were sent once more than they came. */
  copies: string[]
  /** Fails in this way, for so long where it lasts. */
  cut(how: Cut, milliseconds: number): Promise<void>
  /** Connections that come from now on lead to another port. */
  retarget(port: number): void
  close(): Promise<void>
}

// A copy comes beside the request, or after it.
const copyAfterMs = [0, 300]

export async function startProxy(firstTarget: number, protocol: 'TCP' | 'HTTP' = 'TCP'): Promise<FailingProxy> {
  let targetPort = firstTarget
  const pairs = new Set<[client: Socket, server: Socket]>()
  const copying = new Set<Promise<void>>()
  const copies: string[] = []
  let isDuplicating = false
  let delay = 0
  let isRefusing = false
  /** Of each answer, only so many bytes arrive. */
  let truncateTo: number | undefined

  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (isRefusing) return void client.resetAndDestroy()
    const upstream = connect({ port: targetPort, host: '127.0.0.1', allowHalfOpen: true })
    const pair: [Socket, Socket] = [client, upstream]
    pairs.add(pair)
    const destroy = () => {
      pairs.delete(pair)
      client.destroy()
      upstream.destroy()
    }
    for (const [from, to, isAnswer] of [
      [client, upstream, false],
      [upstream, client, true],
    ] as const) {
      from.on('error', destroy).on('close', destroy)
      // One after the other, so that what is delayed keeps its order.
      let before = Promise.resolve()
      from.on('end', () => {
        before = before.then(() => void to.end())
      })
      from.on('data', (chunk: Buffer) => {
        if (!isAnswer && isDuplicating && isRequest(chunk)) {
          const after = copyAfterMs[copies.length % copyAfterMs.length] ?? 0
          copies.push(chunk.toString())
          const copied = sleep(after).then(() => sendCopy(targetPort, chunk))
          copying.add(copied)
          void copied.then(() => copying.delete(copied))
        }
        const wait = delay
        before = before.then(async () => {
          if (wait > 0) await sleep(wait)
          if (to.destroyed) return
          if (isAnswer && truncateTo !== undefined) {
            to.write(chunk.subarray(0, truncateTo), destroy)
            return
          }
          to.write(chunk)
        })
      })
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')

  const reset = () => {
    for (const [client, upstream] of pairs) {
      client.resetAndDestroy()
      upstream.resetAndDestroy()
    }
  }
  return {
    port: address.port,
    cuts: protocol === 'HTTP' ? ofRequests : ofConnections,
    copies,
    async cut(how, milliseconds) {
      switch (how) {
        case 'drop':
          return reset()
        case 'refuse':
          isRefusing = true
          reset()
          await sleep(milliseconds)
          isRefusing = false
          return
        case 'delay':
          delay = Math.min(milliseconds, 400)
          await sleep(milliseconds)
          delay = 0
          return
        case 'truncate':
          truncateTo = 40
          await sleep(milliseconds)
          truncateTo = undefined
          return
        case 'duplicate':
          isDuplicating = true
          await sleep(milliseconds)
          isDuplicating = false
          await Promise.all(copying)
          return
        case 'half-close':
          // The other side learns that no more comes, and may still answer.
          for (const [, upstream] of pairs) upstream.end()
          return
        case 'stall': {
          const stalled = [...pairs].flat()
          for (const socket of stalled) socket.pause()
          await sleep(milliseconds)
          for (const socket of stalled) socket.resume()
        }
      }
    },
    retarget(port) {
      targetPort = port
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        for (const pair of pairs) for (const socket of pair) socket.destroy()
      }),
  }
}

/** Whether these bytes are one whole request. */
function isRequest(chunk: Buffer): boolean {
  const end = chunk.indexOf('\r\n\r\n')
  if (end < 0) return false
  const head = chunk.subarray(0, end).toString('latin1')
  const length = /^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0
  return /^[A-Z]+ \S+ HTTP\/1\.1\r?$/m.test(head.split('\n')[0] ?? '') && chunk.length === end + 4 + Number(length)
}

/** On a connection of its own. Resolves when it is answered or cut off; nobody reads the answer. */
function sendCopy(port: number, request: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', timeout: 10_000 }, () => socket.write(request))
    const end = () => socket.destroy()
    socket.on('data', end).on('end', end).on('timeout', end).on('error', end)
    socket.on('close', () => resolve())
  })
}
