// The OpenAPI document of the REST interface, generated from the operations. Must hold nothing about a single operation; examples
// are recorded answers (examples.ts).

import * as z from 'zod'
import {
  createDocument,
  type ZodOpenApiObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponsesObject,
} from 'zod-openapi'
import packageJson from '../../../package.json' with { type: 'json' }
import { wordsFor } from '../../gateway/header-names.ts'
import { inputOfCsv, type Operation } from '../../operations/operation.ts'
import { deprecationNotice } from '../deprecation.ts'
import { namedObjects } from './objects.ts'
import { requestOf } from './requests.ts'
import {
  csvResponses,
  ErrorSchema,
  errorSchemas,
  headers,
  pictureResponses,
  responsesOf,
  sharedErrorResponses,
} from './responses.ts'
import { tagOf, tagsAt } from './tags.ts'
import { describeWebhooks } from './webhooks.ts'

export type OpenApiDocument = ReturnType<typeof createDocument>

const description = `
Events, registrations, QR tickets and check-ins of one organisation. Every request carries
\`Authorization: Bearer <API_KEY>\`; each operation names the scope that the key needs.

One object is returned as \`{ "data": … }\`, a list as \`{ "data": […], "has_more", "next_cursor" }\`: send \`next_cursor\` as
\`cursor\` for the next page. Money is an integer in minor units beside its currency, times are RFC 3339 in UTC. Unknown fields
are rejected.

An error has the shape of \`ApiError\`: act on \`code\`, show \`message\`, and send the request again only when \`retryable\` is
true. Give every write an \`Idempotency-Key\`, and repeat it when repeating the request: nothing then happens twice.

AI assistants find every operation as a tool of the same name at the MCP endpoint, \`POST /api/mcp\`, with the same key.
`.trim()

/**
 * @param publicUrl where others reach the API. Links to guides are absolute with it, as the schema of OpenAPI has them. A proxy strips its path:
 *   generated clients join `servers` to a host, so it has no relative address.
 */
export function describeApi(operations: readonly Operation[], publicUrl = ''): OpenApiDocument {
  const url = publicUrl.replace(/\/$/, '')
  const path = url && new URL(url).pathname.replace(/\/$/, '')
  const answered = answeredIn(operations)
  const document: ZodOpenApiObject = {
    openapi: '3.1.1',
    info: {
      title: 'Usher',
      version: packageJson.version,
      summary: packageJson.description,
      description,
      contact: { name: 'The operator of this server, who issued your API key' },
      license: { name: 'All rights reserved', identifier: 'LicenseRef-UNLICENSED' },
    },
    servers: [{ url: `${path}/api/v1`, description: 'This server, in production or local.', 'x-internal': false }],
    security: [{ api_key: [] }],
    tags: tagsAt(url),
    paths: pathsOf(operations),
    webhooks: describeWebhooks(),
    components: {
      securitySchemes: {
        api_key: {
          type: 'http',
          scheme: 'bearer',
          bearerFormat: 'usher_live_…',
          description: 'An API key of the organisation. It is shown once, at creation.',
        },
      },
      schemas: { ...namedObjects(operations), ...errorSchemas(operations) },
      headers,
      responses: sharedErrorResponses(),
    },
  }
  return createDocument(document, {
    override({ jsonSchema, zodSchema }) {
      if (jsonSchema.additionalProperties === false && answered.has(zodSchema)) delete jsonSchema.additionalProperties
    },
  })
}

/** The schemas of answers and webhooks, which are not closed: a later release may add fields (docs/reference/versions.md). */
function answeredIn(operations: readonly Operation[]): WeakSet<z.core.$ZodType> {
  const found = new WeakSet<z.core.$ZodType>()
  for (const schema of [ErrorSchema, ...operations.map(({ output }) => output)]) {
    z.toJSONSchema(schema, { override: ({ zodSchema }) => void found.add(zodSchema) })
  }
  return found
}

function pathsOf(operations: readonly Operation[]): ZodOpenApiPathsObject {
  const paths: ZodOpenApiPathsObject = {}
  for (const operation of operations) {
    const { path, method, pictures = {}, csv } = operation
    paths[path] = { ...paths[path], [method.toLowerCase()]: describe(operation, responsesOf(operation)) }
    if (csv !== undefined) {
      const file: Operation = { ...operation, method: 'GET', input: inputOfCsv(operation) }
      paths[path] = { ...paths[path], get: describe(file, csvResponses(file), 'csv') }
    }
    for (const [extension, { mediaType }] of Object.entries(pictures)) {
      paths[`${path}.${extension}`] = { get: describe(operation, pictureResponses(operation, mediaType), extension) }
    }
  }
  return paths
}

const describe = (operation: Operation, responses: ZodOpenApiResponsesObject, extension?: string) => ({
  ...textOf(operation, extension),
  ...requestOf(operation),
  responses,
})

function textOf(operation: Operation, extension?: string) {
  const { name, title, description, scope } = operation
  const needs = scope === null ? 'Any valid key will do.' : `Needs the scope \`${scope}\`.`
  return {
    operationId: extension === undefined ? name : `${name}_${extension}`,
    summary: extension === undefined ? title : `${title} as ${extension.toUpperCase()}`,
    description: wordsFor('api', `${deprecationNotice(operation)}${description}\n\n${needs}`),
    ...(operation.deprecated !== undefined && { deprecated: true }),
    tags: [tagOf(operation)],
    // Machine-readable. Linters reserve the scopes of a security requirement for OAuth.
    'x-required-scope': scope,
  }
}
