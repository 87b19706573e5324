// Connects to the first of some addresses that lets us, much as RFC 8305 proposes: one after the other with a head start, for one
// that is dead must not use up the time of one that is not. IPv4 comes first, which every network has. Out goes the connection;
// every other is closed.

import { isIP, connect as openTcp, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect as openTls } from 'node:tls'

export type Target = {
  /** One at least. */
  addresses: string[]
  port: number
  /** Whom the certificate has to be for: a name, or one of the addresses. Null: there is no TLS. */
  certifiedAs: string | null
}

// Enough for a handshake with the other end of the world.
const headStartMilliseconds = 1_000
const mostAddresses = 4

/** @throws what the first address answered, if none lets us; the reason of `until` when that ends it. */
export async function connectToFirst({ addresses, ...target }: Target, until: AbortSignal): Promise<Socket> {
  const decided = new AbortController()
  const signal = AbortSignal.any([until, decided.signal])
  const attempts: Promise<Socket>[] = []
  for (const address of addresses.toSorted((a, b) => isIP(a) - isIP(b)).slice(0, mostAddresses)) {
    const start = sleep(attempts.length * headStartMilliseconds, undefined, { signal })
    // Whoever comes before has a head start, unless it has failed.
    const turn = Promise.race([start, attempts.at(-1)?.then(() => start, noMatter) ?? start])
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

const noMatter = () => {}

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
          // Said here, for NODE_TLS_REJECT_UNAUTHORIZED=0 would otherwise have the last word.
          rejectUnauthorized: true,
        })
  socket.setNoDelay(true)
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      socket.destroy()
      reject(signal.reason)
    }
    signal.addEventListener('abort', giveUp, { once: true })
    const fail = (error: Error) => {
      signal.removeEventListener('abort', giveUp)
      reject(error)
    }
    socket.once('error', fail)
    socket.once(certifiedAs === null ? 'connect' : 'secureConnect', () => {
      signal.removeEventListener('abort', giveUp)
      socket.off('error', fail)
      resolve(socket)
    })
  })
}
