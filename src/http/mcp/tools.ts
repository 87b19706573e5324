// Tools of MCP: how an operation is advertised as one, called as one, and answered as its result.

import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import type * as z from 'zod'
import { ApiError } from '../../gateway/api-error.ts'
import type { Caller } from '../../gateway/caller.ts'
import { type Call, IdempotencyKeySchema } from '../../gateway/calls.ts'
import { ifVersion, itemsOnAPage, nextPage } from '../../operations/fields.ts'
import { isList, isRead, type Operation } from '../../operations/operation.ts'
import { asCalled, namedInput, readNames } from './names.ts'
import { objectNameOf, toolInput, toolOutput } from './schemas.ts'

/**
 * As `tools/list` shows them. Of a kind of object that is listed, the list names what is essential, and other tools that answer one
 * name nothing, also where the list is no tool; of any other, a read names all fields of its own. A write answers what it wrote.
 */
export function toTools(operations: readonly Operation[], all = operations): Tool[] {
  const listed = new Set(all.filter(isList).map(({ output }) => objectNameOf(output)))
  const shown = new Set<string>()
  return operations.map((operation) => {
    const { name, title, description, output, scope } = operation
    const needs = scope === null ? 'Needs no scope: any valid key.' : `Needs scope ${scope}.`
    const detail = isList(operation)
      ? 'essential'
      : isRead(operation) && !listed.has(objectNameOf(output))
        ? 'own'
        : 'none'
    return {
      name,
      title,
      // The instructions of the server say how lists go on.
      description: `${description.replace(` ${nextPage}`, '')} ${needs}`,
      inputSchema: toolInput(inputOf(operation), shown),
      outputSchema: toolOutput(output, detail),
      annotations: annotationsOf(operation),
    }
  })
}

/** Hints that say what the protocol takes for granted are left out: a tool is not read-only, and not idempotent. */
function annotationsOf(operation: Operation): Tool['annotations'] {
  const { destructive = false, idempotent = false, openWorld = false } = operation.hints ?? {}
  if (isRead(operation)) return { readOnlyHint: true, openWorldHint: openWorld }
  return { destructiveHint: destructive, openWorldHint: openWorld, ...(idempotent && { idempotentHint: true }) }
}

/** The arguments of the tool, as it lists them. */
export function inputOf(operation: Operation): z.ZodObject {
  return namedInput(operation, argumentsOf(operation))
}

/** The same with ids, as they are validated. */
export function argumentsOf(operation: Operation): z.ZodObject {
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
  const answer = await answerTo(operation, sent, caller, call)
  const content = [...text(answer.body), ...(await images(operation, answer.body.data))]
  return { content, structuredContent: answer.body }
}

async function answerTo(operation: Operation, sent: Record<string, unknown>, caller: Caller, call: Call) {
  try {
    const { input, names } = readNames(operation, sent)
    // A read takes no idempotency key: as a field it is rejected by name.
    if (isRead(operation)) return await call(operation, caller, { ...defaults(operation), ...input }, undefined, names)
    const { idempotency_key, ...rest } = input
    return await call(operation, caller, rest, idempotency_key, names)
  } catch (error) {
    throw error instanceof ApiError ? asCalled(operation, sent, error) : error
  }
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
