// Finds a free port on the loopback address: the preferred one, or any. Another program may take the port before it is used, so the
// caller must be ready to ask again.

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
