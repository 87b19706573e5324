// A port that Usher listens on. In come an address and the variables it was set by, out goes a server that answers 503 until it
// is given something to serve, and that finishes what is under way when it is closed.

import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { StartError } from './embedded/start-error.ts'

export type Door = { url: string; serve(listener: RequestListener): void; close(): Promise<void> }

// Requests under way get this long to finish; the children need the rest of the ten seconds a supervisor waits.
const drainMilliseconds = 3_000

/** @throws StartError, whose cause is what listening failed with. */
export async function openDoor(
  { host, port }: { host: string; port: number },
  variables = { host: 'HOST', port: 'PORT' },
): Promise<Door> {
  const notYet: RequestListener = (_req, res) =>
    res.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '1' }).end('{"status":"starting"}\n')
  let listener = notYet
  const server = createServer((req, res) => listener(req, res))
  try {
    await listen(server, host, port)
  } catch (error) {
    throw refusalToListen(error, host, port, variables)
  }
  const { port: bound } = server.address() as AddressInfo

  return {
    url: `http://${host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${bound}`,
    serve(next) {
      listener = next
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      // A connection that was busy when the server closed stays open after its answer, until it is told.
      const tidy = setInterval(() => server.closeIdleConnections(), 50)
      const impatient = setTimeout(() => server.closeAllConnections(), drainMilliseconds)
      await closed
      clearInterval(tidy)
      clearTimeout(impatient)
    },
  }
}

export const isTaken = (error: unknown): boolean =>
  (error as { cause?: NodeJS.ErrnoException }).cause?.code === 'EADDRINUSE'

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
}

function refusalToListen(
  cause: unknown,
  host: string,
  port: number,
  variables: { host: string; port: string },
): unknown {
  const code = (cause as NodeJS.ErrnoException).code
  const refuse = (message: string) => new StartError(message, { cause })
  if (code === 'EADDRINUSE') {
    return refuse(
      `Port ${port} on ${host} is taken by another program. Stop it, or set ${variables.port} to a free port.`,
    )
  }
  if (code === 'EACCES') {
    return refuse(
      `Port ${port} on ${host} needs more rights than this user has. Set ${variables.port} to one above 1023.`,
    )
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return refuse(
      `${variables.host} ${host} is no address of this machine. Set ${variables.host} to 127.0.0.1, or to 0.0.0.0 for all.`,
    )
  }
  return cause
}
