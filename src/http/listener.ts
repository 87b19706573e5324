// A port that Usher listens on: answers 503 until it has something to serve, limits what connections may cost, and finishes
// requests in progress when it is closed.

import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse, STATUS_CODES } from 'node:http'
import { type AddressInfo, Server, type Socket } from 'node:net'
import { ApiError, unavailable } from '../gateway/api-error.ts'
import { StartError } from '../process/start-error.ts'
import { type Connections, limitConnections } from './connections.ts'

export type HttpListener = { url: string; serve(listener: RequestListener): void; close(): Promise<void> }

export type ListenerOptions = {
  host: string
  port: number
  maxConnections?: number
  /** How long an idle connection is kept open. */
  keepAliveSeconds?: number
  timeouts?: Partial<typeof defaultTimeouts>
}

const defaultTimeouts = {
  /** For the headers of a request, from its first byte or from the connection. */
  headersMs: 15_000,
  /** For a whole request, including its body. */
  requestMs: 30_000,
  /**
   * For a connection on which no byte moves in either direction, above all an answer that is not read. No call takes
   * longer: the gateway gives up on the database well before.
   */
  idleMs: 30_000,
}

// Requests in progress get this long to finish; the child processes need the rest of the ten seconds that a supervisor waits.
const drainMs = 3_000
// Within this time a busy proxy uses each of its idle connections once more, and the answer closes it. Closed at once, they cut off three of
// 200 requests a second.
const idleDrainMs = 250

/** Settings of the address, for messages. */
type Variables = { host: string; port: string }

/** @throws StartError, with the error of `listen` as its cause. */
export async function openListener(
  { host, port, maxConnections = 2_000, keepAliveSeconds = 5, timeouts = {} }: ListenerOptions,
  variables: Variables = { host: 'HOST', port: 'PORT' },
): Promise<HttpListener> {
  const answerStarting: RequestListener = (req, res) => {
    if (!/^\/(health|ready)\b/.test(req.url ?? '')) return refuse(res, unavailable(new Error('It is still starting.')))
    res.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '1' }).end('{"status":"starting"}\n')
  }
  let listener = answerStarting
  const { headersMs, requestMs, idleMs } = { ...defaultTimeouts, ...timeouts }
  const server = createServer({
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: keepAliveSeconds * 1000,
    connectionsCheckingInterval: Math.min(5_000, headersMs),
    // Node would answer a missing Host without a body.
    requireHostHeader: false,
  })
  // Restarted by every byte that moves; when it runs out, the rest of an answer is dropped with its connection.
  server.timeout = idleMs
  const connections = limitConnections(server, maxConnections)
  const answers = new Set<ServerResponse>()
  let isClosing = false
  server.on('request', (req, res) => {
    answers.add(res)
    res.once('close', () => answers.delete(res))
    if (isClosing) endConnection(res)
    connections.admit(req, res, () => {
      const lacksHost = req.headers.host === undefined && req.httpVersion === '1.1'
      if (lacksHost) refuse(res, new ApiError(400, 'bad_request', 'The request has no Host header.'))
      else listener(req, res)
    })
  })
  server.on('checkExpectation', refuseExpectation)
  server.on('clientError', (error, socket) => refuseUnreadable(error, socket as Socket, connections))
  server.listen(port, host)
  await once(server, 'listening').catch((error) => {
    throw startErrorOf(error, host, port, variables)
  })
  const { port: bound } = server.address() as AddressInfo

  return {
    url: urlOf({ host, port: bound }),
    serve(next) {
      listener = next
    },
    async close() {
      isClosing = true
      for (const res of answers) endConnection(res)
      // That of node:http closes idle connections at once, on which a request may be on its way.
      const closed = new Promise<void>((resolve) => Server.prototype.close.call(server, () => resolve()))
      const closeIdle = setInterval(() => server.closeIdleConnections(), idleDrainMs)
      const forceClose = setTimeout(() => server.closeAllConnections(), drainMs)
      await closed
      clearInterval(closeIdle)
      clearTimeout(forceClose)
    },
  }
}

/** Asks the client to send nothing more on this connection. */
function endConnection(res: ServerResponse): void {
  if (!res.headersSent) res.setHeader('Connection', 'close')
}

// Errors that Node would answer with an empty body. They are not logged: malformed requests must not fill the log.

function refuseUnreadable(error: NodeJS.ErrnoException, socket: Socket, connections: Connections): void {
  // The client is gone, or would read this as the answer to another request, perhaps a write that is being committed.
  if (error.code === 'ECONNRESET' || !socket.writable || !connections.mayAnswer(socket)) return void socket.destroy()
  const answer = apiErrorOfParser(error.code)
  const { headers, text } = answerTo(answer)
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const statusLine = `HTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status]}\r\n`
  socket.end(`${statusLine}${lines.join('')}\r\n${text}`, () => socket.destroy())
}

function apiErrorOfParser(code: string | undefined): ApiError {
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

function refuseExpectation(_req: IncomingMessage, res: ServerResponse): void {
  refuse(
    res,
    new ApiError(417, 'expectation_failed', 'The expectation in the Expect header is not supported.', {
      hint: 'Send Expect: 100-continue, or leave the header out.',
    }),
  )
}

function refuse(res: ServerResponse, error: ApiError): void {
  const { headers, text } = answerTo(error)
  res.writeHead(error.status, headers).end(text)
}

function answerTo(error: ApiError): { headers: Record<string, string>; text: string } {
  const id = randomUUID()
  const text = JSON.stringify({ error: error.body(id) })
  const headers = {
    ...error.headers,
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Length': String(Buffer.byteLength(text)),
    'X-Request-Id': id,
    Connection: 'close',
  }
  return { headers, text }
}

export const isTaken = (error: unknown): boolean =>
  (error as { cause?: NodeJS.ErrnoException }).cause?.code === 'EADDRINUSE'

function startErrorOf(cause: NodeJS.ErrnoException, host: string, port: number, variables: Variables): Error {
  const noAddress = `${variables.host} ${host} is not an address of this machine. Set ${variables.host} to 127.0.0.1, or to 0.0.0.0 for all.`
  const messages: Record<string, string> = {
    EADDRINUSE: `Another program uses port ${port} on ${host}. Stop it, or set ${variables.port} to a free port.`,
    EACCES: `This user cannot use port ${port} on ${host}. Set ${variables.port} to one above 1023.`,
    EADDRNOTAVAIL: noAddress,
    ENOTFOUND: noAddress,
  }
  const message = messages[cause.code ?? '']
  return message === undefined ? cause : new StartError(message, { cause })
}

/** By which this machine reaches a listener. */
export const urlOf = ({ host, port }: { host: string; port: number }): string =>
  `http://${host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${port}`
