// The answers of an operation: its success, and the refusals it can meet. In comes its declaration, out go response objects;
// statuses of successes and all examples are what the server was recorded to answer.

import { STATUS_CODES } from 'node:http'
import * as z from 'zod'
import type { oas31, ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from 'zod-openapi'
import type { ErrorBody } from '../../gateway/api-error.ts'
import { errorCodes } from '../../gateway/error-codes.ts'
import { isList, isRead, type Operation, pathParameters } from '../../operation.ts'
import { type Example, examples, isRefusal, named, successesOf } from './examples.ts'
import { answeredObject } from './objects.ts'
import { takesBody, takesVersion } from './requests.ts'

// No `enum`: a client made from the document must still read an answer with a code that was added later.
const says = `What to act on. One of ${errorCodes.join(', ')}. There may be more in the future: go by the status then.`

/** The body of every refusal. */
export const ErrorSchema = z.strictObject({
  error: z.strictObject({
    code: z.string().describe(says).meta({ 'x-extensible-enum': errorCodes }),
    message: z.string().describe('For people.'),
    param: z.string().optional().describe('The field or header it is about.'),
    details: z
      .unknown()
      .optional()
      .describe(
        'What belongs to the code, such as `fields`: up to 20 bad fields at once, and in `more` how many others.',
      ),
    hint: z.string().optional().describe('The way out.'),
    retryable: z.boolean().describe('Whether the same request may succeed if it is simply sent again later.'),
    request_id: z.string().describe('As in X-Request-Id.'),
  }) satisfies z.ZodType<ErrorBody>,
})

export const headers = {
  'X-Request-Id': text('Identifies the request: as it was sent, or a new one.'),
  RateLimit: text('What is left of the allowance of this key (draft-ietf-httpapi-ratelimit-headers-08).'),
  'RateLimit-Policy': text('Requests a minute that this key is allowed.'),
  'Retry-After': text('Seconds to wait before sending the request again.'),
  'WWW-Authenticate': text('The challenge of RFC 6750.'),
  'Idempotent-Replayed': text('`true`: the first answer to this idempotency key, again.'),
  ETag: text('The version of the object, for If-Match.'),
} satisfies oas31.HeadersObject

type HeaderName = keyof typeof headers

const always: HeaderName[] = ['X-Request-Id', 'RateLimit', 'RateLimit-Policy']

/** Refusals that have one meaning wherever they are met: who meets them, and which headers they bring. */
const refusals: Record<number, { says: string; met: (operation: Operation) => boolean; headers?: HeaderName[] }> = {
  400: { says: 'The request cannot be read.', met: (o) => takesBody(o) || pathParameters(o).length > 0 },
  401: { says: 'No key, or one that is not valid.', met: () => true, headers: ['X-Request-Id', 'WWW-Authenticate'] },
  403: { says: 'The key lacks the scope.', met: ({ scope }) => scope !== null },
  404: { says: 'There is no such object, or it is not yours.', met: namesAnObject },
  409: { says: 'A rule forbids it as things are; the code says which.', met: (o) => !isRead(o) },
  412: { says: 'The object was changed since it was read.', met: takesVersion },
  413: { says: 'The body is too large.', met: takesBody },
  415: { says: 'The body is not JSON in UTF-8, or its compression is unknown.', met: takesBody },
  422: { says: 'Fields are wrong, or the idempotency key was used for another request.', met: () => true },
  429: { says: 'Too many requests.', met: () => true, headers: [...always, 'Retry-After'] },
  500: { says: 'Our fault.', met: () => true },
  503: {
    says: 'Not now, or nobody knows whether it was done: `retryable` says whether to send the same request again.',
    met: () => true,
    headers: [...always, 'Retry-After'],
  },
}

/** Shared by all operations. */
export function sharedRefusals(): Record<string, ZodOpenApiResponseObject> {
  return Object.fromEntries(
    Object.keys(refusals).map((status) => {
      const recorded = examples.filter((example) => example.status === Number(status))
      return [nameOf(Number(status)), refusal(Number(status), recorded)]
    }),
  )
}

export function responsesOf(operation: Operation): ZodOpenApiResponsesObject {
  const [example] = successesOf(operation)
  const schema = operation.output
  return {
    // An operation that was not recorded yet is described all the same, so that it can be recorded.
    [`${example?.status ?? 200}`]: {
      description: STATUS_CODES[example?.status ?? 200] ?? '',
      headers: refer([...always, ...headersOf(operation)]),
      content: { 'application/json': { schema, examples: named(successesOf(operation), ({ body }) => body) } },
    },
    ...refusalsOf(operation),
  }
}

export function pictureResponses(operation: Operation, mediaType: string): ZodOpenApiResponsesObject {
  return {
    200: { description: 'The picture.', headers: refer(always), content: { [mediaType]: {} } },
    ...refusalsOf(operation),
  }
}

/** The shared ones; but where the operation itself was recorded being refused, that is shown. */
function refusalsOf(operation: Operation): ZodOpenApiResponsesObject {
  return Object.fromEntries(
    Object.entries(refusals).flatMap(([status, { met }]) => {
      const own = examples.filter((e) => e.operation === operation.name && e.status === Number(status))
      if (own.length === 0 && !met(operation)) return []
      const shared = { $ref: `#/components/responses/${nameOf(Number(status))}` }
      return [[status, own.length > 0 ? refusal(Number(status), own) : shared]]
    }),
  )
}

function refusal(status: number, recorded: readonly Example[]): ZodOpenApiResponseObject {
  return {
    description: refusals[status]?.says ?? '',
    headers: refer(refusals[status]?.headers ?? always),
    content: {
      'application/json': { schema: ErrorSchema, examples: named(recorded.filter(isRefusal), ({ body }) => body) },
    },
  }
}

function headersOf(operation: Operation): HeaderName[] {
  const object = answeredObject(operation)
  const hasVersion = !isList(operation) && object instanceof z.ZodObject && 'version' in object.shape
  return [...(hasVersion ? (['ETag'] as const) : []), ...(isRead(operation) ? [] : (['Idempotent-Replayed'] as const))]
}

/** Its path names an object, or it takes an identifier that has to be there. */
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
