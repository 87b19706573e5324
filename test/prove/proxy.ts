// A TCP proxy on loopback that fails on request: what networks do to connections, between any two parts.

import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export const cuts = ['drop', 'delay', 'truncate', 'half-close', 'stall', 'refuse'] as const
export type Cut = (typeof cuts)[number]

export type FailingProxy = {
  port: number
  /** Fails in this way, for so long where it lasts. */
  cut(how: Cut, milliseconds: number): Promise<void>
  /** Connections that come from now on lead to another port. */
  retarget(port: number): void
  close(): Promise<void>
}

export async function startProxy(firstTarget: number): Promise<FailingProxy> {
  let targetPort = firstTarget
  const pairs = new Set<[client: Socket, server: Socket]>()
  let delay = 0
  let isRefusing = false
  /** Of the next answer, only so many bytes arrive. */
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
        const wait = delay
        before = before.then(async () => {
          if (wait > 0) await sleep(wait)
          if (to.destroyed) return
          if (isAnswer && truncateTo !== undefined) {
            const part = chunk.subarray(0, truncateTo)
            truncateTo = undefined
            to.write(part, () => destroy())
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
