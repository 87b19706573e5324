// The calls of the door, by fetch. Tells what the page must tell apart: no network, a key that is refused, anything else.

import { base, type DoorLink } from './link.ts'
import type { Answers, Direction, Door, Point, Reason, Ticket } from './offline-rules.ts'
import type { Method, Order, WaitingScan } from './store.ts'

export type DoorList = {
  event: Door['event'] & { accent_colour: string | null }
  server_time: string
  salt: string
  complete: boolean
  tickets_total: number
  points: Point[]
  ticket_types: { id: string; name: string }[]
  tickets: Ticket[]
  has_more: boolean
  next_cursor: string
}

export type CheckIn = {
  id: string
  result: 'accepted' | 'rejected'
  reason: Reason | null
  direction: Direction
  check_in_point_id: string | null
  admitted: boolean | null
  attendee: {
    id: string
    name: string
    company: string | null
    ticket_type: { name: string }
    checked_in_at: string | null
    answers: Answers
  } | null
  earlier: { scanned_at: string; device: string | null } | null
  scanned_at: string
  device: string | null
}

export type Conflict = { id: string; check_in: CheckIn; earlier: CheckIn | null }

/** No answer, or one to be had later: the network, the server, or the rate limit. */
export class Unreachable extends Error {}
/** The server gave the request up, because it took too long: less may be sent. */
export class OutOfTime extends Unreachable {}
/** An answer that says no. */
export class Refusal extends Error {
  readonly status: number
  readonly code: string
  /** The field that it is about. */
  readonly param: string | null
  readonly details: Record<string, unknown>
  constructor(status: number, { code, message, param, details }: ApiError) {
    super(message)
    this.status = status
    this.code = code
    this.param = param ?? null
    this.details = details ?? {}
  }
}
/** The key is revoked, expired, unknown or lacks the scope. */
export class KeyRefused extends Refusal {}
export class Refused extends Refusal {}
type ApiError = { code: string; message: string; param?: string; details?: Record<string, unknown> }

type Options = { body?: object; idempotencyKey?: string; wait?: number | undefined }

/** @returns the data of the answer. */
async function call<T>(link: DoorLink, method: 'GET' | 'POST', path: string, options: Options = {}): Promise<T> {
  const { body, idempotencyKey, wait = 20_000 } = options
  let status: number
  let answer: { data?: T; error?: ApiError }
  try {
    const response = await fetch(new URL(`api/v1${path}`, base), {
      method,
      headers: {
        Authorization: `Bearer ${link.key}`,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...(idempotencyKey !== undefined && { 'Idempotency-Key': idempotencyKey }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      credentials: 'omit',
      cache: 'no-store',
      signal: AbortSignal.timeout(wait),
    })
    status = response.status
    // The page of a captive portal is no JSON.
    answer = await response.json()
  } catch {
    throw new Unreachable()
  }
  if (status < 300 && answer.data !== undefined) return answer.data
  if (answer.error?.code === 'out_of_time') throw new OutOfTime()
  if (answer.error === undefined || status === 429 || status >= 500) throw new Unreachable()
  throw new (status === 401 || status === 403 ? KeyRefused : Refused)(status, answer.error)
}

export const getDoorList = (link: DoorLink, cursor: string | null): Promise<DoorList> =>
  call(
    link,
    'GET',
    `/events/${link.event_id}/door-list${cursor === null ? '' : `?cursor=${encodeURIComponent(cursor)}`}`,
  )

export const listConflicts = (link: DoorLink): Promise<Conflict[]> =>
  call(link, 'GET', `/events/${link.event_id}/check-in-conflicts?limit=100`)

/** The verdicts by scan_id, of as many scans as the server had time for, the earliest first. One that was uploaded before keeps its first verdict. */
export async function upload(
  link: DoorLink,
  scans: readonly WaitingScan[],
  wait?: number,
): Promise<Map<string, CheckIn>> {
  const body = {
    event_id: link.event_id,
    scans: scans.map((scan) => ({
      scan_id: scan.scan_id,
      ...(scan.attendee_id !== null ? { attendee_id: scan.attendee_id } : { code: scan.code }),
      check_in_point_id: scan.check_in_point_id,
      direction: scan.direction,
      scanned_at: scan.scanned_at,
      admitted: scan.admitted,
      device: scan.device ?? null,
    })),
  }
  type Answer = { results: { scan_id: string; check_in: CheckIn }[] }
  const { results } = await call<Answer>(link, 'POST', '/check-ins/batch', { body, wait })
  if (results.length === 0) throw new Unreachable()
  return new Map(results.map(({ scan_id, check_in }) => [scan_id, check_in]))
}

export const undo = (link: DoorLink, checkInId: string, wait?: number): Promise<unknown> =>
  call(link, 'POST', `/check-ins/${checkInId}/undo`, { wait })

/** What the key may do, and until when. */
export type Rights = { scopes: string[]; expires_at: string | null }

export const getRights = (link: DoorLink): Promise<Rights> => call(link, 'GET', '/me')

export type TicketType = { id: string; name: string; price: number; currency: string; sales_status: string }

export const listTicketTypes = (link: DoorLink): Promise<TicketType[]> =>
  call(link, 'GET', `/events/${link.event_id}/ticket-types?limit=100`)

// Writes that may be sent again: with the same idempotency key each is done once.

export const register = (link: DoorLink, guest: object, idempotencyKey: string): Promise<Order> =>
  call(link, 'POST', `/events/${link.event_id}/registrations`, { body: guest, idempotencyKey })

export function recordPayment(link: DoorLink, order: Order, method: Method, idempotencyKey: string): Promise<Order> {
  const body = { amount: order.amount_due, currency: order.currency, method }
  return call(link, 'POST', `/orders/${order.id}/payments`, { body, idempotencyKey })
}

export const cancelOrder = (link: DoorLink, order: Order, idempotencyKey: string): Promise<unknown> =>
  call(link, 'POST', `/orders/${order.id}/cancel`, { body: {}, idempotencyKey })
