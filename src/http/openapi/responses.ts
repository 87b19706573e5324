// The responses of an operation in OpenAPI: its success and its possible errors. The status of a success and all examples are
// recorded answers.

import { STATUS_CODES } from 'node:http'
import * as z from 'zod'
import type { oas31, ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi'
import type { ErrorBody } from '../../gateway/api-error.ts'
import { errorCodes } from '../../gateway/error-codes.ts'
import { isList, isRead, type Operation, pathParameters } from '../../operation.ts'
import { type Example, examples, isError, named, successesOf } from './examples.ts'
import { answeredObject } from './objects.ts'
import { takesBody, takesVersion } from './requests.ts'

// No `enum`: a client made from the document must still read an answer with a code that was added later.
const codeDescription = `The code to act on. One of ${errorCodes.join(', ')}. More may be added: treat an unknown one by its status.`

/** The body of every error. */
export const ErrorSchema = z.strictObject({
  error: z.strictObject({
    code: z.string().describe(codeDescription).meta({ 'x-extensible-enum': errorCodes }),
    message: z.string().describe('For people.'),
    param: z.string().optional().describe('The field or header that the error is about.'),
    details: z
      .unknown()
      .optional()
      .describe('Depends on the code, such as `fields`: up to 20 bad fields, and in `more` the number of others.'),
    hint: z.string().optional().describe('What to do.'),
    retryable: z.boolean().describe('Whether the same request may succeed if it is sent again later.'),
    request_id: z.string().describe('As in X-Request-Id.'),
  }) satisfies z.ZodType<ErrorBody>,
})

export const headers = {
  'X-Request-Id': text('Identifies the request: as sent by the client, else generated.'),
  RateLimit: text('Remaining requests of this key (draft-ietf-httpapi-ratelimit-headers-08).'),
  'RateLimit-Policy': text('Requests per minute allowed to this key.'),
  'Retry-After': text('Seconds to wait before sending the request again.'),
  'WWW-Authenticate': text('The challenge of RFC 6750.'),
  'Idempotent-Replayed': text('`true`: this is the recorded answer to the idempotency key.'),
  ETag: text('The version of the object, for If-Match.'),
} satisfies oas31.HeadersObject

type HeaderName = keyof typeof headers

const always: HeaderName[] = ['X-Request-Id', 'RateLimit', 'RateLimit-Policy']

/** Errors by status: which operations can answer them, and with which headers. */
const errors: Record<
  number,
  { description: string; appliesTo: (operation: Operation) => boolean; headers?: HeaderName[] }
> = {
  400: { description: 'The request cannot be read.', appliesTo: (o) => takesBody(o) || pathParameters(o).length > 0 },
  401: {
    description: 'The API key is missing or not valid.',
    appliesTo: () => true,
    headers: ['X-Request-Id', 'WWW-Authenticate'],
  },
  403: { description: 'The key lacks the scope.', appliesTo: ({ scope }) => scope !== null },
  404: { description: 'There is no such object in your organisation.', appliesTo: namesAnObject },
  409: { description: 'A rule forbids it in the current state; the code says which.', appliesTo: (o) => !isRead(o) },
  412: { description: 'The object was changed since it was read.', appliesTo: takesVersion },
  413: { description: 'The body is too large.', appliesTo: takesBody },
  415: { description: 'The body is not JSON in UTF-8, or its compression is unknown.', appliesTo: takesBody },
  422: { description: 'Fields are wrong, or the idempotency key was used for another request.', appliesTo: () => true },
  429: { description: 'Too many requests.', appliesTo: () => true, headers: [...always, 'Retry-After'] },
  500: { description: 'An error in Usher.', appliesTo: () => true },
  503: {
    description: 'Unavailable, or the outcome is unknown: `retryable` says whether to send the same request again.',
    appliesTo: () => true,
    headers: [...always, 'Retry-After'],
  },
}

/** Shared by all operations. */
export function sharedErrorResponses(): Record<string, ZodOpenApiResponseObject> {
  return Object.fromEntries(
    Object.keys(errors).map((status) => {
      const recorded = examples.filter((example) => example.status === Number(status))
      return [nameOf(Number(status)), errorResponse(Number(status), recorded)]
    }),
  )
}

export function responsesOf(operation: Operation): ZodOpenApiResponsesObject {
  const [example] = successesOf(operation)
  const schema = operation.output
  return {
    // 200 for an operation that has not been recorded yet: the recording needs the document.
    [`${example?.status ?? 200}`]: {
      description: STATUS_CODES[example?.status ?? 200] ?? '',
      headers: refer([...always, ...headersOf(operation)]),
      content: { 'application/json': { schema, examples: named(successesOf(operation), ({ body }) => body) } },
    },
    ...errorResponsesOf(operation),
  }
}

export function pictureResponses(operation: Operation, mediaType: string): ZodOpenApiResponsesObject {
  return {
    200: { description: 'The image.', headers: refer(always), content: { [mediaType]: {} } },
    ...errorResponsesOf(operation),
  }
}

/** The shared responses, except where an error of the operation itself was recorded. */
function errorResponsesOf(operation: Operation): ZodOpenApiResponsesObject {
  return Object.fromEntries(
    Object.entries(errors).flatMap(([status, { appliesTo }]) => {
      const own = examples.filter((e) => e.operation === operation.name && e.status === Number(status))
      if (own.length === 0 && !appliesTo(operation)) return []
      const shared = { $ref: `#/components/responses/${nameOf(Number(status))}` }
      return [[status, own.length > 0 ? errorResponse(Number(status), own) : shared]]
    }),
  )
}

function errorResponse(status: number, recorded: readonly Example[]): ZodOpenApiResponseObject {
  return {
    description: errors[status]?.description ?? '',
    headers: refer(errors[status]?.headers ?? always),
    content: {
      'application/json': { schema: ErrorSchema, examples: named(recorded.filter(isError), ({ body }) => body) },
    },
  }
}

function headersOf(operation: Operation): HeaderName[] {
  const object = answeredObject(operation)
  const hasVersion = !isList(operation) && object instanceof z.ZodObject && 'version' in object.shape
  return [...(hasVersion ? (['ETag'] as const) : []), ...(isRead(operation) ? [] : (['Idempotent-Replayed'] as const))]
}

/** Whether its path names an object, or it requires an identifier. */
function namesAnObject(operation: Operation): boolean {
  const needed = Object.entries(operation.input.shape).filter(([, field]) => !z.safeParse(field, undefined).success)
  return pathParameters(operation).length > 0 || needed.some(([name]) => name.endsWith('_id'))
}

const nameOf = (status: number): string => (STATUS_CODES[status] ?? String(status)).replaceAll(' ', '')

const refer = (names: readonly HeaderName[]): oas31.HeadersObject =>
  Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))

function text(description: string): oas31.HeaderObject {
  return { description, schema: { type: 'string' } }
}
