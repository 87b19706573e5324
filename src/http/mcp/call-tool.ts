// A call of a tool: the operation is called (src/gateway/calls.ts), and what it answers becomes a result. A refusal is one, too, as MCP
// wants it.

import type { CallToolResult, InputRequiredResult } from '@modelcontextprotocol/server'
import { ApiError, toApiError } from '../../gateway/api-error.ts'
import type { Caller } from '../../gateway/caller.ts'
import { type Answer, call, type Gateway } from '../../gateway/calls.ts'
import { itemsOnAPage } from '../../operations/lists.ts'
import { isList, isRead, type Operation } from '../../operations/operation.ts'
import { type AskPerson, type CallParams, inputForPerson } from './confirmations.ts'
import { type Asked, leanAnswer, namesEvents, readFields } from './lean.ts'
import { asCalled, readNames } from './names.ts'
import { requireAllowed, type Selection, type Ways, waysTo, withWays } from './selection.ts'
import type { ZonesOf } from './time-zones.ts'

type Arguments = Record<string, unknown>

export type Tools = { operations: readonly Operation[]; gateway: Gateway; askPerson: AskPerson; zonesOf: ZonesOf }

/** Of one request. */
export type Context = {
  caller: Caller
  /** As received: the SDK drops members that it cannot copy, such as `__proto__`. */
  message: { params?: CallParams }
  requestId: string
  /** Revisions before 2026-07-28 are legacy, and have other results. */
  era: 'legacy' | 'modern'
  selection: Selection
  /** The URL below which a person finds pages to confirm at; undefined where nobody could sign in. */
  pages: string | undefined
  /** Told of each refusal, and of what was thrown. */
  onRefusal: (refusal: ApiError, thrown: unknown) => void
}

export const findTool = ({ operations }: Tools, called: unknown): Operation | undefined =>
  operations.find(({ name }) => name === called)

export async function callTool(
  operation: Operation,
  tools: Tools,
  context: Context,
): Promise<CallToolResult | InputRequiredResult> {
  const sent = context.message.params?.arguments ?? {}
  const others = tools.operations.filter((other) => other !== operation)
  const ways = waysTo(others, context.caller, context.selection)
  try {
    requireAllowed(operation, context.selection)
    const asked = askedOf(operation, sent, context.caller)
    const { body } = await answerTo(operation, sent, tools.gateway, context.caller)
    const zones = await tools.zonesOf(context.caller, body.data, namesEvents(operation, asked))
    const said = leanAnswer(operation, body, asked, zones, ways)
    const text = context.era === 'modern' ? pointer(said) : JSON.stringify(said)
    return {
      content: [{ type: 'text', text }, ...(await images(operation, body.data))],
      structuredContent: said,
    }
  } catch (error) {
    return refusalOf(error, operation, sent, tools.askPerson, context, ways)
  }
}

/** What the caller names of the answer: fields of a list, or those that a change changes. */
function askedOf(operation: Operation, sent: Arguments, caller: Caller): Asked {
  if (!isList(operation)) {
    // A change of what is listed as `ticket_types` is answered as `ticket_type_ids`.
    return { changed: Object.keys(sent.changes ?? {}).flatMap((name) => [name, name.replace(/s?$/, '_id$&')]) }
  }
  // Scopes come before the input.
  const fields = caller.has(operation.scope) ? readFields(operation, sent.fields) : undefined
  return fields === undefined ? { ofEvent: (sent.event ?? sent.event_id ?? null) !== null } : { fields }
}

async function answerTo(operation: Operation, sent: Arguments, gateway: Gateway, caller: Caller): Promise<Answer> {
  try {
    const { input, names } = readNames(operation, sent)
    if (isList(operation)) {
      const { fields: _, limit, ...filters } = input
      return await call(gateway, operation, caller, { ...filters, limit: limit ?? itemsOnAPage.mcp }, undefined, names)
    }
    // A read takes neither fields nor an idempotency key: they are rejected by name.
    if (isRead(operation)) return await call(gateway, operation, caller, input, undefined, names)
    const { idempotency_key, ...rest } = input
    return await call(gateway, operation, caller, rest, idempotency_key, names)
  } catch (error) {
    throw error instanceof ApiError ? asCalled(sent, error) : error
  }
}

async function refusalOf(
  error: unknown,
  operation: Operation,
  sent: Arguments,
  askPerson: AskPerson,
  { caller, message, requestId, era, pages, onRefusal }: Context,
  ways: Ways,
): Promise<CallToolResult | InputRequiredResult> {
  const refused = (thrown: unknown): ApiError => {
    const apiError = toApiError(thrown)
    onRefusal(apiError, thrown)
    return apiError
  }
  const refusal = refused(error)
  if (refusal.code !== 'confirmation_required') return errorResult(refusal, requestId, ways)
  const asked = await askPerson(operation, caller, sent, refusal, pages).catch(refused)
  const input = era === 'modern' ? inputForPerson(asked, operation.title, message.params ?? {}) : undefined
  return input ?? errorResult(asked, requestId, ways)
}

/** Text only, which is what every client shows a model of an error. */
function errorResult(error: ApiError, requestId: string, ways: Ways): CallToolResult {
  const body = withWays(error.body(requestId), ways)
  const { fields } = (body.details ?? {}) as { fields?: { param: string; message: string }[] }
  // The message has the sentences of all fields, unless it is cut.
  if (Array.isArray(fields) && fields.every(({ message }) => body.message.includes(message))) {
    body.details = { ...(body.details as object), fields: fields.map(({ param }) => param) }
  }
  return { content: [{ type: 'text', text: JSON.stringify({ error: body }) }], isError: true }
}

/** Clients of revision 2026-07-28 read structured content. Those of earlier ones may read the text only, and get it whole. */
function pointer({ data, has_more }: Record<string, unknown>): string {
  if (!Array.isArray(data)) return 'The answer is in structuredContent.'
  return `${data.length} in structuredContent${has_more ? '; there are more' : ''}.`
}

async function images(operation: Operation, data: unknown): Promise<CallToolResult['content']> {
  const png = operation.pictures?.png
  if (png === undefined) return []
  const image = Buffer.from(await png.draw(data))
  return [{ type: 'image', data: image.toString('base64'), mimeType: png.mediaType }]
}
