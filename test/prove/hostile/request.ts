// One hostile request: what goes over a connection, and what may come back.

import type { Operation } from '../../../src/operations/operation.ts'

/** Whose shape an error has. `any`: a path that may lead anywhere. */
export type Face = 'rest' | 'mcp' | 'oauth' | 'page' | 'any'

/** Bytes to write, milliseconds to wait, or what happens to the connection. `stop reading` lasts until the given number of milliseconds. */
export type Step = Buffer | number | 'half-close' | 'destroy' | 'stop reading' | 'read on'

export type HostileRequest = {
  kind: string
  face: Face
  /** It is a request of this operation, so the answer is one that the operation declares. */
  operation?: Operation | undefined
  steps: Step[]
  isHead: boolean
  /** How many answers may come; fewer than the first number is an answer that is missing. */
  answers: [least: number, most: number]
  /** It needs a connection of its own, which is watched until it is closed. */
  isAlone: boolean
  /** The server ends it by a time limit of its own: it goes to the slow lane. */
  isSlow: boolean
}

export type Sent = {
  method: string
  target: string
  /** Written as they are, in this order; a Content-Length is added where there is a body and no header about its length. */
  headers: [name: string, value: string | Buffer][]
  body?: string | Buffer | undefined
}

export function bytesOf({ method, target, headers, body }: Sent): Buffer {
  const content = body === undefined ? undefined : Buffer.from(body)
  const isFramed = headers.some(([name]) => /^(content-length|transfer-encoding)$/i.test(name))
  const isNamed = headers.some(([name]) => /^host$/i.test(name))
  const lines: (string | Buffer)[] = [`${method} ${target} HTTP/1.1\r\n`]
  if (!isNamed) lines.push('Host: 127.0.0.1\r\n')
  for (const [name, value] of headers) lines.push(`${name}: `, value, '\r\n')
  if (content !== undefined && !isFramed) lines.push(`Content-Length: ${content.length}\r\n`)
  lines.push('\r\n', ...(content === undefined ? [] : [content]))
  // Header text as Latin 1, byte by byte, as HTTP has it.
  return Buffer.concat(lines.map((line) => (typeof line === 'string' ? Buffer.from(line, 'latin1') : line)))
}

/** An ordinary exchange: one request, one answer, and the connection may be used again. */
export const exchange = (
  kind: string,
  face: Face,
  sent: Sent,
  more: Partial<Pick<HostileRequest, 'operation' | 'isAlone'>> = {},
): HostileRequest => ({
  kind,
  face,
  steps: [bytesOf(sent)],
  isHead: sent.method === 'HEAD',
  answers: [1, 1],
  isAlone: false,
  isSlow: false,
  ...more,
})

/** Bytes on a connection of their own. */
export const raw = (
  kind: string,
  face: Face,
  steps: (Step | string)[],
  answers: [number, number],
  more: Partial<Pick<HostileRequest, 'isSlow' | 'isHead'>> = {},
): HostileRequest => ({
  kind,
  face,
  steps: steps.map((step) =>
    typeof step === 'string' && !words.has(step) ? Buffer.from(step, 'latin1') : (step as Step),
  ),
  isHead: false,
  answers,
  isAlone: true,
  isSlow: false,
  ...more,
})

const words = new Set(['half-close', 'destroy', 'stop reading', 'read on'])
