// A client of the event: carries out commands over REST, one after the other, beside others. Clients share the ids that they
// learn, so that they compete for the same rows. An unexpected answer is recorded, not thrown: the others continue.

import { row, studio } from '../support/database.ts'
import { registerOn } from '../support/event-page.ts'
import { guestUrl, press } from '../support/guest-page.ts'
import { offerUrl } from '../support/offers.ts'
import type { RestAnswer, rest } from '../support/rest.ts'
import { type Command, mayBeRefused } from './commands.ts'

export type Send = ReturnType<typeof rest>

type KnownAttendee = {
  id: string
  orderId: string
  code: string
  version: number
  isCancelled: boolean
  isReopened?: boolean
}
type Line = { id: string; price: number; discount: number; status: string; ticket_code: string; version: number }
type Order = {
  id: string
  status: string
  subtotal: number
  discount_total: number
  total: number
  amount_paid: number
  amount_due: number
  attendees: Line[]
  payments: { amount: number }[]
}
type CheckIn = { id: string }

/** The event, and what its clients have been answered so far. */
export type Known = {
  eventId: string
  pageUrl: string
  ticketTypeIds: string[]
  /** One that admits once, and one that lets in again after an exit. */
  pointIds: string[]
  promoCodeId: string
  promoCode: string
  orderIds: string[]
  attendees: KnownAttendee[]
  /** Codes of which a later one was answered. */
  oldCodes: string[]
  checkInIds: string[]
  entryIds: string[]
  /** The event itself, and so everybody. */
  isCancelled: boolean
  /** What was answered as done. The database must hold just that. */
  done: { orders: number; attendees: number; paid: number; payments: number; accepted: number; undone: number }
  /** What nobody should have been answered. */
  wrong: string[]
  /** What was asked and answered, in the order of the answers. */
  trace: string[]
  tally: Record<string, number>
}

/** Carries out a script to its end. */
export async function carryOut(script: Command[], client: string, send: Send, known: Known): Promise<void> {
  for (const command of script) {
    const asked = performance.now()
    const note = (answer: string) =>
      known.trace.push(
        `${client} ${JSON.stringify(command)} -> ${answer} [${Math.round(performance.now() - asked)} ms]`,
      )
    try {
      const answer = await carryOutOne(command, send, known)
      if (answer === undefined) continue // There is nobody yet whom it could be about.
      const outcome = answer.status < 300 ? String(answer.status) : `${answer.status} ${answer.body.error.code}`
      note(outcome)
      const name = `${command.do} ${outcome}`
      known.tally[name] = (known.tally[name] ?? 0) + 1
      const { error } = answer.body
      if (answer.status >= 300 && !(answer.status < 500 && isExpected(command, error.code))) {
        known.wrong.push(`${client} ${JSON.stringify(command)}: ${answer.status} ${JSON.stringify(error)}`)
      }
    } catch (error) {
      note(String(error))
      known.wrong.push(`${client} ${JSON.stringify(command)}: ${error}`)
    }
  }
}

const isExpected = (command: Command, code: string) => (mayBeRefused[command.do] as string[]).includes(code)

const pick = <T>(from: T[], whom: number): T | undefined => from[whom % from.length]

