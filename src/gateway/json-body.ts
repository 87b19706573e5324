// Reads a JSON body, or refuses it: UTF-8 only, 256 KiB at most also after inflating, and no more values than the largest input
// has. What JavaScript cannot keep of it becomes NaN, which every schema refuses by the name of its field.

import { MIMEType } from 'node:util'
import express, { type Request, type RequestHandler } from 'express'
import { Refusal } from './refusal.ts'
import { requireBounded } from './validation.ts'

const readBytes = express.raw({ type: 'application/json', limit: '256kb' })
const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Leaves the parsed body at `req.body`, and undefined there when there is none or its type is not JSON. */
export const readJson: RequestHandler = (req, res, next) => {
  readBytes(req, res, (error) => {
    if (error) return next(error)
    if (!Buffer.isBuffer(req.body)) return next()
    try {
      const bytes = req.body
      req.body = undefined
      requireUtf8(req)
      req.body = bytes.length === 0 ? {} : parse(decode(bytes))
    } catch (refusal) {
      return next(refusal)
    }
    next()
  })
}

/** What a body is refused with that is no JSON; JSON-RPC has an error of its own for it. */
export const isMalformed = (error: unknown): error is Refusal =>
  error instanceof Refusal && error.code === 'malformed_json'

function requireUtf8(req: Request): void {
  const charset = new MIMEType(req.headers['content-type'] ?? '').params.get('charset') ?? 'utf-8'
  if (/^utf-?8$/i.test(charset)) return
  throw new Refusal(415, 'unsupported_media_type', 'The body must be JSON in UTF-8.')
}

function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw malformed('The body is not valid UTF-8.')
  }
}

function parse(text: string): unknown {
  if (!/^[ \t\r\n]*[[{]/.test(text)) throw malformed('The body is not a JSON object.')
  const body = parseJson(text)
  requireBounded(body)
  // Only a long run of digits can lose some; it is rare, and reviving takes ten times as long.
  return /[0-9.]{16}|[eE]-[0-9]{3}/.test(text) ? JSON.parse(text, exactOrNaN) : body
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw malformed('The body is not valid JSON.')
  }
}

const malformed = (message: string) => new Refusal(400, 'malformed_json', message)

function exactOrNaN(_name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value
  return decimalOf(context.source) === decimalOf(String(value)) ? value : Number.NaN
}

/** The same text for the same number, however it is written; undefined where no double can be meant. */
function decimalOf(text: string): string | undefined {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  // Nobody writes a number with so many digits that JavaScript keeps.
  if (whole.length + fraction.length > 100) return undefined
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  return `${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}
