// Every answer that is not a success, over REST or MCP, is an ApiError: thrown where the failure is detected, rendered once in
// src/http/.

export type ApiErrorOptions = {
  param?: string | undefined
  details?: unknown
  hint?: string | undefined
  headers?: Record<string, string>
  /** Default: true for 429 and 503, else false. */
  retryable?: boolean
  /** The error is the recorded answer to the same idempotency key. */
  replayed?: boolean
  cause?: unknown
}

export type ErrorBody = {
  code: string
  message: string
  param?: string
  details?: unknown
  hint?: string
  /** Whether to send the same request again later. */
  retryable: boolean
  request_id: string
}

export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly param: string | undefined
  readonly details: unknown
  readonly hint: string | undefined
  readonly headers: Record<string, string>
  readonly replayed: boolean
  readonly retryable: boolean

  constructor(status: number, code: string, message: string, options: ApiErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.status = status
    this.code = code
    this.param = options.param
    this.details = options.details
    this.hint = options.hint || undefined
    this.headers = options.headers ?? {}
    this.replayed = options.replayed ?? false
    this.retryable = options.retryable ?? (status === 429 || status === 503)
  }

  /** The same error, but for these. */
  with(message: string, options: ApiErrorOptions): ApiError {
    return new ApiError(this.status, this.code, message, { ...this, cause: this.cause, ...options })
  }

  /** The error object of an answer. Absent fields are left out. */
  body(requestId: string): ErrorBody {
    return {
      code: this.code,
      message: this.message,
      ...(this.param !== undefined && { param: this.param }),
      ...(this.details !== undefined && { details: this.details }),
      ...(this.hint !== undefined && { hint: this.hint }),
      retryable: this.retryable,
      request_id: requestId,
    }
  }
}

/** Header of an answer to an invalid key (RFC 6750, section 3). */
export const invalidTokenChallenge = { 'WWW-Authenticate': 'Bearer realm="usher", error="invalid_token"' }

export function unauthorised(code: string, message: string, hint?: string): ApiError {
  return new ApiError(401, code, message, { hint, headers: invalidTokenChallenge })
}

export function tooManyFailures(retryAfterSeconds = 60): ApiError {
  return new ApiError(429, 'too_many_failures', 'Too many requests with invalid credentials came from this address.', {
    hint: 'Wait for the seconds in Retry-After, and send a valid key.',
    headers: { 'Retry-After': String(retryAfterSeconds) },
  })
}

export function unavailable(cause: unknown): ApiError {
  return new ApiError(503, 'temporarily_unavailable', 'The service cannot answer right now.', {
    hint: 'Send the same request again shortly. With an Idempotency-Key nothing can happen twice.',
    headers: { 'Retry-After': '1' },
    cause,
  })
}

/**
 * Postgres gave the statement up: it would again.
 * @param instead what to send.
 */
export function outOfTime(cause: unknown, instead: string): ApiError {
  return new ApiError(503, 'out_of_time', 'The request took too long and was given up.', {
    hint: `${instead} Nothing was changed.`,
    retryable: false,
    cause,
  })
}

/**
 * The connection to the database broke during the call: a write may have been committed.
 * @param repeatable whether sending it twice does no harm: a read, or a write with an idempotency key.
 */
export function outcomeUnknown(cause: unknown, repeatable: boolean): ApiError {
  return new ApiError(503, 'outcome_unknown', 'The answer was lost, so the outcome of the request is unknown.', {
    hint: repeatable
      ? 'Send the same request again, with the same Idempotency-Key if it had one: nothing happens twice.'
      : 'Check whether it was carried out before you send it again. With an Idempotency-Key you can simply repeat a request.',
    headers: { 'Retry-After': '1' },
    retryable: repeatable,
    cause,
  })
}

/** Anything unexpected becomes a 500 that reveals nothing of its cause. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  return new ApiError(500, 'internal_error', 'Something went wrong on our side.', {
    hint: 'Quote the request_id when you report it.',
    cause: error,
  })
}
