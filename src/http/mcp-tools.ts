// Tools of MCP: how an operation is advertised as one, called as one, and answered as its result.

import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import * as z from 'zod'
import type { ApiError } from '../gateway/api-error.ts'
import { type Call, type Caller, IdempotencyKeySchema } from '../gateway/calls.ts'
import { isRead, type Operation } from '../operation.ts'
import { ifVersion, itemsOnAPage } from '../operations/fields.ts'

/** As `tools/list` shows it. */
export function toTool(operation: Operation): Tool {
  const input = inputOf(operation)
  const scope = operation.scope === null ? 'Needs no scope: any valid key.' : `Needs scope ${operation.scope}.`
  return {
    name: operation.name,
    title: operation.title,
    description: `${operation.description} ${scope}`,
    inputSchema: z.toJSONSchema(input, { io: 'input' }) as Tool['inputSchema'],
    outputSchema: z.toJSONSchema(operation.output) as Tool['outputSchema'],
    annotations: {
      title: operation.title,
      readOnlyHint: isRead(operation),
      destructiveHint: operation.hints?.destructive ?? false,
      idempotentHint: operation.hints?.idempotent ?? true,
      openWorldHint: false,
    },
  }
}

/** Extending drops the metadata of the whole input, such as anyOf, which MCP hosts reject. */
function inputOf(operation: Operation): z.ZodObject {
  const { input } = operation
  if (!isRead(operation)) {
    return input.safeExtend({
      // Only If-Match takes a list of versions.
      ...('if_version' in input.shape && { if_version: ifVersion }),
      idempotency_key: IdempotencyKeySchema.optional(),
    })
  }
  if (!('limit' in input.shape)) return input
  const { limit } = input.shape
  return input.safeExtend({ limit: (limit as z.ZodType).default(itemsOnAPage.mcp).describe(limit.description ?? '') })
}

/** @throws ApiError */
export async function callTool(
  operation: Operation,
  sent: Record<string, unknown>,
  caller: Caller,
  call: Call,
): Promise<CallToolResult> {
  const { idempotency_key, ...input } = sent
  // A read takes no idempotency key: as a field it is rejected by name.
  const answer = isRead(operation)
    ? await call(operation, caller, { ...defaults(operation), ...sent })
    : await call(operation, caller, input, idempotency_key)
  const content = [...text(answer.body), ...(await images(operation, answer.body.data))]
  return { content, structuredContent: answer.body }
}

/** Text only: structured content must match the output schema, and clients throw when it does not. */
export function toErrorResult(error: ApiError, requestId: string): CallToolResult {
  return { content: text({ error: error.body(requestId) }), isError: true }
}

const defaults = (operation: Operation) => ('limit' in operation.input.shape ? { limit: itemsOnAPage.mcp } : {})

async function images(operation: Operation, data: unknown): Promise<CallToolResult['content']> {
  const png = operation.pictures?.png
  if (png === undefined) return []
  const image = Buffer.from(await png.draw(data))
  return [{ type: 'image', data: image.toString('base64'), mimeType: png.mediaType }]
}

function text(body: Record<string, unknown>): CallToolResult['content'] {
  return [{ type: 'text', text: JSON.stringify(body) }]
}
