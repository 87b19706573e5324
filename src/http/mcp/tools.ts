// Tools of MCP: how an operation is advertised as one, called as one, and answered as its result.

import type { CallToolResult, Tool } from '@modelcontextprotocol/server'
import * as z from 'zod'
import { ApiError } from '../../gateway/api-error.ts'
import type { Caller } from '../../gateway/caller.ts'
import { call, type Gateway, IdempotencyKeySchema } from '../../gateway/calls.ts'
import { dryRunFirst, ifVersion, readAgain } from '../../operations/changes.ts'
import { forSync, itemsOnAPage, nextPage } from '../../operations/lists.ts'
import { isList, isRead, type Operation } from '../../operations/operation.ts'
import { leanAnswer, namesEvents, readFields } from './lean.ts'
import { asCalled, namedInput, readNames } from './names.ts'
import type { Era } from './plain.ts'
import { toolInput } from './schemas.ts'
import { type Ways, withWays } from './selection.ts'
import type { createTimeZones } from './time-zones.ts'

// What the instructions of the server say for all tools.
const saidOnce = [nextPage, forSync, readAgain, dryRunFirst]

/** As `tools/list` shows them. There are no output schemas: a call that succeeds shows what it answers, and its fields may be chosen. */
export function toTools(operations: readonly Operation[], ways: Ways = () => ''): Tool[] {
  const shown = new Set<string>()
  return operations.map((operation) => {
    const { name, title, description, scope } = operation
    const needs = scope === null ? 'Needs no scope: any valid key.' : `Needs ${scope}.`
    const said = saidOnce.reduce((text, sentence) => text.replace(` ${sentence}`, ''), description)
    const input = isList(operation) ? inputOf(operation).safeExtend(chosenFields) : inputOf(operation)
    const inputSchema = toolInput(input, shown, name)
    const how = ways(`${said} ${JSON.stringify(inputSchema)}`)
    return {
      name,
      title,
      description: [said, ...(how === '' ? [] : [how]), needs].join(' '),
      inputSchema,
      ...annotationsOf(operation),
    }
  })
}

/** Hints that say what the protocol takes for granted are left out: a tool writes, destroys, is not idempotent, and reaches others. */
function annotationsOf(operation: Operation): Pick<Tool, 'annotations'> {
  const { destructive = false, idempotent = false, openWorld = false } = operation.hints ?? {}
  const annotations = {
    ...(isRead(operation) ? { readOnlyHint: true } : !destructive && { destructiveHint: false }),
    ...(!openWorld && { openWorldHint: false }),
    ...(idempotent && { idempotentHint: true }),
  }
  return Object.keys(annotations).length === 0 ? {} : { annotations }
}

// Which there are, a refusal says: `readFields`.
const chosenFields = { fields: z.array(z.string()).optional() }

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
  if (!isList(operation)) return input
  const { limit } = input.shape as { limit: z.ZodType }
  return input.safeExtend({ limit: limit.default(itemsOnAPage.mcp).describe(limit.description ?? '') })
}

/** @throws ApiError */
export async function callTool(
  operation: Operation,
  sent: Record<string, unknown>,
  caller: Caller,
  gateway: Gateway,
  era: Era,
  zonesOf: ReturnType<typeof createTimeZones>,
  ways: Ways,
): Promise<CallToolResult> {
  // No other read than a list takes fields: it is rejected by name.
  const [asked, given] = isList(operation) ? fieldsOf(operation, sent, caller) : [changedOf(sent), sent]
  const answer = await answerTo(operation, given, caller, gateway)
  const body = leanAnswer(
    operation,
    answer.body,
    asked,
    await zonesOf(caller, answer.body.data, namesEvents(operation, asked)),
    ways,
  )
  const content = [...(era === 'modern' ? pointer(body) : text(body)), ...(await images(operation, answer.body.data))]
  return { content, structuredContent: body }
}

async function answerTo(operation: Operation, sent: Record<string, unknown>, caller: Caller, gateway: Gateway) {
  try {
    const { input, names } = readNames(operation, sent)
    // A read takes no idempotency key: as a field it is rejected by name.
    if (isRead(operation))
      return await call(gateway, operation, caller, { ...input, ...lengthOfPage(operation, input) }, undefined, names)
    const { idempotency_key, ...rest } = input
    return await call(gateway, operation, caller, rest, idempotency_key, names)
  } catch (error) {
    throw error instanceof ApiError ? asCalled(operation, sent, error) : error
  }
}

/** The fields that are to be answered, apart from the arguments of the operation. */
function fieldsOf(operation: Operation, { fields, ...given }: Record<string, unknown>, caller: Caller) {
  // Scopes come before the input.
  const named = caller.has(operation.scope) ? readFields(operation, fields) : undefined
  const ofEvent = (given.event ?? given.event_id ?? null) !== null
  return [named === undefined ? { ofEvent } : { fields: named }, given] as const
}

/** A change of what is listed as `ticket_types` is answered as `ticket_type_ids`. */
const changedOf = ({ changes }: Record<string, unknown>) => ({
  changed: Object.keys(changes ?? {}).flatMap((name) => [name, name.replace(/s?$/, '_id$&')]),
})

/** Text only, which is what every client shows a model of an error. */
export function toErrorResult(error: ApiError, requestId: string, ways: Ways): CallToolResult {
  const body = withWays(error.body(requestId), ways)
  const { fields } = (body.details ?? {}) as { fields?: { param: string; message: string }[] }
  // The message has the sentences of all fields, unless it is cut.
  if (Array.isArray(fields) && fields.every(({ message }) => body.message.includes(message))) {
    body.details = { ...(body.details as object), fields: fields.map(({ param }) => param) }
  }
  return { content: text({ error: body }), isError: true }
}

const lengthOfPage = (operation: Operation, { limit }: Record<string, unknown>) =>
  isList(operation) ? { limit: limit ?? itemsOnAPage.mcp } : {}

async function images(operation: Operation, data: unknown): Promise<CallToolResult['content']> {
  const png = operation.pictures?.png
  if (png === undefined) return []
  const image = Buffer.from(await png.draw(data))
  return [{ type: 'image', data: image.toString('base64'), mimeType: png.mediaType }]
}

/** Clients of revision 2026-07-28 read structured content. Those of earlier ones may read the text only, and get it whole. */
function pointer({ data, has_more }: Record<string, unknown>): CallToolResult['content'] {
  const said = Array.isArray(data)
    ? `${data.length} in structuredContent${has_more ? '; there are more' : ''}.`
    : 'The answer is in structuredContent.'
  return [{ type: 'text', text: said }]
}

function text(body: Record<string, unknown>): CallToolResult['content'] {
  return [{ type: 'text', text: JSON.stringify(body) }]
}
