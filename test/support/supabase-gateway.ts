// Supabase's gateway in front of PostgREST, as far as Usher meets it: the Data API is below /rest/v1, and only for who brings the
// project's publishable key.

import { createServer, request } from 'node:http'
import { pipeline } from 'node:stream'
import { listenOnLoopback } from '../../scripts/support/listen.ts'

export async function startSupabaseGateway(
  dataApiUrl: string,
  publishableKey: string,
  ownPort = 0,
  /** Told of each request. @returns false to refuse it */
  onRequest: (path: string) => unknown = () => {},
): Promise<{ url: string; close(): Promise<void> }> {
  const { hostname, port } = new URL(dataApiUrl)
  const server = createServer((req, res) => {
    const [, path] = /^\/rest\/v1(\/.*)$/.exec(req.url ?? '') ?? []
    if (onRequest(path ?? '') === false || path === undefined) return void res.writeHead(404).end()
    if (req.headers.apikey !== publishableKey) return void res.writeHead(401).end('{"message":"No API key found"}')
    const upstream = request({ hostname, port, method: req.method, path, headers: req.headers }, (answer) => {
      if (res.destroyed) return void answer.destroy()
      res.writeHead(answer.statusCode ?? 502, answer.headers)
      pipeline(answer, res, () => {})
    })
    upstream.on('error', () => res.destroy())
    req.pipe(upstream)
  })
  return listenOnLoopback(server, ownPort)
}
