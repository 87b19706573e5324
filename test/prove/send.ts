// One request to one of the API processes, as an integrator or a browser would send it.

import { Agent, request } from 'undici'
import { elsewhere } from '../support/event-page.ts'

export type Answer = { status: number; body: { data?: Record<string, unknown>; error?: { code: string } } }

export type Send = (
  api: number,
  key: string,
  method: string,
  path: string,
  body?: unknown,
  idempotencyKey?: string,
) => Promise<Answer>

/** @returns a function that rejects where there is no answer. */
export function createSend(apiUrls: string[], timeoutMs = 6_000): Send {
  const dispatcher = new Agent({ connect: { timeout: 2_000 } })
  return async (api, key, method, path, body, idempotencyKey) => {
    const response = await request(`${apiUrls[api % apiUrls.length]}/api/v1${path}`, {
      dispatcher,
      method: method as 'GET',
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        Authorization: `Bearer ${key}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: response.statusCode, body: JSON.parse(await response.body.text()) }
  }
}

export type Page = { status: number; text: string; location: string }

/** Opens a page, or sends a form of it. The idempotency key is for the proxies alone, which note what they copy. */
export type Press = (api: number, path: string, fields?: Record<string, string>, mark?: string) => Promise<Page>

/** @returns a function that rejects where there is no answer, or no whole one. */
export function createPress(apiUrls: string[], timeoutMs = 6_000): Press {
  const dispatcher = new Agent({ connect: { timeout: 2_000 } })
  return async (api, path, fields, mark) => {
    const response = await request(`${apiUrls[api % apiUrls.length]}${path}`, {
      dispatcher,
      method: fields === undefined ? 'GET' : 'POST',
      signal: AbortSignal.timeout(timeoutMs),
      headers: {
        'Content-Type': 'application/x-www-form-urlencoded',
        'X-Forwarded-For': elsewhere(),
        ...(mark !== undefined && { 'Idempotency-Key': mark }),
      },
      ...(fields !== undefined && { body: new URLSearchParams(fields).toString() }),
    })
    const location = String(response.headers.location ?? '')
    return { status: response.statusCode, text: await response.body.text(), location }
  }
}
