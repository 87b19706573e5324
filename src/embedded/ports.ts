// Free ports on the loopback address. Takes a port that would be welcome, gives back that one or another.
// A port is only known to be free at the moment of asking: whoever uses it must be ready to ask again.

import { createServer } from 'node:net'

export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined) {
    const port = await tryPort(preferred)
    if (port !== null) return port
  }
  const port = await tryPort(0)
  if (port === null) throw new Error('no free port on 127.0.0.1')
  return port
}

function tryPort(wanted: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(null))
    server.listen(wanted, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : null))
    })
  })
}
