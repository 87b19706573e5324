// Limits the connections of a port. When all are in use, the address that holds most of them loses one, which is fair without
// knowing whether an address is a person or a proxy: there is no limit per address to be set wrong.

import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { ipKeyGenerator } from 'express-rate-limit'

export type Connections = {
  /** To be called for each request. `begin` runs once those before it on its connection are answered, or never. */
  admit(req: IncomingMessage, res: ServerResponse, begin: () => void): void
  /** Whether an error written to the socket now would be read as the answer to the unreadable request, not to another. */
  mayAnswer(socket: Socket): boolean
}

// Pipelined requests are rare, and Node would begin all that fit into a packet.
const maximumPipelined = 8

type Exchange = { req: IncomingMessage; res: ServerResponse }

export function limitConnections(server: Server, maximum: number): Connections {
  const byAddress = new Map<string, Set<Socket>>()
  const exchanges = new WeakMap<Socket, Exchange[]>()
  const leaves = new WeakMap<Socket, () => void>()
  let open = 0

  const of = (socket: Socket): Exchange[] => exchanges.get(socket) ?? []

  /** Idle, still sending its request, or not reading its answer: no request is being handled on it. */
  function waitsForClient(socket: Socket): boolean {
    const current = of(socket).find((exchange) => !isOver(exchange))
    return current === undefined || !isPending(current)
  }

  function oldestToClose(): Socket | undefined {
    let [most] = byAddress.values()
    for (const sockets of byAddress.values()) if (sockets.size > (most?.size ?? 0)) most = sockets
    for (const sockets of [most ?? [], ...byAddress.values()]) {
      for (const socket of sockets) if (waitsForClient(socket)) return socket
    }
    return undefined
  }

  server.on('connection', (socket: Socket) => {
    if (open >= maximum) {
      const closed = oldestToClose()
      if (closed === undefined) return void socket.destroy()
      closed.destroy()
      // `close` is emitted a moment later; the place is free now.
      leaves.get(closed)?.()
    }
    const address = ipKeyGenerator(socket.remoteAddress ?? '')
    const sockets = byAddress.get(address) ?? new Set()
    byAddress.set(address, sockets.add(socket))
    open += 1
    const leave = () => {
      if (!sockets.delete(socket)) return
      open -= 1
      if (sockets.size === 0) byAddress.delete(address)
    }
    leaves.set(socket, leave)
    socket.once('close', leave)
  })

  return {
    admit(req, res, begin) {
      const unfinished = of(req.socket).filter((exchange) => !isOver(exchange))
      if (unfinished.length >= maximumPipelined) req.socket.destroy()
      if (req.socket.destroyed) return
      exchanges.set(req.socket, [...unfinished, { req, res }])
      const before = unfinished.at(-1)
      if (before === undefined) begin()
      else before.res.once('close', () => void (req.socket.destroyed || begin()))
    },
    mayAnswer: (socket) => of(socket).every((exchange) => isOver(exchange) || isBeingRead(exchange)),
  }
}

/** Read in full, not answered yet. */
const isPending = ({ req, res }: Exchange): boolean => req.complete && !res.writableEnded

const isBeingRead = ({ req, res }: Exchange): boolean => !req.complete && !res.headersSent

/** The whole answer has been handed to the kernel. */
const isOver = ({ req, res }: Exchange): boolean => req.complete && res.writableFinished
