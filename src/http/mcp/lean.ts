// What MCP answers of what REST answers: the fields that a model uses, without nulls, with money and times said as people say them.
// An operation declares its fields (`lean`); nothing here knows one.

import * as z from 'zod'
import { unwrap, validationFailed } from '../../gateway/validation.ts'
import { moneyFields } from '../../operations/fields.ts'
import { isList, type Operation } from '../../operations/operation.ts'
import { oncePerOperation } from './once.ts'
import { type Ways, withWays } from './selection.ts'
import type { TimeZones } from './time-zones.ts'
import { moneyText, periodText, timeText } from './words.ts'

type Body = Record<string, unknown>

type Schema = z.core.$ZodType

/** Which fields are answered, and of these which; `*`: all others. */
interface Plan extends Map<string, Plan> {}

/** What the caller named: fields of a list, those that a change changes, or the event, so that no row has to. */
export type Asked = { fields?: string[]; changed?: string[]; ofEvent?: boolean }

/** What an object says to those inside it, and how much of a text is answered. */
type Setting = {
  timezone?: string
  currency?: string
  longest: number
  zones: TimeZones
  ways: Ways
}

const everything: Plan = new Map()
everything.set('*', everything)
// In a list, of which twenty are read at once: characters of a text, of one inside a value, and of all names in a list; and members of a
// value.
const longestText = 80
const longestPart = 60
const longestList = 160
const mostParts = 8
const howToGetAll = 'name the field in fields'
// Of a list inside an answer, such as guests that were refused.
const mostItems = 50

export function leanAnswer(operation: Operation, body: Body, asked: Asked, zones: TimeZones, ways: Ways): Body {
  const { data, ...rest } = body
  const { data: declared, ...beside } = operation.output.shape
  // A text that was asked for by name is answered whole.
  const isWhole = !isList(operation) || (asked.fields !== undefined && !asked.fields.some(isAll))
  const whole: Setting = { longest: Infinity, zones, ways }
  const setting = isWhole ? whole : { ...whole, longest: longestText }
  const answered = project(itemsOf(operation, data), declared, planFor(operation, asked), setting)
  return { data: answered ?? (isList(operation) ? [] : {}), ...projectObject(rest, beside, everything, whole) }
}

function planFor(operation: Operation, { fields, changed = [], ofEvent = false }: Asked): Plan {
  const plan = planOf(operation)
  const named = (names: string[]) => names.map((name): [string, Plan] => [name, everything])
  if (fields !== undefined) return fields.some(isAll) ? everything : new Map(named(fields))
  if (ofEvent) return new Map([...plan].filter(([name]) => name !== 'event_id'))
  return new Map([...named(changed), ...plan])
}

/** Whether an answer names `event_id` among its fields: it then has the name of the event beside it. */
export const namesEvents = (operation: Operation, asked: Asked): boolean => planFor(operation, asked).has('event_id')

/** Names that `fields` may hold. */
export function fieldsOf({ output }: Operation): string[] {
  const data = unwrap(output.shape.data as Schema)
  return Object.keys(membersOf(data instanceof z.ZodArray ? data.element : data) ?? {})
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

/** The data, with those items alone of a list inside it that the operation declares, each with its place. */
function itemsOf({ leanItems }: Operation, data: unknown): unknown {
  if (leanItems === undefined) return data
  const { list, path, value } = leanItems
  const items = ((data as Body)[list] ?? []) as Body[]
  const matching = items
    .map((item, index): Body => ({ index, ...item }))
    .filter((item) => path.split('.').reduce<unknown>((at, name) => (at as Body | undefined)?.[name], item) === value)
  return { ...(data as Body), [list]: matching.slice(0, mostItems) }
}

/** @returns undefined for what is not answered: null, and what is empty. */
function project(value: unknown, declared: Schema | undefined, plan: Plan, setting: Setting): unknown {
  if (value === null || value === undefined) return undefined
  const schema = declared && unwrap(declared)
  if (schema instanceof z.ZodArray) {
    const items = (value as unknown[]).map((item) => project(item, schema.element, plan, setting))
    if (items.length === 0) return undefined
    return setting.longest === Infinity || membersOf(schema.element) ? items : firstOf(items)
  }
  const members = membersOf(schema)
  if (members !== undefined) return projectObject(value as Body, members, plan, setting)
  const { type, format }: { type?: string; format?: string } = schema?._zod.def ?? {}
  if (format === 'datetime') return timeText(value as string, setting.timezone)
  if (type === 'string') return cut(value as string, setting.longest)
  // Nothing is declared of it, such as metadata or the changes of an audit entry.
  if (typeof value === 'object' && Object.keys(value).length === 0) return undefined
  return setting.longest === Infinity ? value : shortened(value)
}

/** The fields of an object; of one of several forms, all fields of all of them: of one name, they are alike. */
function membersOf(declared: Schema | undefined): Record<string, Schema> | undefined {
  const schema = declared && unwrap(declared)
  if (schema instanceof z.ZodObject) return schema.shape
  if (!(schema instanceof z.ZodUnion)) return undefined
  const forms = (schema.options as Schema[]).map(membersOf)
  return forms.includes(undefined) ? undefined : Object.assign({}, ...forms)
}

const isMoney = (declared: Schema | undefined) =>
  declared !== undefined && moneyFields.get(unwrap(declared)) !== undefined

function projectObject(value: Body, members: Record<string, Schema>, plan: Plan, around: Setting): Body | undefined {
  const said = settingOf(value, around)
  const answered: Body = {}
  const amounts = new Set<unknown>()
  for (const name in value) {
    const inside = plan.get(name) ?? (name === 'object' ? undefined : plan.get('*'))
    if (inside === undefined) continue
    const member = project(value[name], members[name], inside, said)
    if (member === undefined) continue
    answered[name] = member
    // In a list the text of an amount that the row has twice is said once.
    const isSaid = amounts.has(member) && around.longest !== Infinity
    if (isMoney(members[name]) && member !== 0 && said.currency !== undefined && !isSaid) {
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

function shortened(value: unknown): unknown {
  if (typeof value === 'string') return cut(value, longestPart)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value)
  const kept = members.slice(0, mostParts).map(([name, member]) => [name, shortened(member)])
  if (Array.isArray(value)) return kept.map(([, member]) => member)
  const left = members.length - kept.length
  return Object.fromEntries(left === 0 ? kept : [...kept, ['…', `${left} more: ${howToGetAll}`]])
}

const planOf = oncePerOperation(({ lean = ['*'], leanItems }): Plan => {
  const plan: Plan = new Map()
  for (const path of leanItems === undefined ? lean : [...lean, `${leanItems.list}.index`]) {
    const names = path.split('.')
    let at = plan
    for (const name of names.slice(0, -1)) {
      const next = at.get(name) ?? new Map()
      at.set(name, next)
      at = next
    }
    at.set(names.at(-1) as string, everything)
  }
  return plan
})
