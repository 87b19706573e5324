// Where the arguments of an operation say which object is meant, derived from its declaration: so each new argument is tried, or has to be
// called plain here.

import type * as z from 'zod'
import { kindOf } from '../../../src/operations/identifiers.ts'
import { isRead, type Operation } from '../../../src/operations/operation.ts'

type ObjectKind = NonNullable<ReturnType<typeof kindOf>> | 'plan'
export const texts = [
  ...(['slug', 'reference', 'external_id', 'ticket_code', 'promo_text', 'email', 'text', 'url', 'cursor'] as const),
  'idempotency_key',
  'request_id',
] as const
/** What a value is of theirs: what has an id, or a text that may be any object's. */
export type Kind = ObjectKind | (typeof texts)[number]

/** `path` is that of the argument; 0 is the first item of a list. */
export type Position = { path: string; kind: Kind }

/** What says nothing of an object: texts and times that are stored or compared as they are. */
const plain = new Set(
  `name description starts_at ends_at starts_after starts_before timezone address city postcode country online_url currency move sales_start_at
   sales_end_at valid_from valid_until guests_may_until notify company payment_status due_after due_before updated_after created_after created_before
   received_at received_after received_before refunded_at payment_due_at offer_expires_at reason names opens_at closes_at device scan_id
   scanned_at label key help answer fields message subject route`.split(/\s+/),
)

const others: Record<string, Kind> = {
  slug: 'slug',
  reference: 'reference',
  external_id: 'external_id',
  external_reference: 'text',
  payment_reference: 'text',
  search: 'text',
  email: 'email',
  cursor: 'cursor',
  promo_code: 'promo_text',
  url: 'url',
  plan_id: 'plan',
  object_id: 'order',
  request_id: 'request_id',
  event: 'event',
  copy_of: 'event',
}

export const isId = (kind: Kind): boolean => !(texts as readonly string[]).includes(kind)

export function positionsOf(operation: Operation): Position[] {
  const { name, input } = operation
  const positions = leavesOf(input).flatMap(([path, type]): Position[] => {
    const words = path.split('.').filter((word) => word !== '0')
    const [last = '', above = ''] = words.toReversed()
    if (last === 'code') return [{ path, kind: name.startsWith('check_in') ? 'ticket_code' : 'promo_text' }]
    // Of a plan, where the list says of what.
    const kind =
      kindOf(last === 'id' ? above.replace(/s$/, '_id') : last === 'ticket_types' ? 'ticket_type_ids' : last) ??
      others[last]
    if (kind !== undefined) return [{ path, kind }]
    if (type === 'string' && !plain.has(last))
      throw new Error(`Does ${path} of ${name} say which object is meant? Say so in positions.ts.`)
    return []
  })
  return isRead(operation) ? positions : [...positions, { path: 'idempotency_key', kind: 'idempotency_key' }]
}

const unwrap = (schema: z.core.$ZodType): z.core.$ZodType =>
  'innerType' in schema._zod.def ? unwrap(schema._zod.def.innerType as z.core.$ZodType) : schema

function leavesOf(schema: z.core.$ZodType, path = ''): [path: string, type: string][] {
  const inner = unwrap(schema)
  const { def } = inner._zod
  const below = (name: string) => (path === '' ? name : `${path}.${name}`)
  if (def.type === 'object') {
    return Object.entries((inner as z.core.$ZodObject)._zod.def.shape).flatMap(([name, field]) =>
      leavesOf(field, below(name)),
    )
  }
  if (def.type === 'array') return leavesOf((inner as z.core.$ZodArray)._zod.def.element, below('0'))
  return [[path, def.type]]
}

type Arguments = Record<string, unknown>

/** The arguments with another value at the path, and what leads there made where it is not. */
export function withValue(args: Arguments, path: string, value: unknown): Arguments {
  const copy = structuredClone(args)
  const words = path.split('.')
  let at = copy as Record<string, unknown>
  for (const [i, word] of words.slice(0, -1).entries()) {
    at[word] ??= words[i + 1] === '0' ? [] : {}
    at = at[word] as Record<string, unknown>
  }
  at[words.at(-1) as string] = value
  return copy
}
