// The calls of the door, by fetch. Tells what the page must tell apart: no network, a key that is refused, anything else.

import { base } from './base.ts'
import type { DoorLink } from './link.ts'
import type { Direction, Door, Point, Reason, Ticket } from './offline-rules.ts'
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
  } | null
  earlier: { scanned_at: string; device: string | null } | null
  scanned_at: string
  device: string | null
}

export type Conflict = { id: string; check_in: CheckIn; earlier: CheckIn | null }

/** No answer, or one to be had later: the network, the server, or the rate limit. */
export class Unreachable extends Error {
  readonly retryAfterSeconds: number
  constructor(retryAfterSeconds = 0) {
    super('unreachable')
    this.retryAfterSeconds = retryAfterSeconds
  }
}
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

async function call<T>(
  link: DoorLink,
  method: 'GET' | 'POST',
  path: string,
  wait: number,
  body?: unknown,
  idempotencyKey?: string,
): Promise<T> {
  let status: number
  let answer: { data?: unknown; error?: ApiError }
  let retryAfter: number
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
    retryAfter = Number(response.headers.get('retry-after')) || 0
    // The page of a captive portal is no JSON.
    answer = await response.json()
  } catch {
    throw new Unreachable()
  }
  if (status < 300 && answer.data !== undefined) return answer as T
  if (answer.error?.code === 'out_of_time') throw new OutOfTime(retryAfter)
  if (answer.error === undefined || status === 429 || status >= 500) throw new Unreachable(retryAfter)
  throw new (status === 401 || status === 403 ? KeyRefused : Refused)(status, answer.error)
}

const timeoutMs = 20_000

export const getDoorList = (link: DoorLink, cursor: string | null): Promise<DoorList> =>
  call<{ data: DoorList }>(
    link,
    'GET',
    `/events/${link.event_id}/door-list${cursor === null ? '' : `?cursor=${encodeURIComponent(cursor)}`}`,
    timeoutMs,
  ).then(({ data }) => data)

export const listConflicts = (link: DoorLink): Promise<Conflict[]> =>
  call<{ data: Conflict[] }>(link, 'GET', `/events/${link.event_id}/check-in-conflicts?limit=100`, timeoutMs).then(
    ({ data }) => data,
  )

/** The verdicts by scan_id, of as many scans as the server had time for, the earliest first. One that was uploaded before keeps its first verdict. */
export async function upload(
  link: DoorLink,
  scans: readonly WaitingScan[],
  wait = timeoutMs,
): Promise<Map<string, CheckIn>> {
  const { data } = await call<{ data: { results: { scan_id: string; check_in: CheckIn }[] } }>(
    link,
    'POST',
    '/check-ins/batch',
    wait,
    {
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
    },
  )
  if (data.results.length === 0) throw new Unreachable()
  return new Map(data.results.map(({ scan_id, check_in }) => [scan_id, check_in]))
}

export const undo = (link: DoorLink, checkInId: string, wait = timeoutMs): Promise<unknown> =>
  call(link, 'POST', `/check-ins/${checkInId}/undo`, wait)

/** What the key may do, and until when. */
export type Rights = { scopes: string[]; expires_at: string | null }

export const getRights = (link: DoorLink): Promise<Rights> =>
  call<{ data: Rights }>(link, 'GET', '/me', timeoutMs).then(({ data }) => data)

export type TicketType = { id: string; name: string; price: number; currency: string; sales_status: string }

export const listTicketTypes = (link: DoorLink): Promise<TicketType[]> =>
  call<{ data: TicketType[] }>(link, 'GET', `/events/${link.event_id}/ticket-types?limit=100`, timeoutMs).then(
    ({ data }) => data,
  )

/** A write that may be sent again: with the same key it is done once. */
type Write = { idempotencyKey: string }

export const register = (link: DoorLink, guest: object, { idempotencyKey }: Write): Promise<Order> =>
  call<{ data: Order }>(link, 'POST', `/events/${link.event_id}/registrations`, timeoutMs, guest, idempotencyKey).then(
    ({ data }) => data,
  )

export const recordPayment = (
  link: DoorLink,
  order: Order,
  method: Method,
  { idempotencyKey }: Write,
): Promise<Order> =>
  call<{ data: Order }>(
    link,
    'POST',
    `/orders/${order.id}/payments`,
    timeoutMs,
    { amount: order.amount_due, currency: order.currency, method },
    idempotencyKey,
  ).then(({ data }) => data)

export const cancelOrder = (link: DoorLink, order: Order, { idempotencyKey }: Write): Promise<unknown> =>
  call(link, 'POST', `/orders/${order.id}/cancel`, timeoutMs, {}, idempotencyKey)
