// Schemas of the OpenAPI document as rows of a table.

import { code, table } from './markdown.ts'

export type Schema = {
  $ref?: string
  type?: string | string[]
  format?: string
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  description?: string
} & Partial<Record<'minimum' | 'maximum' | 'minLength' | 'maxLength' | 'minItems' | 'maxItems', number>>

export const nameOf = (ref: string): string => ref.split('/').at(-1) ?? ''

/** @param page where objects are described, from the page that links to them. */
export const linkTo = (name: string, page = ''): string => `[${name}](${page}#${name.toLowerCase()})`

const formats: Record<string, string> = { uuid: 'id', 'date-time': 'time', date: 'date', email: 'e-mail address' }

/** As text in a cell: its kind, and its limits. */
export function typeOf(schema: Schema): string {
  const { $ref, const: constant, enum: values, anyOf = schema.oneOf, items, format } = schema
  if ($ref !== undefined) return linkTo(nameOf($ref))
  if (constant !== undefined) return code(`${constant}`)
  if (anyOf !== undefined) return anyOf.map(typeOf).join(' or ')
  if (values !== undefined) return values.map((value) => code(`${value}`)).join(', ')
  if (items !== undefined) return `list of ${typeOf(items)}${rangeOf(schema.minItems, schema.maxItems, '')}`
  const kinds = [schema.type ?? 'any']
    .flat()
    .join(' or ')
    .replace('string', formats[format ?? ''] ?? 'text')
  if (format !== undefined) return kinds
  return (
    kinds + rangeOf(schema.minLength, schema.maxLength, ' characters') + rangeOf(schema.minimum, schema.maximum, '')
  )
}

/** A bound that only keeps a number exact is none. */
function rangeOf(least: number | undefined, most: number | undefined, unit: string): string {
  const [low, high] = [least, most].map((bound) => (Math.abs(bound ?? Infinity) >= 1e12 ? undefined : bound))
  if (low !== undefined && low === high) return `, ${low}${unit}`
  if (high === undefined) return low === undefined || low <= 1 ? '' : `, at least ${low}${unit}`
  return low === undefined || (low <= 1 && unit !== '') ? `, at most ${high}${unit}` : `, ${low} to ${high}${unit}`
}

/** @param mark which fields are marked as such. */
export function fieldTable({ properties = {}, required = [] }: Schema, mark: 'required' | 'optional'): string {
  const rows = Object.entries(properties).map(([name, schema]) => {
    const isMarked = required.includes(name) === (mark === 'required')
    return [code(name), typeOf(schema) + (isMarked ? `, ${mark}` : ''), schema.description ?? '']
  })
  return rows.length === 0 ? '' : table('field | type | meaning', rows)
}