async function carryOutOne(command: Command, send: Send, known: Known): Promise<RestAnswer | undefined> {
  switch (command.do) {
    case 'register':
      return register(command, send, known)
    case 'register_on_page':
      return registerOnPage(known.ticketTypeIds[command.ticketType] as string, send, known)
    case 'join':
      return join(known.ticketTypeIds[command.ticketType] as string, send, known)
    case 'accept':
      return about(await offersOf(send, known), command.whom, (id) => accept(id, command.pays, send, known))
    case 'take':
    case 'decline':
      return about(await offersOf(send, known), command.whom, (id) => settle(id, command.do, send, known))
    case 'press':
      return about(known.attendees, command.whom, (attendee) => pressForm(command.act, attendee, send, known))
    case 'leave':
      return about(known.entryIds, command.whom, (id) => send('POST', `/waiting-list-entries/${id}/cancel`))
    case 'let_expire':
      return about(await offersOf(send, known), command.whom, (id) => letExpire(id, send))
    case 'pay':
      return pay(command, send, known)
    case 'set_deadline':
      return about(known.orderIds, command.whom, (id) =>
        send('PATCH', `/orders/${id}`, command.to === 'now' ? expireNow() : { payment_due_at: command.to }),
      )
    case 'enforce_deadlines':
      return enforceDeadlines(known)
    case 'remind':
      return about(known.orderIds, command.whom, (id) => send('POST', `/orders/${id}/payment-reminder`))
    case 'reopen':
      return about(known.orderIds, command.whom, (id) => reopen(id, command.dryRun, send, known))
    case 'cancel_order':
      return about(known.orderIds, command.whom, (id) => cancelOrder(id, command.dryRun, send, known))
    case 'cancel_attendee':
      return about(known.attendees, command.whom, async (attendee) => {
        const answer = await send('POST', `/attendees/${attendee.id}/cancel`, { dry_run: command.dryRun })
        if (answer.status < 300 && !command.dryRun) attendee.isCancelled = true
        return answer
      })
    case 'transfer':
      return about(known.attendees, command.whom, (attendee) => transfer(attendee, send, known))
    case 'resend':
      return about(known.attendees, command.whom, ({ id }) => send('POST', `/attendees/${id}/ticket-email`))
    case 'check_in':
      return about(known.attendees, command.whom, ({ code }) => checkIn(code, send, known))
    case 'check_in_at_point':
      return about(known.attendees, command.whom, ({ code }) =>
        checkIn(code, send, known, { check_in_point_id: known.pointIds[command.point], direction: command.direction }),
      )
    case 'check_in_by_old_code':
      return about(known.oldCodes, command.whom, (code) => checkIn(code, send, known))
    case 'check_in_batch':
      return checkInBatch(command.whom, send, known)
    case 'undo':
      return about(known.checkInIds, command.whom, async (id) => {
        const answer = await send('POST', `/check-ins/${id}/undo`)
        if (answer.status < 300) known.done.undone += 1
        return answer
      })
    case 'set_quantity':
    case 'set_price':
      return send('PATCH', `/ticket-types/${known.ticketTypeIds[command.ticketType]}`, {
        [command.do === 'set_price' ? 'price' : 'quantity']: command.to,
      })
    case 'set_capacity':
      return send('PATCH', `/events/${known.eventId}`, { capacity: command.to })
    case 'set_max_redemptions':
      return send('PATCH', `/promo-codes/${known.promoCodeId}`, { max_redemptions: command.to })
    case 'set_promo_code':
      return send('PATCH', `/promo-codes/${known.promoCodeId}`, { status: command.to })
    case 'cancel_event': {
      const answer = await send('POST', `/events/${known.eventId}/cancel`, { dry_run: command.dryRun })
      if (answer.status < 300 && !command.dryRun) known.isCancelled = true
      return answer
    }
  }
}

async function about<T>(
  from: T[],
  whom: number,
  work: (one: T) => Promise<RestAnswer | undefined>,
): Promise<RestAnswer | undefined> {
  const one = pick(from, whom)
  return one === undefined ? undefined : work(one)
}

async function register(
  { guests, pays }: Extract<Command, { do: 'register' }>,
  send: Send,
  known: Known,
): Promise<RestAnswer> {
  const answer = await send('POST', `/events/${known.eventId}/registrations`, {
    attendees: guests.map((type) => ({
      ticket_type_id: known.ticketTypeIds[type],
      name: 'Guest',
      email: 'guest@example.com',
    })),
    ...(pays !== 'nothing' && { payment_method: 'invoice' }),
    ...(pays === 'by promo code' && { promo_code: known.promoCode }),
  })
  if (answer.status < 300) addOrder(answer.body.data, known)
  return answer
}

function addOrder(order: Order, known: Known): void {
  expectSound(order)
  // Of an offer that others took as well.
  if (known.orderIds.includes(order.id)) return
  known.orderIds.push(order.id)
  known.attendees.push(
    ...order.attendees.map(({ id, ticket_code: code, version }) => ({
      id,
      orderId: order.id,
      code,
      version,
      isCancelled: false,
    })),
  )
  known.done.orders += 1
  known.done.attendees += order.attendees.length
}

async function join(ticketTypeId: string, send: Send, known: Known): Promise<RestAnswer> {
  const answer = await send('POST', `/events/${known.eventId}/waiting-list`, {
    ticket_type_id: ticketTypeId,
    name: 'Guest',
    email: `${crypto.randomUUID()}@example.com`,
  })
  if (answer.status < 300) known.entryIds.push(answer.body.data.id)
  return answer
}

/** Those who are offered a place, or anybody of the waiting list. */
async function offersOf(send: Send, { eventId, entryIds }: Known): Promise<string[]> {
  const { body } = await send('GET', `/events/${eventId}/waiting-list?status=offered`)
  return body.data.length > 0 ? body.data.map(({ id }: { id: string }) => id) : entryIds
}

