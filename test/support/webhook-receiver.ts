// A customer's endpoint on a loopback port: records what is posted to it and answers as a test says. It must not trust the
// sender's code: the library of Standard Webhooks decides what is genuine.

import type { IncomingHttpHeaders, RequestListener, ServerResponse } from 'node:http'
import * as http from 'node:http'
import * as https from 'node:https'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'

export type ReceivedWebhook = {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: string
  /** What it says, if it is signed with the secret. Throws if it is not. */
  verified(secret: string): unknown
}

export type Answer = (response: ServerResponse, received: ReceivedWebhook) => void

export type WebhookReceiver = {
  /** Without a path: `${url}/hooks`. */
  url: string
  port: number
  received: ReceivedWebhook[]
  /** How many connections it has accepted, whether or not anything came over them. */
  connections(): number
  /** What it does from now on. Until then: 204. */
  answerWith(answer: Answer): void
  close(): Promise<void>
}

export async function startWebhookReceiver({
  tls,
  host = '127.0.0.1',
}: {
  tls?: { key: string; cert: string }
  host?: string
} = {}): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = []
  let connections = 0
  let answer = status(204)

  const listener: RequestListener = async (request, response) => {
    const body = await text(request)
    const webhook: ReceivedWebhook = {
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      body,
      verified: (secret) => new Webhook(secret).verify(body, request.headers as Record<string, string>),
    }
    received.push(webhook)
    answer(response, webhook)
  }
  const server = tls ? https.createServer(tls, listener) : http.createServer(listener)
  server.on('connection', () => connections++)
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo

  return {
    url: `${tls ? 'https://localhost' : `http://${host.includes(':') ? `[${host}]` : host}`}:${port}`,
    port,
    received,
    connections: () => connections,
    answerWith(next) {
      answer = next
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

/** A whole answer, as a well-behaved endpoint gives it. */
export const status =
  (code: number, headers: http.OutgoingHttpHeaders = {}, body: string | Uint8Array = ''): Answer =>
  (response) => {
    response.writeHead(code, headers).end(body)
  }

/** Takes the webhook and says nothing. */
export const hang: Answer = () => {}

/** Says that all is well, and then a byte now and again for ever. */
export const drip: Answer = (response) => {
  response.writeHead(200)
  const timer = setInterval(() => response.write('.'), 20)
  response.on('close', () => clearInterval(timer))
}

/** Writes for as long as anybody reads. */
export const floodWith =
  (chunk: string): Answer =>
  (response) => {
    const write = () => {
      while (response.write(chunk));
      response.once('drain', write)
    }
    write()
  }

export const reset: Answer = (response) => {
  response.req.socket.resetAndDestroy()
}

/** Bytes in place of HTTP. */
export const raw =
  (bytes: string): Answer =>
  (response) => {
    response.req.socket.end(bytes)
  }
