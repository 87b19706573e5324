// The real app on a free port, for the shared stack and for tests that need one of their own (another log, other limits).

import { createServer } from 'node:http'
import type { Logger } from 'pino'
import { createDataApi } from '../../src/gateway/data-api.ts'
import { createTokens } from '../../src/gateway/tokens.ts'
import { type AppParts, createApp } from '../../src/http/server.ts'
import { listenOnLoopback } from './listen.ts'

export async function serveApp({
  dataApiUrl,
  jwtSecret,
  log,
  publicUrl,
  ...parts
}: { dataApiUrl: string; jwtSecret: string; log: Logger; publicUrl?: string } & Partial<AppParts>): Promise<{
  url: string
  close(): Promise<void>
}> {
  const server = createServer()
  const listening = await listenOnLoopback(server)
  const tokens = await createTokens({ secret: jwtSecret }, publicUrl ?? listening.url)
  const app = createApp({
    dataApi: createDataApi(dataApiUrl, tokens),
    tokens,
    log,
    allowedHosts: [],
    trustProxy: false,
    stores: {},
    mailFrom: 'tickets@localhost',
    publicUrl,
    ...parts,
  })
  server.on('request', app)
  return listening
}
