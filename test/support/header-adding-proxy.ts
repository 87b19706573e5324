// A reverse proxy on a loopback port that adds headers, for clients that cannot send Authorization themselves, or serves its target
// below a path. It must change nothing else: not Host or Origin, which are the target's to refuse, nor the names, order or streaming of
// anything.

import { createServer, request } from 'node:http'
import { pipeline } from 'node:stream'
import { listenOnLoopback } from '../../scripts/support/listen.ts'

/** @param stripped a path: what is not below it, the proxy answers itself. */
export async function headerAddingProxy(
  target: string | (() => string),
  added: Record<string, string>,
  stripped = '',
): Promise<{ url: string; close(): Promise<void> }> {
  const proxy = createServer((req, res) => {
    if (!req.url?.startsWith(`${stripped}/`)) return void res.writeHead(404).end()
    const { hostname, port } = new URL(typeof target === 'string' ? target : target())
    const path = req.url.slice(stripped.length)
    // Given as a flat list, headers are written as they stand: node:http adds no Host and merges nothing.
    const headers = [...req.rawHeaders, ...Object.entries(added).flat()]
    const upstream = request({ agent: false, hostname, port, method: req.method, path, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.statusMessage, answer.rawHeaders)
      pipeline(answer, res, () => {})
    })
    // Whoever breaks off takes the other side along, as if there were nothing between them.
    upstream.on('error', () => res.destroy())
    res.on('close', () => upstream.destroy())
    req.pipe(upstream)
  })
  return listenOnLoopback(proxy)
}
