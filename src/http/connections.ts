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
  /** Of the open connections, the oldest first. */
  const addresses = new Map<Socket, string>()
  const exchanges = new WeakMap<Socket, Exchange[]>()

  const of = (socket: Socket): Exchange[] => exchanges.get(socket) ?? []

  /** Idle, still sending its request, or not reading its answer: no request is being handled on it. */
  function waitsForClient(socket: Socket): boolean {
    const current = of(socket).find((exchange) => !isOver(exchange))
    return current === undefined || !isPending(current)
  }

  function oldestToClose(): Socket | undefined {
    const byAddress = [...Map.groupBy(addresses.keys(), (socket) => addresses.get(socket)).values()]
    return byAddress
      .sort((a, b) => b.length - a.length)
      .flat()
      .find(waitsForClient)
  }

  server.on('connection', (socket: Socket) => {
    if (addresses.size >= maximum) {
      const closed = oldestToClose()
      if (closed === undefined) return void socket.destroy()
      closed.destroy()
      // `close` is emitted a moment later; the place is free now.
      addresses.delete(closed)
    }
    addresses.set(socket, ipKeyGenerator(socket.remoteAddress ?? ''))
    socket.once('close', () => addresses.delete(socket))
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
