// Reads a JSON body: UTF-8 only, bounded after decompression, and with not many more values than the largest valid input. A
// number that JavaScript cannot represent exactly becomes NaN, which every schema rejects by the name of its field.

import { MIMEType } from 'node:util'
import express, { type Request, type RequestHandler } from 'express'
import { ApiError } from '../../gateway/api-error.ts'
import { validationFailed } from '../../gateway/validation.ts'

// The largest useful body but an import's has 2,900 values: a group of 50 guests with 50 metadata keys each. It is 4 deep, 6 over MCP.
const usual = { bytes: 256 * 1024, values: 10_000 }
const maximumDepth = 10

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** Sets `req.body` to the parsed body; undefined if there is none or its type is not JSON. */
export function readJson({ bytes, values } = usual): RequestHandler {
  const readBytes = express.raw({ type: 'application/json', limit: bytes })
  return (req, res, next) => {
    readBytes(req, res, (error) => {
      if (error) return next(error)
      if (!Buffer.isBuffer(req.body)) return next()
      try {
        const bytes = req.body
        req.body = undefined
        requireUtf8(req)
        req.body = bytes.length === 0 ? {} : parse(decode(bytes), values)
      } catch (error) {
        return next(error)
      }
      next()
    })
  }
}

/** The error for a body that is not JSON; JSON-RPC has an error of its own for it. */
export const isMalformed = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.code === 'malformed_json'

/** The error for a body of too many values or levels; JSON-RPC has an error of its own for it. */
export const isUnbounded = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.code === 'validation_failed'

function requireUtf8(req: Request): void {
  const type = req.headers['content-type'] ?? ''
  if (type === 'application/json') return
  const charset = new MIMEType(type).params.get('charset') ?? 'utf-8'
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

function parse(text: string, maximumValues: number): unknown {
  if (!/^[ \t\r\n]*[[{]/.test(text)) throw malformed('The body is not a JSON object.')
  requireBounded(text, maximumValues)
  const body = parseJson(text)
  // Only long runs of digits can lose precision; they are rare, and a reviver takes ten times as long.
  return /[0-9.]{16}|[eE]-[0-9]{3}/.test(text) ? JSON.parse(text, exactOrNaN) : body
}

/**
 * Counts in the text, because creating so many objects is what costs. Does not check whether the text is JSON.
 * @throws ApiError 422 `validation_failed`
 */
function requireBounded(text: string, maximumValues: number): void {
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

/** A canonical text of the number; undefined where no double can be meant. */
function decimalOf(text: string): string | undefined {
  const [, whole = '', fraction = '', exponent = '0'] = /^-?(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(text) ?? []
  // No number with so many digits is exact in JavaScript.
  if (whole.length + fraction.length > 100) return undefined
  const digits = (whole + fraction).replace(/^0+/, '')
  const significant = digits.replace(/0+$/, '')
  if (significant === '') return '0'
  return `${significant}e${Number(exponent) - fraction.length + digits.length - significant.length}`
}
