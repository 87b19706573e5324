// What a caller sends in place of an id. The database looks it up in the transaction of the call (supabase/schemas/00-ground/names.sql);
// until then an id that no object has stands in its place, so that the arguments are validated as they are.

import { hash } from 'node:crypto'
import type { NamedKind } from '../operations/identifiers.ts'

export type Name = {
  /** The argument of the operation. `event` is none: it says of which event the others are. */
  param: string
  /** `order_reference`: what else an order is called is none of it. */
  kind: NamedKind | 'order_reference'
  name: string
  /** The id in its place. */
  id: string
  /** What was chosen by a person is refused: it could be somebody else's. */
  by_id?: boolean
  /** In a list that is judged item by item: what is not found refuses its item, not the call. */
  judged?: boolean
}

// The versions of ids are 4 and 7, and this is 8: RFC 9562, section 5.8.
export function nameOf(param: string, kind: Name['kind'], name: string): Name {
  const digest = hash('sha256', JSON.stringify([kind, name]))
  const id = digest.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')
  return { param, kind, name, id }
}

export const isId = (value: unknown): boolean =>
  typeof value === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(value)
