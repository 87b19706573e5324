// Calls each operation with what is another organisation's in each place that says which object is meant, and again with what is nobody's.
// The two answers have to be the same, the refusal that is documented, and leave no trace on the other side.

import { randomBytes, randomUUID } from 'node:crypto'
import { namedKindOf } from '../../../src/operations/identifiers.ts'
import { operations } from '../../../src/operations/index.ts'
import { isList, isRead, type Operation } from '../../../src/operations/operation.ts'
import { codesOf } from '../../http/openapi/support.ts'
import { examples } from '../../support/operation-arguments.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../../support/organisation.ts'
import { fingerprint } from '../../support/rows-of.ts'
import { type Answer, type Arguments, ask, comparable, interfacesOf, refusalOf } from './ask.ts'
import type { Interface } from './credentials.ts'
import { isId, type Kind, type Position, positionsOf, withValue } from './positions.ts'
import { newWord, type Them } from './them.ts'

/** Who tries, with everything that a key may have. */
export type Stranger = { apiUrl: string; key: string; organisation: TestOrganisation }

export type Try = { operation: Operation; through: Interface; position: Position; value: string }

export const wordOf = ({ operation, through, position, value }: Try) =>
  `${operation.name} over ${through}, ${position.path}: ${value}`

/** Every way to name what is theirs, to each operation. */
export function triesAgainst({ names }: Them, chosen: readonly Operation[] = operations): Try[] {
  return chosen.flatMap((operation) => {
    const positions = positionsOf(operation)
    const overRest = interfacesOf(operation).flatMap((through) =>
      through === 'mcp' || through === 'connect'
        ? []
        : positions
            .filter(({ kind }) => through === 'rest' || kind !== 'idempotency_key')
            .flatMap((position) =>
              valuesOverRest(names, operation, position).map((value): Try => ({ operation, through, position, value })),
            ),
    )
    if (operation.mcp === false) return overRest
    // An object may stand beside an event that says of which it is.
    const isBeside = takesEventBeside(operation, positions)
    const overMcp = [...positions, ...(isBeside ? [{ path: 'event', kind: 'event' as Kind }] : [])]
    return [
      ...overRest,
      ...overMcp.flatMap((position) =>
        (names[position.kind] ?? []).map((value): Try => ({ operation, through: 'mcp', position, value })),
      ),
    ]
  })
}

/** As src/http/mcp/names.ts has it. */
const takesEventBeside = ({ input }: Operation, positions: Position[]) =>
  !('event_id' in input.shape || 'event' in input.shape) &&
  positions.some(({ path }) => {
    const kind = namedKindOf(path.split('.').findLast((word) => word !== '0') ?? '')
    return kind !== undefined && kind !== 'event' && kind !== 'webhook_endpoint'
  })

/** Over REST an order has its reference as well, in a path, and a plan names what it is about as it likes. */
function valuesOverRest(names: Them['names'], { path: inPath }: Operation, { path, kind }: Position): string[] {
  const all = names[kind] ?? []
  if (!isId(kind) || path === 'event' || path === 'copy_of' || path.endsWith('ticket_types.0')) return all
  return inPath.includes('{order_id}') && kind === 'order' ? all.slice(0, 2) : all.slice(0, 1)
}

/** Of the same form, and nobody's. */
export function twinOf(value: string, { word }: Them): string {
  const id = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/
  if (id.test(value)) return value.slice(0, 24) + randomBytes(6).toString('hex')
  if (value.toLowerCase().includes(word)) {
    const other = newWord()
    return value.replaceAll(word, other).replaceAll(word.toUpperCase(), other.toUpperCase())
  }
  const letters = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
  if (/^[0-9A-Z]{8,16}$/.test(value)) return [...value].map(() => letters[(randomBytes(1)[0] as number) % 32]).join('')
  // Of a cursor the end is a part of the id alone: the page begins at the same place.
  if (/^[A-Za-z0-9_-]{22}$/.test(value))
    return Buffer.concat([Buffer.from(value, 'base64url').subarray(0, 10), randomBytes(6)]).toString('base64url')
  return value.replace(/.{4}$/, randomUUID().slice(0, 4))
}

const exclusive: Record<string, (args: Arguments) => Arguments> = {
  'register_attendee attendees': ({ name, email, company, ...args }) => ({ ...args, attendees: [{ name, email }] }),
  'check_in attendee_id': ({ code, ...args }) => args,
  'check_in_batch scans.0.attendee_id': ({ scans, ...args }) => ({
    ...args,
    scans: (scans as Arguments[]).map(({ code, ...scan }, i) => (i === 0 ? scan : { code, ...scan })),
  }),
  'list_events cursor': ({ sort, ...args }) => args,
  'list_audit_entries object_id': (args) => ({ ...args, object_type: 'order' }),
  'apply_event copy_of': (args) => ({
    copy_of: args.event,
    changes: { name: 'A copy', starts_at: '2027-06-01T18:00:00+02:00' },
  }),
  'apply_event plan_id': () => ({}),
  'create_webhook_endpoint event_ids': (args) => ({ ...args, types: ['order.completed'] }),
}

