// A stand-in for Postmark's API: keeps what the official client sends, and answers as it is told.

import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Models } from 'postmark'
import { onTestFinished } from 'vitest'

export type Call = { method: string; path: string; headers: IncomingHttpHeaders; body: Models.Message }
export type Answer = { status: number; body: unknown } | 'hang up'

export const accepted = (MessageID: string): Answer => ({
  status: 200,
  body: { ErrorCode: 0, Message: 'OK', To: '', SubmittedAt: '2027-01-01T00:00:00Z', MessageID },
})
export const refused = (status: number, ErrorCode: number, Message = 'no'): Answer => ({
  status,
  body: { ErrorCode, Message },
})

export async function startPostmark(answer: Answer) {
  const calls: Call[] = []
  const server = createServer(async (request, response) => {
    const body = JSON.parse((await text(request)) || '{}') as Models.Message
    calls.push({ method: `${request.method}`, path: `${request.url}`, headers: request.headers, body })
    if (answer === 'hang up') return request.socket.destroy()
    const { status, body: content } = answer
    response.writeHead(status, { 'content-type': typeof content === 'string' ? 'text/html' : 'application/json' })
    response.end(typeof content === 'string' ? content : JSON.stringify(content))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { calls, options: { requestHost: `127.0.0.1:${port}`, useHttps: false } }
}