async function accept(entryId: string, pays: boolean, send: Send, known: Known): Promise<RestAnswer> {
  const answer = await send('POST', `/waiting-list-entries/${entryId}/accept`, {
    ...(pays && { payment_method: 'invoice', promo_code: known.promoCode }),
  })
  if (answer.status < 300) addOrder(answer.body.data, known)
  return answer
}

/** What a form was answered, as REST would have it. */
async function byForm(pressed: Promise<{ status: number }>): Promise<RestAnswer> {
  const { status } = await pressed
  const code = status === 404 ? 'not_found' : status === 409 ? 'page_closed' : `page_${status}`
  return { status: status < 400 ? 200 : status, headers: new Headers(), body: { error: { code } } }
}

/** An entry that never had an offer has no link. */
async function settle(entryId: string, act: 'take' | 'decline', send: Send, known: Known) {
  const url = await offerUrl(entryId).catch(() => undefined)
  if (url === undefined) return undefined
  const answer = await byForm(press(`${url}/${act === 'take' ? 'order' : act}`, ''))
  const { order_id } = (await send('GET', `/waiting-list-entries/${entryId}`)).body.data
  if (order_id !== null) await addOrderOf(order_id, send, known)
  return answer
}

/** The page tells nothing of the order: it is found by an address of its own. */
async function registerOnPage(type: string, send: Send, known: Known): Promise<RestAnswer> {
  const guest = { name: 'Guest', email: `${crypto.randomUUID()}@example.com` }
  const answer = await byForm(registerOn(known.pageUrl, { tickets: { [type]: 1 }, guests: [guest] }))
  if (answer.status < 300)
    await addOrderOf((await send('GET', `/attendees?email=${guest.email}`)).body.data[0].order_id, send, known)
  return answer
}

/** One that a page made, with its only ticket. */
async function addOrderOf(id: string, send: Send, known: Known): Promise<void> {
  const order: Order = (await send('GET', `/orders/${id}`)).body.data
  const { ticket_code, version }: Line = (await send('GET', `/attendees/${order.attendees[0]?.id}`)).body.data
  addOrder({ ...order, attendees: order.attendees.map((line) => ({ ...line, ticket_code, version })) }, known)
}

async function pressForm(act: string, attendee: KnownAttendee, send: Send, known: Known): Promise<RestAnswer> {
  const fields = { name: 'Guest', company: crypto.randomUUID(), asked: 'note', 'answer.note': crypto.randomUUID() }
  const email = act === 'pass_on' && { email: 'friend@example.com' }
  const answer = await byForm(press(await guestUrl(attendee.id), act, { ...fields, ...email }))
  if (answer.status >= 300) return answer
  if (act === 'give_back') attendee.isCancelled = true
  if (act === 'pass_on') learnCode((await send('GET', `/attendees/${attendee.id}`)).body.data, attendee, known)
  return answer
}

/** The deadline has passed, and the courier comes by. */
async function letExpire(entryId: string, send: Send): Promise<RestAnswer> {
  const answer = await send('PATCH', `/waiting-list-entries/${entryId}`, { offer_expires_at: '2026-01-01T00:00:00Z' })
  await studio.query('select api.expire_waiting_list_offers()')
  return answer
}

/** Asks what is due first; by the time the money comes in that may be less, or nothing. */
async function pay({ whom, part }: Extract<Command, { do: 'pay' }>, send: Send, known: Known) {
  const id = pick(known.orderIds, whom)
  if (id === undefined) return undefined
  const read = await send('GET', `/orders/${id}`)
  if (read.status >= 300) return read
  expectSound(read.body.data)
  const due: number = read.body.data.amount_due
  const amount = Math.max(1, { all: due, half: Math.ceil(due / 2), one: 1 }[part])
  const answer = await send('POST', `/orders/${id}/payments`, { amount })
  if (answer.status < 300) {
    const order: Order = answer.body.data
    expectSound(order)
    if (order.amount_paid > order.total) throw new Error(`paid more than was due: ${JSON.stringify(order)}`)
    known.done.paid += amount
    known.done.payments += 1
  }
  return answer
}

async function cancelOrder(id: string, dryRun: boolean, send: Send, known: Known): Promise<RestAnswer> {
  const answer = await send('POST', `/orders/${id}/cancel`, { dry_run: dryRun })
  if (answer.status < 300) {
    const order: Order = answer.body.data
    expectSound(order)
    const ids = order.attendees.map((line) => line.id)
    if (!dryRun) for (const attendee of known.attendees) attendee.isCancelled ||= ids.includes(attendee.id)
  }
  return answer
}

