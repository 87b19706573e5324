// What the arguments that are ids are ids of, and what lists these objects: for refusals, which name what helps next.

import { operations } from './index.ts'

type Identifier = {
  /** In a sentence. */
  noun: string
  /** The tool of MCP whose answer has the id. */
  tool: string
  /** The operation that REST names in its place. */
  route?: string
  /** Over MCP an argument takes what it is called as well as the id. */
  isNamed?: true
}

export const identifiers = {
  event: { noun: 'an event', tool: 'list_events', isNamed: true },
  ticket_type: { noun: 'a ticket type', tool: 'list_ticket_types', isNamed: true },
  promo_code: { noun: 'a promo code', tool: 'list_promo_codes', isNamed: true },
  question: { noun: 'a question', tool: 'list_questions', isNamed: true },
  order: { noun: 'an order', tool: 'list_orders', isNamed: true },
  attendee: { noun: 'an attendee', tool: 'list_attendees', isNamed: true },
  waiting_list_entry: { noun: 'a waiting-list entry', tool: 'list_waiting_list_entries', isNamed: true },
  check_in_point: { noun: 'a check-in point', tool: 'get_event_summary', route: 'list_check_in_points', isNamed: true },
  webhook_endpoint: { noun: 'a webhook endpoint', tool: 'list_webhook_endpoints', isNamed: true },
  payment: { noun: 'a payment', tool: 'get_order' },
  check_in: { noun: 'a check-in', tool: 'list_check_ins' },
  webhook_delivery: { noun: 'a delivery', tool: 'list_webhook_deliveries' },
  sent_email: { noun: 'an e-mail', tool: 'list_emails' },
  notification: { noun: 'a notification', tool: 'list_notifications' },
} as const satisfies Record<string, Identifier>

/** What has the form of a reference of an order. */
export const reference = /^[0-9A-Za-z]{4}[ -]?[0-9A-Za-z]{4}$/

/** However it is typed: private.code_form. */
export const isReference = (text: string) => reference.test(text.normalize('NFKC').replace(/[^0-9A-Za-z]/g, ''))

type Kind = keyof typeof identifiers

/** Kinds that arguments may name otherwise than by their id. */
export type NamedKind = { [K in Kind]: (typeof identifiers)[K] extends { isNamed: true } ? K : never }[Kind]

const kindsOfOthers = new Map<string, Kind>([
  ['after', 'notification'],
  ['email_id', 'sent_email'],
])

/** The kind of object that an argument is the id of; undefined for `object_id`, which is of any kind. */
export function kindOf(argument: string): Kind | undefined {
  const kind = argument.replace(/_ids?$/, '')
  return Object.hasOwn(identifiers, kind) && kind !== argument ? (kind as Kind) : kindsOfOthers.get(argument)
}

export function namedKindOf(argument: string): NamedKind | undefined {
  const kind = kindOf(argument)
  return kind !== undefined && 'isNamed' in identifiers[kind] ? (kind as NamedKind) : undefined
}

/** `list_events` or `GET /api/v1/events`. */
function listOf(kind: Kind, source: string): string {
  const { tool, route = tool }: Identifier = identifiers[kind]
  return source === 'mcp' ? tool : `GET /api/v1${operations.find(({ name }) => name === route)?.path}`
}

/**
 * Why a value is no id: what is wanted, and where it stands.
 *
 * @param inPath arguments that stand in the path.
 */
export function notAnId(argument: string, source: string, inPath: string[] = []): string {
  const kind = kindOf(argument)
  if (kind === undefined) return 'must be the id that the object shows'
  const wanted =
    source === 'mcp' && 'isNamed' in identifiers[kind]
      ? `the name of ${identifiers[kind].noun} on one line`
      : `the id ${kind === 'order' && inPath.includes(argument) ? 'or reference ' : ''}of ${identifiers[kind].noun}`
  return `must be ${wanted} (${listOf(kind, source)} shows it)`
}

/** The way out for an object that was not found. */
export function whereToLook(argument: string, source: string): string | undefined {
  const kind = kindOf(argument) ?? (argument in identifiers ? (argument as Kind) : undefined)
  if (kind === undefined) return undefined
  return `${listOf(kind, source)} lists those of your organisation.`
}
