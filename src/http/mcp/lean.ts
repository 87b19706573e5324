// What MCP answers of what REST answers: the fields that a model uses, without nulls, with money and times said as people say them.
// An operation declares its fields (`lean`); nothing here knows one.

import * as z from 'zod'
import { validationFailed } from '../../gateway/validation.ts'
import { moneyFields } from '../../operations/fields.ts'
import { isList, type Operation } from '../../operations/operation.ts'
import { type Ways, withWays } from './selection.ts'
import type { TimeZones } from './time-zones.ts'
import { moneyText, periodText, timeText } from './words.ts'

type Body = Record<string, unknown>

/** What is known of a value from the declaration. */
type Shape =
  | { kind: 'money' | 'time' | 'text' | 'other' }
  | { kind: 'list'; of: Shape }
  | { kind: 'object'; fields: Map<string, Shape> }

/** Which fields are answered: those of `members`, and all others with `others`. */
type Plan = { others: boolean; members: Map<string, Plan> }

/** `ofEvent`: whoever asked named the event, so that no row has to. */
type Asked = { fields?: string[]; changed?: string[]; ofEvent?: boolean }

/** What an object says to those inside it, and how much of a text is answered. */
type Setting = {
  timezone?: string | undefined
  currency?: string | undefined
  longest: number
  zones: TimeZones
  ways: Ways
}

type Compiled = { beside: Shape; data: Shape; plan: Plan }

const everything: Plan = { others: true, members: new Map() }
const other: Shape = { kind: 'other' }
// In a list, of which twenty are read at once: characters of a text, of one inside a value, and of all names in a list; and members of a
// value.
const longestText = 80
const longestPart = 60
const longestList = 160
const mostParts = 8
const howToGetAll = 'name the field in fields'
// Of a list inside an answer, such as guests that were refused.
const mostItems = 50

const compiled = new WeakMap<Operation, Compiled>()

/** @param asked what the caller named: fields of a list, and those that a change changes. */
export function leanAnswer(operation: Operation, body: Body, asked: Asked, zones: TimeZones, ways: Ways): Body {
  const { beside, data: shape, plan } = compile(operation)
  const { data, ...rest } = body
  // A text that was asked for by name is answered whole.
  const isWhole = !isList(operation) || (asked.fields !== undefined && !asked.fields.some(isAll))
  const items = operation.leanItems
  const kept = items === undefined ? data : withItems(data as Body, items)
  return {
    data:
      project(kept, shape, planFor(plan, asked), { longest: isWhole ? Infinity : longestText, zones, ways }) ??
      (isList(operation) ? [] : {}),
    ...(project(rest, beside, everything, { longest: Infinity, zones, ways }) as Body | undefined),
  }
}

function planFor(plan: Plan, { fields, changed = [], ofEvent = false }: Asked): Plan {
  const named = (names: string[]) => names.map((name): [string, Plan] => [name, everything])
  if (fields !== undefined) {
    return fields.some(isAll) ? everything : { others: false, members: new Map(named(fields)) }
  }
  if (ofEvent) return { ...plan, members: new Map([...plan.members].filter(([name]) => name !== 'event_id')) }
  return changed.length === 0 ? plan : { ...plan, members: new Map([...named(changed), ...plan.members]) }
}

/** Whether an answer names `event_id` among its fields: it then has the name of the event beside it. */
export const namesEvents = (operation: Operation, asked: Asked): boolean =>
  planFor(compile(operation).plan, asked).members.has('event_id')

/** Names that `fields` may hold. */
export function fieldsOf(operation: Operation): string[] {
  const { data } = compile(operation)
  const item = data.kind === 'list' ? data.of : data
  return item.kind === 'object' ? [...item.fields.keys()] : []
}

/** @throws ApiError 422 */
export function readFields(operation: Operation, fields: unknown): string[] | undefined {
  if (fields == null) return undefined
  const names = fieldsOf(operation)
  // Amounts are said in words beside them.
  const ofWords = (name: unknown) => (typeof name === 'string' ? name.replace(/_text$/, '') : name)
  const isKnown = (name: unknown) => typeof name === 'string' && (isAll(name) || names.includes(name))
  if (Array.isArray(fields) && fields.length > 0 && fields.length <= 100) {
    const named = fields.map(ofWords)
    // Without its id an object cannot be told from others.
    if (named.every(isKnown)) return ['id', ...(named as string[])]
  }
  throw validationFailed([{ param: 'fields', message: `must be a list of ${names.join(', ')}, or ["*"] for all` }])
}

const isAll = (name: string) => name === '*' || name === 'all'

function withItems(data: Body, { list, path, value }: NonNullable<Operation['leanItems']>): Body {
  const items = (data[list] ?? []) as Body[]
  const matching = items
    .map((item, index): Body => ({ index, ...item }))
    .filter((item) => path.split('.').reduce<unknown>((at, name) => (at as Body | undefined)?.[name], item) === value)
  return { ...data, [list]: matching.slice(0, mostItems) }
}

/** @returns undefined for what is not answered: null, and what is empty. */
function project(value: unknown, shape: Shape, plan: Plan, setting: Setting): unknown {
  if (value === null || value === undefined) return undefined
  switch (shape.kind) {
    case 'time':
      return timeText(value as string, setting.timezone)
    case 'text':
      return cut(value as string, setting.longest)
    case 'list': {
      const items = (value as unknown[]).map((item) => project(item, shape.of, plan, setting))
      if (items.length === 0) return undefined
      return setting.longest === Infinity || shape.of.kind === 'object' ? items : firstOf(items)
    }
    case 'object':
      return projectObject(value as Body, shape.fields, plan, setting)
    case 'money':
      return value
    default:
      return bounded(value, setting.longest)
  }
}

