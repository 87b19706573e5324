// The responses of an operation in OpenAPI: its success and its possible errors. The status of a success and all examples are
// recorded answers.

import { STATUS_CODES } from 'node:http'
import * as z from 'zod'
import type { oas31, ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi'
import type { ErrorBody } from '../../gateway/api-error.ts'
import { type ErrorCode, errorCodes, errors } from '../../operations/error-codes.ts'
import { errorsOf, hasVersion, isRead, type Operation, pathParameters } from '../../operations/operation.ts'
import { type Example, examples, named, successesOf } from './examples.ts'
import { pascal } from './requests.ts'

/** The body of every error. */
export const ErrorSchema = z.strictObject({
  error: z.strictObject({
    code: z.enum(errorCodes).meta({
      description: 'The code to act on. Each operation lists its codes.',
      'x-enumDescriptions': Object.fromEntries(errorCodes.map((code) => [code, errors[code].meaning])),
    }),
    message: z.string().describe('For people.'),
    param: z.string().optional().describe('The field or header with the error.'),
    details: z
      .unknown()
      .optional()
      .describe('Depends on the code, such as `fields`: up to 20 bad fields, and in `more` the number of others.'),
    hint: z.string().optional().describe('What to do.'),
    retryable: z.boolean().describe('Whether to send the same request again later.'),
    request_id: z.string().describe('As in X-Request-Id.'),
  }) satisfies z.ZodType<ErrorBody>,
})

export const headers = {
  'X-Request-Id': text('Identifies the request: sent by the client, otherwise generated.'),
  RateLimit: text('Remaining requests of this key (draft-ietf-httpapi-ratelimit-headers-08).'),
  'RateLimit-Policy': text('Requests per minute allowed to this key.'),
  'Retry-After': text('Seconds to wait before sending the request again.'),
  'WWW-Authenticate': text('The challenge of RFC 6750.'),
  'Idempotent-Replayed': text('`true`: this is the recorded answer to the idempotency key.'),
  'Content-Disposition': text('Names the file.'),
  'Usher-Export-As-Of': text('RFC 3339: rows added later are left out. Each row is as it was when read.'),
  ETag: text('The version of the object, for If-Match, and a digest of the answer, for If-None-Match.'),
} satisfies oas31.HeadersObject

type HeaderName = keyof typeof headers

const always: HeaderName[] = ['X-Request-Id', 'RateLimit', 'RateLimit-Policy']

type CommonError = {
  /** All of one status. */
  codes: readonly [ErrorCode, ...ErrorCode[]]
  description: string
  /** Left out: every one. */
  appliesTo?: (operation: Operation) => boolean
  headers?: HeaderName[]
}

const isWrite = (operation: Operation) => !isRead(operation)
const answers = (code: ErrorCode) => (operation: Operation) => errorsOf(operation).includes(code)
const takesNames = answers('ambiguous_name')

/** Errors that operations have by rule, by the name of the component. What else an operation answers it declares in `errors`. */
const commonErrors: Record<string, CommonError> = {
  BadRequest: {
    codes: ['malformed_json', 'bad_request'],
    description: 'The request cannot be read.',
    appliesTo: isWrite,
  },
  BadPath: {
    codes: ['bad_request'],
    description: 'The path cannot be read.',
    appliesTo: (o) => isRead(o) && pathParameters(o).length > 0,
  },
  Unauthorized: {
    codes: ['missing_api_key', 'invalid_api_key', 'api_key_revoked', 'api_key_expired'],
    description: 'The API key is missing or not valid.',
    headers: ['X-Request-Id', 'WWW-Authenticate'],
  },
  Forbidden: {
    codes: ['missing_scope', 'key_for_people', 'forbidden'],
    description: 'The key lacks the scope, or is for a person.',
  },
  NotFound: {
    codes: ['not_found'],
    description: 'There is no such object in your organisation.',
    appliesTo: answers('not_found'),
  },
  PreconditionFailed: {
    codes: ['version_mismatch'],
    description: 'The object was changed since it was read.',
    appliesTo: answers('version_mismatch'),
  },
  PayloadTooLarge: {
    codes: ['payload_too_large'],
    description: 'The body is too large.',
    appliesTo: isWrite,
  },
  UnsupportedMediaType: {
    codes: ['unsupported_media_type'],
    description: 'The body is not JSON in UTF-8, or its compression is unknown.',
    appliesTo: isWrite,
  },
  UnprocessableContent: {
    codes: ['validation_failed', 'idempotency_key_reused'],
    description: 'Fields are invalid, or the idempotency key was used for another request.',
    appliesTo: (operation) => isWrite(operation) && !takesNames(operation),
  },
  UnprocessableNames: {
    codes: ['validation_failed', 'idempotency_key_reused', 'ambiguous_name'],
    description: 'Fields are invalid, a name is ambiguous, or the idempotency key was used for another request.',
    appliesTo: takesNames,
  },
  InvalidParameters: {
    codes: ['validation_failed'],
    description: 'Parameters are wrong.',
    appliesTo: isRead,
  },
  TooManyRequests: {
    codes: ['rate_limited', 'too_many_failures', 'too_many_exports'],
    description: 'Too many requests.',
    headers: [...always, 'Retry-After'],
  },
  InternalServerError: {
    codes: ['internal_error'],
    description: 'An error in Usher.',
  },
  ServiceUnavailable: {
    codes: ['temporarily_unavailable', 'outcome_unknown', 'out_of_time'],
    description: 'Unavailable, timed out, or outcome unknown. If `retryable` is true, send the same request again.',
    headers: [...always, 'Retry-After'],
  },
}

/** The codes that an operation declares beyond those it has by rule; all are answered with 409. */
const conflictsOf = (operation: Operation) => errorsOf(operation).filter((code) => errors[code].status === 409)

const conflictName = (operation: Operation) => `${pascal(operation.name)}Conflict`

/** `NotFoundError`; `InternalServerError` is one already. */
const errorName = (name: string) => name.replace(/(Error)?$/, 'Error')

const schemaOf = (name: string): oas31.ReferenceObject => ({ $ref: `#/components/schemas/${name}` })

/** `ApiError` with the codes of one answer. */
const errorOf = (codes: readonly ErrorCode[]): oas31.SchemaObject => ({
  allOf: [
    schemaOf('ApiError'),
    {
      type: 'object',
      required: ['error'],
      properties: {
        error: { type: 'object', required: ['code'], properties: { code: { type: 'string', enum: [...codes] } } },
      },
    },
  ],
})

/** Every error by its name: `NotFoundError`, `RegisterAttendeeConflict`. */
export function errorSchemas(operations: readonly Operation[]): Record<string, z.core.$ZodType | oas31.SchemaObject> {
  return {
    ApiError: ErrorSchema,
    ...Object.fromEntries(Object.entries(commonErrors).map(([name, { codes }]) => [errorName(name), errorOf(codes)])),
    ...Object.fromEntries(
      operations
        .map((operation) => [conflictName(operation), conflictsOf(operation)] as const)
        .filter(([, codes]) => codes.length > 0)
        .map(([name, codes]) => [name, errorOf(codes)]),
    ),
  }
}

/** Shared by all operations. */
export function sharedErrorResponses(): Record<string, ZodOpenApiResponseObject> {
  return Object.fromEntries(
    Object.entries(commonErrors).map(([name, { codes, description, headers }]) => {
      const example = examples.find((e) => codes.some((code) => code === codeOf(e)))
      return [name, errorResponse(errorName(name), codes, description, example, headers)]
    }),
  )
}

export function responsesOf(operation: Operation): ZodOpenApiResponsesObject {
  const successes = successesOf(operation)
  // 200 for an operation that has not been recorded yet: the recording needs the document.
  const status = successes[0]?.status ?? 200
  const headers = refer([
    ...always,
    ...(hasVersion(operation) ? (['ETag'] as const) : []),
    ...(isRead(operation) ? [] : (['Idempotent-Replayed'] as const)),
  ])
  const schema = operation.output
  return {
    [`${status}`]: {
      description: STATUS_CODES[status] ?? '',
      headers,
      content: { 'application/json': { schema, examples: named(successes, ({ body }) => body) } },
    },
    ...(operation.later !== undefined && {
      202: { description: operation.later, headers, content: { 'application/json': { schema } } },
    }),
    ...(isRead(operation) &&
      hasVersion(operation) && {
        304: { description: 'The answer is still the one in If-None-Match.', headers: refer([...always, 'ETag']) },
      }),
    ...errorResponsesOf(operation),
  }
}

export function pictureResponses(operation: Operation, mediaType: string): ZodOpenApiResponsesObject {
  return {
    200: { description: 'The image.', headers: refer(always), content: { [mediaType]: {} } },
    ...errorResponsesOf(operation),
  }
}

export function csvResponses(operation: Operation): ZodOpenApiResponsesObject {
  return {
    200: {
      description: 'The file (RFC 4180). If it cannot be completed, the connection ends early.',
      headers: refer([...always, 'Content-Disposition', 'Usher-Export-As-Of']),
      content: { 'text/csv': { schema: { type: 'string' } } },
    },
    ...errorResponsesOf(operation),
  }
}

/** The shared responses, and the conflicts of the operation itself. */
function errorResponsesOf(operation: Operation): ZodOpenApiResponsesObject {
  const common = Object.entries(commonErrors).filter(([, { appliesTo }]) => appliesTo?.(operation) ?? true)
  const codes = conflictsOf(operation)
  const refusals = examples.filter((e) => codes.some((code) => code === codeOf(e)))
  // Its own, or else that of another operation with the same code.
  const example = refusals.find((e) => e.operation === operation.name) ?? refusals[0]
  const description = 'A rule forbids it in the current state. See the code.'
  return {
    ...Object.fromEntries(
      common.map(
        ([
          name,
          {
            codes: [code],
          },
        ]) => [errors[code].status, { $ref: `#/components/responses/${name}` }],
      ),
    ),
    ...(codes.length > 0 && { 409: errorResponse(conflictName(operation), codes, description, example) }),
  }
}

function errorResponse(
  schema: string,
  codes: readonly ErrorCode[],
  description: string,
  example: Example | undefined,
  names: readonly HeaderName[] = always,
): ZodOpenApiResponseObject {
  return {
    description: `${description} ${codes.map((code) => `\`${code}\``).join(', ')}.`,
    headers: refer(names),
    content: {
      'application/json': {
        schema: schemaOf(schema),
        ...(example !== undefined && { examples: named([example], ({ body }) => body) }),
      },
    },
  }
}

const codeOf = ({ body }: Example): unknown => (body.error as { code?: string } | undefined)?.code

const refer = (names: readonly HeaderName[]): oas31.HeadersObject =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

function text(description: string): oas31.HeaderObject {
  return { description, schema: { type: 'string' } }
}
