// Valid arguments for a published JSON schema: ids by the names of their fields, everything else by its type.

import * as fc from 'fast-check'
import type { Random } from '../random.ts'
import type { Stage } from './stage.ts'

export type JsonSchema = {
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: JsonSchema[]
  oneOf?: JsonSchema[]
  allOf?: JsonSchema[]
  properties?: Record<string, JsonSchema>
  required?: string[]
  additionalProperties?: JsonSchema | boolean
  items?: JsonSchema
  minItems?: number
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  format?: string
}

/** @param name of the field, by which an id of the stage is found. */
export function sampleOf(schema: JsonSchema, stage: Stage, random: Random, name = ''): unknown {
  const known = stage.named(name, random)
  const isText = schema.type === 'string' || schema.type === undefined || [schema.type].flat().includes('string')
  if (known !== undefined && isText && schema.enum === undefined && schema.properties === undefined) {
    const forms = schema.anyOf ?? schema.oneOf
    if (forms === undefined || forms.some(({ type }) => type === 'string')) return known
  }
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return random.pick(schema.enum)
  const forms = schema.oneOf ?? schema.anyOf
  if (forms !== undefined) {
    const { properties, required } = schema
    const form = random.pick(forms) ?? {}
    return sampleOf(
      properties
        ? {
            ...form,
            properties: { ...properties, ...form.properties },
            required: [...(required ?? []), ...(form.required ?? [])],
          }
        : form,
      stage,
      random,
      name,
    )
  }
  if (schema.allOf !== undefined)
    return Object.assign({}, ...schema.allOf.map((part) => sampleOf(part, stage, random, name)))
  switch (Array.isArray(schema.type) ? random.pick(schema.type) : schema.type) {
    case 'null':
      return null
    case 'boolean':
      return random.below(2) === 0
    case 'integer':
    case 'number':
      return numberOf(schema, random)
    case 'array':
      return Array.from({ length: Math.max(schema.minItems ?? 0, random.below(3)) }, () =>
        sampleOf(schema.items ?? {}, stage, random, name.replace(/s$/, '')),
      )
    case 'string':
      return textFor(schema, random, name)
    default:
      return objectOf(schema, stage, random)
  }
}

function objectOf({ properties = {}, required = [], additionalProperties }: JsonSchema, stage: Stage, random: Random) {
  const object: Record<string, unknown> = {}
  // Few of the optional ones: many exclude one another.
  const chance = random.pick([0, 0.15, 0.5]) as number
  for (const [name, schema] of Object.entries(properties)) {
    if (required.includes(name) || random.next() < chance) object[name] = sampleOf(schema, stage, random, name)
  }
  if (typeof additionalProperties === 'object' && random.below(2) === 0)
    object[`key_${random.below(9)}`] = sampleOf(additionalProperties, stage, random)
  return object
}

function numberOf({ minimum = 0, maximum = 1_000, exclusiveMinimum, type }: JsonSchema, random: Random): number {
  const least = Math.max(exclusiveMinimum === undefined ? minimum : exclusiveMinimum + 1, -1_000)
  const number = random.between(Math.ceil(least), Math.max(Math.ceil(least), Math.min(maximum, least + 500)))
  return type === 'number' && random.below(3) === 0 ? Math.min(number + 0.5, maximum) : number
}

function textFor({ format, pattern, minLength = 0, maxLength = 30 }: JsonSchema, random: Random, name: string): string {
  const number = random.below(1e6)
  if (/_at$|_after$|_before$|since|until|format/.test(name) || format === 'date-time')
    return new Date(Date.now() + (number - 5e5) * 60_000).toISOString()
  if (format === 'email' || name === 'email') return `guest-${number}@example.com`
  if (format === 'uri' || /url$/.test(name)) return `https://hooks.example.com/${number}`
  if (/timezone/.test(name)) return 'Europe/Berlin'
  if (format === 'uuid') return `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`
  const text = `Sample ${number}`.slice(0, maxLength).padEnd(minLength, 'x')
  if (pattern === undefined || new RegExp(pattern, 'u').test(text)) return text
  return fc.sample(fc.stringMatching(new RegExp(pattern)), { seed: number, numRuns: 1 })[0]?.slice(0, maxLength) ?? text
}
