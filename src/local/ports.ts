// Finds a free port on the loopback address: the preferred one, or any. Another program may take the port before it is used, so the
// caller must be ready to ask again.

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'

export async function freePort(preferred = 0): Promise<number> {
  const server = createServer().listen(preferred, '127.0.0.1')
  try {
    await once(server, 'listening')
  } catch (error) {
    if (preferred !== 0) return freePort()
    throw error
  }
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
