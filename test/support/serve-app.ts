// The real app on a free port, for the shared stack and for tests that need one of their own (another log, other limits).

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import { createDataApi } from '../../src/gateway/data-api.ts'
import { createTokens } from '../../src/gateway/tokens.ts'
import { type AppParts, createApp } from '../../src/server.ts'

export async function serveApp({
  dataApiUrl,
  jwtSecret,
  log,
  ...parts
}: { dataApiUrl: string; jwtSecret: string; log: Logger } & Partial<AppParts>): Promise<{
  url: string
  close(): Promise<void>
}> {
  const app = createApp({
    dataApi: createDataApi(dataApiUrl),
    tokens: await createTokens({ secret: jwtSecret }),
    log,
    allowedHosts: [],
    trustProxy: false,
    stores: {},
    ...parts,
  })
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
