// A port that Usher listens on: answers 503 until it is given something to serve, bounds what connections may cost, and finishes
// what is under way when it is closed.

import { randomUUID } from 'node:crypto'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerOptions,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { ApiError, unavailable } from '../gateway/api-error.ts'
import { StartError } from '../start-error.ts'
import { type Connections, limitConnections } from './connections.ts'

export type HttpListener = { url: string; serve(listener: RequestListener): void; close(): Promise<void> }

export type ListenerOptions = {
  host: string
  port: number
  maxConnections?: number
  /** How long an idle connection is kept for the next request. */
  keepAliveSeconds?: number
  timeouts?: Partial<Timeouts>
}

/** In milliseconds. */
type Timeouts = {
  /** For the headers of a request, from its first byte or from the connection. */
  headers: number
  /** For a whole request, its body included. */
  request: number
  /** For a connection on which no byte moves in either direction: an answer that is not read, above all. */
  silence: number
}

// No call takes longer than `silence`: the gateway gives up on the database well before.
const defaultTimeouts: Timeouts = { headers: 15_000, request: 30_000, silence: 30_000 }

// Requests under way get this long to finish; the children need the rest of the ten seconds a supervisor waits.
const drainMilliseconds = 3_000

/** @throws StartError, whose cause is what listening failed with. */
export async function openListener(
  { host, port, maxConnections = 2_000, keepAliveSeconds = 5, timeouts = {} }: ListenerOptions,
  variables = { host: 'HOST', port: 'PORT' },
): Promise<HttpListener> {
  const notYet: RequestListener = (req, res) => {
    if (!/^\/(health|ready)\b/.test(req.url ?? '')) return refuse(res, unavailable(new Error('It is still starting.')))
    res.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '1' }).end('{"status":"starting"}\n')
  }
  let listener = notYet
  const { headers, request, silence } = { ...defaultTimeouts, ...timeouts }
  const options: ServerOptions = {
    headersTimeout: headers,
    requestTimeout: request,
    keepAliveTimeout: keepAliveSeconds * 1000,
    connectionsCheckingInterval: Math.min(5_000, headers),
    // Node answers a missing Host by itself, with no body: `refuseWithoutHost` does instead.
    requireHostHeader: false,
  }
  const server = createServer(options)
  // Restarted by every byte that is read or taken by the other side; what is left of an answer then goes with its connection.
  server.timeout = silence
  const connections = limitConnections(server, maxConnections)
  server.on('request', (req, res) => {
    connections.admit(req, res, () => {
      if (!refuseWithoutHost(req, res)) listener(req, res)
    })
  })
  server.on('checkExpectation', refuseExpectation)
  server.on('clientError', (error, socket) => refuseUnreadable(error, socket as Socket, connections))
  try {
    await listen(server, host, port)
  } catch (error) {
    throw refusalToListen(error, host, port, variables)
  }
  const { port: bound } = server.address() as AddressInfo

  return {
    url: `http://${host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${bound}`,
    serve(next) {
      listener = next
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      // A connection that was busy when the server closed stays open after its answer, until it is told.
      const tidy = setInterval(() => server.closeIdleConnections(), 50)
      const impatient = setTimeout(() => server.closeAllConnections(), drainMilliseconds)
      await closed
      clearInterval(tidy)
      clearTimeout(impatient)
    },
  }
}

// What Node would answer by itself, with an empty body. It is not logged: whoever sends rubbish must not fill the log.

function refuseUnreadable(error: NodeJS.ErrnoException, socket: Socket, connections: Connections): void {
  // Nobody listens any more, or an answer is under way that this one must not be taken for: a write may just be committed.
  if (error.code === 'ECONNRESET' || !socket.writable || !connections.mayAnswer(socket)) return void socket.destroy()
  const { head, body } = answerTo(refusalOfParser(error.code))
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.end(`HTTP/1.1 ${statusLine(body.status)}\r\n${lines.join('')}\r\n${body.text}`, () => socket.destroy())
}

function refusalOfParser(code: string | undefined): ApiError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ApiError(431, 'headers_too_large', 'The headers are larger than 16 KiB.')
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError(413, 'payload_too_large', 'The body has too many chunk extensions.')
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ApiError(408, 'request_timeout', 'The request did not arrive in time.', { retryable: true })
    default:
      return new ApiError(400, 'bad_request', 'The request cannot be read.')
  }
}

function refuseWithoutHost(req: IncomingMessage, res: ServerResponse): boolean {
  if (req.headers.host !== undefined || req.httpVersion !== '1.1') return false
  refuse(res, new ApiError(400, 'bad_request', 'The request has no Host header.'))
  return true
}

function refuseExpectation(_req: IncomingMessage, res: ServerResponse): void {
  refuse(
    res,
    new ApiError(417, 'expectation_failed', 'The Expect header asks for what this server does not do.', {
      hint: 'Send Expect: 100-continue, or no such header.',
    }),
  )
}

function refuse(res: ServerResponse, refusal: ApiError): void {
  const { head, body } = answerTo(refusal)
  res.writeHead(body.status, head).end(body.text)
}

function answerTo(refusal: ApiError) {
  const id = randomUUID()
  const text = JSON.stringify({ error: refusal.body(id) })
  return {
    head: {
      ...refusal.headers,
      'Content-Type': 'application/json; charset=utf-8',
      'Content-Length': String(Buffer.byteLength(text)),
      'X-Request-Id': id,
      Connection: 'close',
    },
    body: { status: refusal.status, text },
  }
}

const statusLine = (status: number): string => `${status} ${STATUS_CODES[status]}`

export const isTaken = (error: unknown): boolean =>
  (error as { cause?: NodeJS.ErrnoException }).cause?.code === 'EADDRINUSE'

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
}

function refusalToListen(
  cause: unknown,
  host: string,
  port: number,
  variables: { host: string; port: string },
): unknown {
  const code = (cause as NodeJS.ErrnoException).code
  const refuse = (message: string) => new StartError(message, { cause })
  if (code === 'EADDRINUSE') {
    return refuse(
      `Port ${port} on ${host} is taken by another program. Stop it, or set ${variables.port} to a free port.`,
    )
  }
  if (code === 'EACCES') {
    return refuse(
      `Port ${port} on ${host} needs more rights than this user has. Set ${variables.port} to one above 1023.`,
    )
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return refuse(
      `${variables.host} ${host} is no address of this machine. Set ${variables.host} to 127.0.0.1, or to 0.0.0.0 for all.`,
    )
  }
  return cause
}