/** Arguments that are right but for the value, with what cannot stand beside it left out: the same again until they were used. */
function createArguments(us: Stranger) {
  const kept = new Map<string, Arguments>()
  return {
    us,
    async take({ operation: { name }, position: { path } }: Try): Promise<{ args: Arguments; use: () => void }> {
      const found = Object.keys(exclusive).find((key) => `${name} ${path}`.startsWith(key)) ?? name
      const example = examples[name] as (event: TestEvent) => Arguments | Promise<Arguments>
      const args = kept.get(found) ?? (exclusive[found] ?? ((all) => all))(await example(await us.organisation.event()))
      kept.set(found, args)
      return { args, use: () => kept.delete(found) }
    },
  }
}

export type Outcome = { of: Try; theirs: Answer; nobodys: Answer; problems: string[] }

async function trespass(
  one: Try,
  them: Them,
  stranger: () => Promise<ReturnType<typeof createArguments>>,
): Promise<Outcome> {
  const { operation, through, position, value } = one
  const twin = twinOf(value, them)
  const call = async (of: string) => {
    const from = await stranger()
    const { args, use } = await from.take(one)
    const answer = await ask(through, from.us.apiUrl, from.us.key, operation.name, withValue(args, position.path, of))
    if (refusalOf(answer) === undefined && !isRead(operation)) use()
    return answer
  }
  const nobodys = await call(twin)
  const theirs = await call(value)
  return { of: one, theirs, nobodys, problems: [...judge(one, theirs, them), ...compare(theirs, nobodys, value, twin)] }
}

function compare(theirs: Answer, nobodys: Answer, value: string, twin: string): string[] {
  const [a, b] = [comparable(theirs, value), comparable(nobodys, twin)]
  return a === b ? [] : [`differs from what is nobody's:\n${a}\n--- and\n${b}`]
}

/** What says that something is not there: of a list of ticket types that it is not of the event, of a plan that it is unknown. */
const asNotThere = ['not_found', 'validation_failed', 'plan_outdated']

function judge({ operation, through, position, value }: Try, answer: Answer, them: Them): string[] {
  const problems: string[] = []
  const refusal = refusalOf(answer)
  if (answer.status >= 500) problems.push(`answers ${answer.status}`)
  const text = answer.text.replaceAll(value, '')
  const leaked = [...new Set(text.match(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g))].filter((id) => them.ids.has(id))
  if (leaked.length > 0) problems.push(`answers ids of theirs: ${leaked}`)
  if (text.toLowerCase().includes(them.word)) problems.push('answers a text of theirs')
  const documented: string[] = [...codesOf(operation).values()].flat()
  if (refusal !== undefined && ![...documented, ...(through === 'mcp' ? ['not_found'] : [])].includes(refusal.code)) {
    problems.push(`refuses with ${refusal.code}, which is not documented`)
  }
  if (!isId(position.kind)) return problems
  if (refusal !== undefined && !asNotThere.includes(refusal.code)) problems.push(`refuses with ${refusal.code}`)
  if (refusal === undefined && !isEmptyList(operation, answer) && !isRefusedInside(operation, answer)) {
    problems.push('is not refused')
  }
  return problems
}

/** A filter by what is not there finds nothing. */
function isEmptyList(operation: Operation, { text }: Answer): boolean {
  if (!isList(operation)) return false
  const body = JSON.parse(text) as { data?: unknown[]; result?: { structuredContent?: { data: unknown[] } } }
  return (body.data ?? body.result?.structuredContent?.data)?.length === 0
}

/** Where items are judged one by one, the item is refused. */
const isRefusedInside = ({ name, judged }: Operation, { text }: Answer): boolean =>
  (judged !== undefined || name === 'apply_event' || name === 'check_in_batch') &&
  /not_found|unknown_ticket_type|validation_failed/.test(text)

/** Tries one after the other. @returns what is wrong, the rows that changed on the other side included. */
export async function trespassAll(
  tries: Try[],
  apiUrl: string,
  them: Them,
  seen: (outcome: Outcome) => void = () => {},
): Promise<string[]> {
  const problems: string[] = []
  const before = await fingerprint(them.id)
  const newStranger = async () => {
    const organisation = await createOrganisation()
    return createArguments({ apiUrl, key: await organisation.key(), organisation })
  }
  for (const group of Map.groupBy(tries, ({ operation }) => operation.name).values()) {
    const us = await newStranger()
    for (const one of group) {
      // What is written by a name may be written once.
      const isKept = !isRead(one.operation) && !isId(one.position.kind)
      const outcome = await trespass(one, them, isKept ? newStranger : async () => us)
      seen(outcome)
      problems.push(...outcome.problems.map((problem) => `${wordOf(one)}: ${problem}`))
    }
  }
  const after = await fingerprint(them.id)
  const changed = Object.keys(after).filter((table) => after[table] !== before[table])
  return changed.length === 0 ? problems : [...problems, `rows of theirs changed in ${changed}`]
}
