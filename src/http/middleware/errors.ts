// Errors of HTTP itself, shared by REST and MCP.

import type { Request, Response } from 'express'
import { ApiError, toApiError } from '../../gateway/api-error.ts'
import { logError, noteRefusal } from './log-requests.ts'

export const notJson = (): ApiError =>
  new ApiError(415, 'unsupported_media_type', 'The body must be JSON.', {
    hint: 'Send the header Content-Type: application/json.',
  })

/** @param allow as in the header Allow. */
export const methodNotAllowed = (method: string, allow: string, hint: string): ApiError =>
  new ApiError(405, 'method_not_allowed', `This path does not answer ${method}.`, { hint, headers: { Allow: allow } })

/** What Express and its body parser throw; undefined for anything else. */
export function apiErrorOfExpress(error: { type?: string; status?: number; limit?: number }): ApiError | undefined {
  if (error instanceof ApiError) return undefined
  switch (error.type) {
    case 'entity.too.large':
      return new ApiError(413, 'payload_too_large', `The body is larger than ${(error.limit ?? 0) / 1024} KiB.`)
    case 'encoding.unsupported':
      return new ApiError(415, 'unsupported_media_type', 'The Content-Encoding of the body is not supported.')
  }
  if (typeof error.status === 'number' && error.status >= 400 && error.status < 500) {
    return new ApiError(400, 'bad_request', 'The request cannot be read.', { cause: error })
  }
  return undefined
}

/** The error to answer, logged where it is ours, with its code and headers. Undefined: an answer had begun, and is cut off. */
export function beginError(error: unknown, req: Request, res: Response): ApiError | undefined {
  const answer = apiErrorOfExpress(error as { status?: number }) ?? toApiError(error)
  if (answer.status >= 500) logError(req, res, answer.cause ?? error, answer.message)
  if (res.headersSent) return void res.destroy()
  noteRefusal(res, answer)
  res.set(answer.headers)
  return answer
}
