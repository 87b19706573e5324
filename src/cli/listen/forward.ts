// Posts one webhook to a receiver, with the headers and the body that the courier sends. Never rejects, and follows no redirect.

import * as http from 'node:http'
import * as https from 'node:https'
import { signWebhook, type UnsignedWebhook } from '../../courier/sign-webhook.ts'

// As the courier has it.
const timeoutMs = 15_000

/** @returns the status, or why there was none */
export function forward(receiver: URL, webhook: UnsignedWebhook): Promise<number | string> {
  const { headers, body } = signWebhook(webhook)
  const { request } = receiver.protocol === 'https:' ? https : http
  const signal = AbortSignal.timeout(timeoutMs)
  return new Promise((resolve) => {
    request(receiver, { method: 'POST', headers, signal }, (response) => {
      response.on('error', () => {}).resume()
      resolve(response.statusCode ?? 0)
    })
      .on('error', (error: NodeJS.ErrnoException) =>
        resolve(signal.aborted ? 'time-out' : (error.code ?? error.message)),
      )
      .end(body)
  })
}
