// The real app on a free port, for the shared stack and for tests that need one of their own (another log, other limits).

import { createServer, type RequestListener } from 'node:http'
import type { Logger } from 'pino'
import { type AppParts, createApp } from '../../src/cli/app.ts'
import { DataApi } from '../../src/gateway/data-api.ts'
import { gatewayRpc } from '../../src/gateway/gateway-rpc.ts'
import { createTokens } from '../../src/gateway/tokens.ts'
import { createRequestLog } from '../../src/http/request-log.ts'
import { listenOnLoopback } from './listen.ts'

type Parts = { dataApiUrl: string; jwtSecret: string; log: Logger; publicUrl?: string } & Partial<AppParts>

export async function serveApp(parts: Parts): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer()
  const listening = await listenOnLoopback(server)
  server.on('request', await makeApp(parts, listening.url))
  return listening
}

/** @param url where it is served. */
export async function makeApp(
  { dataApiUrl, jwtSecret, log, publicUrl, ...parts }: Parts,
  url: string,
): Promise<RequestListener> {
  const tokens = await createTokens({ secret: jwtSecret }, publicUrl ?? url)
  const dataApi = new DataApi({ url: dataApiUrl }, tokens)
  return createApp({
    dataApi,
    tokens,
    log,
    requestLog: createRequestLog(gatewayRpc(dataApi, tokens), log),
    allowedHosts: [],
    trustProxy: false,
    stores: {},
    mailFrom: 'tickets@localhost',
    publicUrl,
    ...parts,
  })
}