async function enforceDeadlines(known: Known): Promise<RestAnswer> {
  const { expired } = await row<{ expired: string[] }>(
    'select private.expire_orders($1) as expired, private.remind_of_payments($1)',
    [known.orderIds],
  )
  for (const attendee of known.attendees) attendee.isCancelled ||= expired.includes(attendee.orderId)
  return { status: 200, headers: new Headers(), body: {} }
}

const expireNow = () => ({ payment_due_at: new Date().toISOString(), expire_now: true })

/** Has an order expire that can, and asks for it again. */
async function reopen(id: string, dryRun: boolean, send: Send, known: Known): Promise<RestAnswer> {
  // Whether its tickets stand in the end, the rules tell: others may have the places by then, or have it expire again.
  for (const attendee of known.attendees) attendee.isReopened ||= attendee.orderId === id
  await send('PATCH', `/orders/${id}`, expireNow())
  await studio.query('select private.expire_orders($1)', [[id]])
  return send('POST', `/orders/${id}/reopen`, { payment_due_at: '2041-01-01T00:00:00Z', dry_run: dryRun })
}

async function transfer(attendee: KnownAttendee, send: Send, known: Known): Promise<RestAnswer> {
  const to = { name: 'Somebody Else', email: 'else@example.com', reissue_ticket: true }
  const answer = await send('PATCH', `/attendees/${attendee.id}`, to)
  if (answer.status < 300) learnCode(answer.body.data, attendee, known)
  return answer
}

/** Of two transfers at once, the one that was made last counts, whichever was answered last. */
function learnCode({ ticket_code: code, version }: Line, attendee: KnownAttendee, known: Known): void {
  const isLater = version > attendee.version
  if (code !== attendee.code) known.oldCodes.push(isLater ? attendee.code : code)
  if (isLater) Object.assign(attendee, { code, version })
}

async function checkIn(code: string, send: Send, known: Known, where: object = {}): Promise<RestAnswer> {
  const answer = await send('POST', '/check-ins', { event_id: known.eventId, code, ...where })
  if (answer.status < 300) known.done.accepted += 1
  const logged: CheckIn | undefined = answer.status < 300 ? answer.body.data : answer.body.error.details?.check_in
  if (logged) known.checkInIds.push(logged.id)
  return answer
}

async function checkInBatch(whom: number[], send: Send, known: Known): Promise<RestAnswer | undefined> {
  if (known.attendees.length === 0) return undefined
  const now = Date.now()
  const answer = await send('POST', '/check-ins/batch', {
    event_id: known.eventId,
    scans: whom.map((one, i) => ({
      scan_id: crypto.randomUUID(),
      code: pick(known.attendees, one)?.code,
      // Some without a point, and some who leave.
      ...(i % 3 > 0 && { check_in_point_id: known.pointIds[1], direction: i % 3 === 1 ? 'entry' : 'exit' }),
      // In the order of the script, which is any order of the tickets.
      scanned_at: new Date(now - 60_000 + i).toISOString(),
    })),
  })
  if (answer.status < 300) {
    known.done.accepted += answer.body.data.accepted
    known.checkInIds.push(...answer.body.data.results.map((result: { check_in: CheckIn }) => result.check_in.id))
  }
  return answer
}

const sum = (amounts: number[]) => amounts.reduce((total, amount) => total + amount, 0)

/** Every answer shows one moment, in which the order adds up. */
function expectSound(order: Order): void {
  const standing = order.attendees.filter((line) => line.status !== 'cancelled')
  const isSound =
    order.total === order.subtotal - order.discount_total &&
    order.amount_paid === sum(order.payments.map((payment) => payment.amount)) &&
    (order.status === 'cancelled'
      ? standing.length === 0 && order.amount_due === 0
      : standing.length > 0 &&
        order.subtotal === sum(standing.map((line) => line.price)) &&
        order.discount_total === sum(standing.map((line) => line.discount)) &&
        order.amount_due === Math.max(order.total - order.amount_paid, 0) &&
        (order.status === 'completed') === (order.amount_due === 0) &&
        standing.every((line) => line.status === (order.status === 'completed' ? 'active' : 'awaiting_payment')))
  if (!isSound) throw new Error(`an order that does not add up: ${JSON.stringify(order)}`)
}