function projectObject(value: Body, fields: Map<string, Shape>, plan: Plan, around: Setting): Body | undefined {
  const said = settingOf(value, around)
  const answered: Body = {}
  const amounts = new Set<unknown>()
  for (const name in value) {
    const inside = plan.members.get(name) ?? (plan.others && name !== 'object' ? everything : undefined)
    if (inside === undefined) continue
    const shape = fields.get(name) ?? other
    const member = project(value[name], shape, inside, said)
    if (member === undefined) continue
    answered[name] = member
    // In a list the text of an amount that the row has twice is said once.
    const isSaid = amounts.has(member) && around.longest !== Infinity
    if (shape.kind === 'money' && member !== 0 && said.currency !== undefined && !isSaid) {
      amounts.add(member)
      answered[`${name}_text`] = moneyText(member as number, said.currency)
    }
    const event = name === 'event_id' && around.zones.get(member as string)?.name
    if (event) answered.event = cut(event, around.longest)
  }
  if ('starts_at' in answered && 'ends_at' in answered && said.timezone !== undefined) {
    answered.when = periodText(answered.starts_at as string, answered.ends_at as string, said.timezone)
  }
  if (Object.keys(answered).length === 0) return undefined
  // A refusal of one among many, or a warning.
  const isSaid = typeof answered.code === 'string' && typeof answered.message === 'string'
  return isSaid ? withWays(answered as { message: string }, around.ways) : answered
}

function settingOf(value: Body, around: Setting): Setting {
  const timezone = value.timezone ?? around.zones.get(value.event_id as string)?.timezone
  const currency = value.currency ?? (value.revenue as Body | null | undefined)?.currency
  if (typeof timezone !== 'string' && typeof currency !== 'string') return around
  return {
    ...around,
    ...(typeof timezone === 'string' && { timezone }),
    ...(typeof currency === 'string' && { currency }),
  }
}

/** Of identifiers or names, as many as there is room for. */
function firstOf(items: unknown[]): unknown[] {
  let length = 0
  const kept = items.findIndex((item) => {
    length += String(item).length
    return length > longestList
  })
  return kept === -1 ? items : [...items.slice(0, kept), `… [${items.length - kept} more: ${howToGetAll}]`]
}

/** The mark says how to get it whole. */
function cut(text: string, longest: number): string {
  if (text.length <= longest * 1.2) return text
  return `${text.slice(0, longest).toWellFormed()}… [${text.length - longest} more characters: ${howToGetAll}]`
}

/** Of a value that nothing is declared of, such as metadata or the changes of an audit entry. */
function bounded(value: unknown, longest: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Object.keys(value).length === 0) return undefined
  return longest === Infinity ? value : shortened(value)
}

function shortened(value: unknown): unknown {
  if (typeof value === 'string') return cut(value, longestPart)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value)
  const kept = members.slice(0, mostParts).map(([name, member]) => [name, shortened(member)])
  if (Array.isArray(value)) return kept.map(([, member]) => member)
  const left = members.length - kept.length
  return Object.fromEntries(left === 0 ? kept : [...kept, ['…', `${left} more: ${howToGetAll}`]])
}

function compile(operation: Operation): Compiled {
  const known = compiled.get(operation)
  if (known !== undefined) return known
  const { data, ...beside } = operation.output.shape
  const made: Compiled = {
    data: shapeOf(data as z.ZodType),
    beside: shapeOf(z.strictObject(beside as z.ZodRawShape)),
    plan: planOf(operation.lean, operation.leanItems?.list),
  }
  compiled.set(operation, made)
  return made
}

function planOf(paths: readonly string[] = ['*'], numbered?: string): Plan {
  const plan: Plan = { others: false, members: new Map() }
  for (const path of [...paths, ...(numbered === undefined ? [] : [`${numbered}.index`])]) {
    let at = plan
    const names = path.split('.')
    for (const name of names.slice(0, -1)) {
      const next = at.members.get(name) ?? { others: false, members: new Map() }
      at.members.set(name, next)
      at = next
    }
    const last = names.at(-1) as string
    if (last === '*') at.others = true
    else at.members.set(last, everything)
  }
  return plan
}

/** Of a value of several kinds, all fields of all of them: of one name, they are alike. */
function shapeOf(schema: z.core.$ZodType): Shape {
  if (moneyFields.get(schema) !== undefined) return { kind: 'money' }
  const def: { type: string; innerType?: z.core.$ZodType; format?: string } = schema._zod.def
  if (schema instanceof z.ZodArray) return { kind: 'list', of: shapeOf(schema.element) }
  if (schema instanceof z.ZodObject) {
    const entries = Object.entries(schema.shape as Record<string, z.core.$ZodType>)
    return { kind: 'object', fields: new Map(entries.map(([name, member]) => [name, shapeOf(member)])) }
  }
  if (schema instanceof z.ZodUnion) {
    const shapes = (schema.options as z.core.$ZodType[]).map(shapeOf)
    if (!shapes.every((shape) => shape.kind === 'object')) return { kind: 'other' }
    return { kind: 'object', fields: new Map(shapes.flatMap(({ fields }) => [...fields])) }
  }
  if (def.innerType !== undefined) return shapeOf(def.innerType)
  if (def.format === 'datetime') return { kind: 'time' }
  return { kind: def.type === 'string' ? 'text' : 'other' }
}
