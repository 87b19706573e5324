// Reads a JSON body: UTF-8 only, bounded after decompression, and with not many more values than the largest valid input. A
// number that JavaScript cannot represent exactly becomes NaN, which every schema rejects by the name of its field.

import { isUtf8 } from 'node:buffer'
import { MIMEType } from 'node:util'
import express, { type RequestHandler } from 'express'
import { ApiError } from '../../gateway/api-error.ts'
import { validationFailed } from '../../gateway/validation.ts'

// The largest useful body but an import's has 2,900 values: a group of 50 guests with 50 metadata keys each. It is 4 deep, 6 over MCP.
const usual = { bytes: 256 * 1024, values: 10_000 }
const maximumDepth = 10

/** Sets `req.body` to the parsed body; undefined if there is none or its type is not JSON. */
export function readJson({ bytes, values } = usual): RequestHandler {
  const readBytes = express.raw({ type: 'application/json', limit: bytes })
  return (req, res, next) => {
    readBytes(req, res, (error) => {
      if (error) return next(error)
      const sent: unknown = req.body
      if (!Buffer.isBuffer(sent)) return next()
      req.body = undefined
      try {
        req.body = parse(sent, req.headers['content-type'] ?? '', values)
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

function parse(sent: Buffer, type: string, maximumValues: number): unknown {
  if (!/^utf-?8$/i.test(new MIMEType(type).params.get('charset') ?? 'utf-8')) {
    throw new ApiError(415, 'unsupported_media_type', 'The body must be JSON in UTF-8.')
  }
  if (sent.length === 0) return {}
  if (!isUtf8(sent)) throw malformed('The body is not valid UTF-8.')
  const text = sent.toString().replace(/^\uFEFF/, '')
  if (!/^[ \t\r\n]*[[{]/.test(text)) throw malformed('The body is not a JSON object.')
  requireBounded(text, maximumValues)
  try {
    // Only long runs of digits can lose precision; they are rare, and a reviver takes ten times as long.
    return /[0-9.]{16}|[eE]-[0-9]{3}/.test(text) ? JSON.parse(text, exactOrNaN) : JSON.parse(text)
  } catch {
    throw malformed('The body is not valid JSON.')
  }
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

const malformed = (message: string) => new ApiError(400, 'malformed_json', message)

function exactOrNaN(_name: string, value: unknown, { source = '' }: { source?: string } = {}): unknown {
  if (typeof value !== 'number') return value
  const digits = source.replace(/[eE].*|[-.]/g, '').replace(/^0+|0+$/g, '')
  // Up to 15 digits are kept, but for what is too small; of more, those that are printed again.
  const isExact = digits.length <= 15 ? value !== 0 || digits === '' : String(value) === source
  return isExact ? value : Number.NaN
}
