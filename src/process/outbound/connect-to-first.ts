// Connects to the first address that accepts, much as RFC 8305 (Happy Eyeballs): attempts start one after the other, so that a dead
// address does not use up the time of a live one. IPv4 goes first, since every network has it. All other attempts are closed.

import { isIP, connect as openTcp, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as openTls } from 'node:tls'

export type Target = {
  /** At least one. */
  addresses: string[]
  port: number
  /** The host name or address that the certificate must be valid for. Null: no TLS. */
  certifiedAs: string | null
}

// Enough for a handshake around the world.
const headStartMs = 1_000
const maxAddresses = 4

/** @throws the error of the first address, if none accepts; the reason of `until` if that aborts. */
export async function connectToFirst({ addresses, ...target }: Target, until: AbortSignal): Promise<Socket> {
  const decided = new AbortController()
  const signal = AbortSignal.any([until, decided.signal])
  const attempts: Promise<Socket>[] = []
  for (const address of addresses.toSorted((a, b) => isIP(a) - isIP(b)).slice(0, maxAddresses)) {
    const start = sleep(attempts.length * headStartMs, undefined, { signal })
    // Starts after its head start, or as soon as the attempt before it has failed.
    const turn = Promise.race([start, attempts.at(-1)?.then(() => start, ignore) ?? start])
    attempts.push(turn.then(() => open(address, target, signal)))
  }
  try {
    const first = await Promise.any(attempts)
    for (const attempt of attempts) attempt.then((socket) => socket !== first && socket.destroy()).catch(() => {})
    return first
  } catch (error) {
    throw until.aborted ? until.reason : (error as AggregateError).errors[0]
  } finally {
    decided.abort()
  }
}

const ignore = () => {}

function open(address: string, { port, certifiedAs }: Omit<Target, 'addresses'>, signal: AbortSignal): Promise<Socket> {
  signal.throwIfAborted()
  const socket =
    certifiedAs === null
      ? openTcp({ host: address, port })
      : openTls({
          host: address,
          port,
          ...(isIP(certifiedAs) === 0 && { servername: certifiedAs }),
          ALPNProtocols: ['http/1.1'],
          // Explicit, because NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise turn it off.
          rejectUnauthorized: true,
        })
  socket.setNoDelay(true)
  return new Promise((resolve, reject) => {
    const abort = () => {
      socket.destroy()
      reject(signal.reason)
    }
    signal.addEventListener('abort', abort, { once: true })
    const fail = (error: Error) => {
      signal.removeEventListener('abort', abort)
      reject(error)
    }
    socket.once('error', fail)
    socket.once(certifiedAs === null ? 'connect' : 'secureConnect', () => {
      signal.removeEventListener('abort', abort)
      socket.off('error', fail)
      resolve(socket)
    })
  })
}
