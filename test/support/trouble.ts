// The API behind a network that breaks: each trouble happens to one request, in this order, then none.

import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { inject, onTestFinished } from 'vitest'
import { listenOnLoopback } from '../../scripts/support/listen.ts'

type Trouble = (req: IncomingMessage, res: ServerResponse, forward: (arrived: () => void) => void) => void

export const lostRequest: Trouble = (req) => req.socket.destroy()
/** What the request did is done. */
export const lostAnswer: Trouble = (req, _, forward) => forward(() => req.socket.destroy())
/** Of a proxy. */
export const errorPage: Trouble = (_, res) => res.writeHead(502, { 'Retry-After': '0' }).end('<html>Bad Gateway</html>')

export async function behindTrouble(...troubles: Trouble[]): Promise<string> {
  const { hostname, port } = new URL(inject('apiUrl'))
  const server = createServer((req, res) => {
    const forward = (use: (answer: IncomingMessage) => void) => {
      const sent = request({ hostname, port, method: req.method, path: req.url, headers: req.headers }, use)
      req.pipe(sent)
    }
    const trouble = troubles.shift()
    if (trouble !== undefined) return trouble(req, res, forward)
    forward((answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(res)
    })
  })
  const { url, close } = await listenOnLoopback(server)
  onTestFinished(close)
  return url
}
