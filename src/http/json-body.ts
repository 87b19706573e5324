// Reads a JSON body, or refuses it: UTF-8 only, 256 KiB at most also after inflating, and no more values than the largest input
// has. What JavaScript cannot keep of it becomes NaN, which every schema refuses by the name of its field.

import { MIMEType } from 'node:util'
import express, { type Request, type RequestHandler } from 'express'
import { ApiError } from '../gateway/api-error.ts'
import { validationFailed } from '../gateway/validation.ts'

// The largest body there is a use for has 2,900 values: a group of 50 guests with 50 metadata keys each. It is 4 deep, 6 in MCP.
const maximumValues = 10_000
const maximumDepth = 10

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
export const isMalformed = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.code === 'malformed_json'

function requireUtf8(req: Request): void {
  const charset = new MIMEType(req.headers['content-type'] ?? '').params.get('charset') ?? 'utf-8'
  if (/^utf-?8$/i.test(charset)) return
  throw new ApiError(415, 'unsupported_media_type', 'The body must be JSON in UTF-8.')
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
  requireBounded(text)
  const body = parseJson(text)
  // Only a long run of digits can lose some; it is rare, and reviving takes ten times as long.
  return /[0-9.]{16}|[eE]-[0-9]{3}/.test(text) ? JSON.parse(text, exactOrNaN) : body
}

/**
 * Counted in the text, because making so many objects is what costs. Whether it is JSON is not asked here.
 * @throws ApiError 422 `validation_failed`
 */
function requireBounded(text: string): void {
  let [values, depth] = [0, 0]
  for (let i = 0; i < text.length; i++) {
    switch (text[i]) {
      case '"':
        while (++i < text.length && text[i] !== '"') if (text[i] === '\\') i++
        break
      case '{':
      case '[':
        depth += 1
        values += 1
        if (depth > maximumDepth) throw bodyMust(`be nested at most ${maximumDepth} deep`)
        break
      case '}':
      case ']':
        depth -= 1
        break
      case ',':
        values += 1
    }
    if (values > maximumValues) throw bodyMust(`hold at most ${maximumValues} values`)
  }
}

const bodyMust = (rule: string) => validationFailed([{ param: 'body', message: `must ${rule}` }])

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw malformed('The body is not valid JSON.')
  }
}

const malformed = (message: string) => new ApiError(400, 'malformed_json', message)

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
