// Registers somebody who came without a ticket, or takes a guest's money, and lets them in. Needs the network for every step; each step is on
// the disk before it is sent, and is sent again as it was when there was no answer, so that nothing happens twice. Draws nothing.

import { cancelOrder, listTicketTypes, Refusal, recordPayment, register, type TicketType, Unreachable } from './api.ts'
import type { DoorLink } from './link.ts'
import type { Ticket } from './offline-rules.ts'
import type { Session } from './session.ts'
import { isExpired, type Method, type Order, type Step, type Typed, type WalkInState } from './store.ts'
import { sync } from './sync.ts'

/** Of whom no address is known. The top-level domain takes no mail (RFC 2606), and the order sends none. */
const nobodysAddress = 'walk-in@door.invalid'
const nothingTyped: Typed = { name: '', email: '', type: '' }
/** Refusals of a payment after which none is possible: paid elsewhere, cancelled, or gone. */
const settled = ['nothing_due', 'order_expired', 'not_found']

export class WalkIn implements WalkInState {
  /** Those that are on sale; null until they are read. */
  types: TicketType[] | null = null
  typed: Typed = nothingTyped
  step: Step | null = null
  order: Order | null = null
  guest: Ticket | null = null
  busy = false
  /** What was asked last has no answer. */
  unanswered = false
  /** What the API says against it. */
  problem: Refusal | null = null

  #session: Session
  #link: DoorLink
  #letIn: (ticket: Ticket) => Promise<boolean>
  #close: () => void

  /** @param letIn says false when nobody can be let in now: another answer is on the screen, or there is no point. */
  constructor(session: Session, link: DoorLink, letIn: (ticket: Ticket) => Promise<boolean>, close: () => void) {
    this.#session = session
    this.#link = link
    this.#letIn = letIn
    this.#close = close
  }

  /** Another one would register the same person again, with another idempotency key. */
  get isUnfinished(): boolean {
    const isOpen = this.order !== null && this.order.isListed !== true
    return this.#isHere && (this.step !== null || isOpen || this.guest !== null)
  }

  get #isHere(): boolean {
    return this.#session.link?.event_id === this.#link.event_id
  }

  /** Not the key itself: whoever does not keep the list keeps no key. */
  get #prefix(): string {
    return this.#link.key.slice(0, 19)
  }

  /** Goes on with what the device kept, or with what a guest has to pay, or an empty form. */
  begin(payer?: Ticket): void {
    const kept = this.#session.walkIn
    if (kept?.event_id === this.#link.event_id && !isExpired(kept)) {
      const { typed, step, order, guest } = kept
      // Another key has idempotency keys of its own.
      Object.assign(this, { typed, order, guest, step: kept.prefix === this.#prefix ? step : null })
    }
    this.unanswered = this.step !== null
    if (this.isUnfinished) return
    const due = payer?.order
    this.order = due ? essentials({ ...due, attendees: [{ ...payer, id: payer.attendee_id }], isListed: true }) : null
    if (this.order === null) this.again()
  }

  type(typed: Typed): void {
    this.typed = typed
    void this.#keep()
  }

  /** The panel is closed: a form of which nothing was sent is put aside. */
  leave(): void {
    if (this.#isHere && !this.isUnfinished) void this.#session.keepWalkIn(null)
  }

  register({ id, price }: TicketType, { name, email }: Typed): void {
    const guest = {
      ticket_type_id: id,
      name: name.trim(),
      ...(email.trim() === '' ? { email: nobodysAddress, send_email: false } : { email: email.trim() }),
      ...(price > 0 && { payment_method: 'cash' }),
    }
    void this.#take({ does: 'register', guest, idempotencyKey: crypto.randomUUID() })
  }

  pay(order: Order, method: Method): void {
    void this.#take({ does: 'pay', order, method, idempotencyKey: crypto.randomUUID() })
  }

  drop(order: Order): void {
    void this.#take({ does: 'cancel', order, idempotencyKey: crypto.randomUUID() })
  }

  async letIn(guest: Ticket): Promise<void> {
    if (await this.#letIn(this.#session.list.of(guest.attendee_id) ?? guest)) {
      this.guest = null
      await this.#finish()
    }
    this.#session.changed()
  }

  /** Sends what has no answer, or reads what is on sale. */
  again(): void {
    void this.#attempt()
  }

  async #take(step: Step): Promise<void> {
    Object.assign(this, { step, problem: null, busy: true })
    this.#session.changed()
    await this.#keep()
    await this.#attempt()
  }

  async #attempt(): Promise<void> {
    const { step } = this
    Object.assign(this, { busy: true, unanswered: false })
    this.#session.changed()
    try {
      if (step !== null) await this.#send(step)
      else if (this.types === null) {
        const types = await listTicketTypes(this.#link)
        this.types = types.filter(({ sales_status }) => sales_status === 'on_sale')
      }
    } catch (error) {
      if (error instanceof Unreachable) this.unanswered = true
      else if (error instanceof Refusal) await this.#refused(error)
      else reportError(error)
    }
    this.busy = false
    this.#session.changed()
    // The way back to the form, of one that was kept.
    const isForm = step !== null && !isOfGuest(step) && this.types === null
    if (isForm && this.problem !== null && !this.isUnfinished) await this.#attempt()
  }

  async #send(step: Step): Promise<void> {
    const link = this.#link
    const { idempotencyKey } = step
    if (step.does === 'cancel') {
      await cancelOrder(link, step.order, idempotencyKey)
      Object.assign(this, { step: null, order: null })
      await this.#finish()
      this.#close()
      return
    }
    const order =
      step.does === 'register'
        ? await register(link, step.guest, idempotencyKey)
        : await recordPayment(link, step.order, step.method ?? 'cash', idempotencyKey)
    const asked = step.does === 'pay' ? step.order : order
    const [first] = asked.attendees
    const isDue = order.amount_due > 0
    Object.assign(this, {
      step: null,
      order: isDue ? essentials({ ...asked, amount_due: order.amount_due }) : null,
      typed: nothingTyped,
    })
    if (!isDue && first !== undefined && this.#isHere) {
      // The payment was for all of the order.
      const guests = order.attendees.map((attendee) => welcome(this.#session, attendee))
      this.guest = guests.find(({ attendee_id }) => attendee_id === first.id) ?? null
      await this.#keep()
      if (this.guest !== null) await this.letIn(this.guest)
    } else await this.#keep()
  }

  async #refused(problem: Refusal): Promise<void> {
    const { step } = this
    Object.assign(this, { problem, step: null })
    // Settled elsewhere, or not to be settled here: the way back to the form.
    if (step?.does === 'cancel' || (step?.does === 'pay' && settled.includes(problem.code))) {
      this.order = null
      // The list says what became of a guest's.
      if (isOfGuest(step)) void sync(this.#session)
      return this.#finish()
    }
    const { amount_due } = problem.details
    if (problem.code === 'overpayment' && this.order !== null && typeof amount_due === 'number') {
      this.order = { ...this.order, amount_due }
    }
    await this.#keep()
  }

  async #finish(): Promise<void> {
    this.typed = nothingTyped
    if (this.#isHere) await this.#session.keepWalkIn(null)
  }

  async #keep(): Promise<void> {
    if (!this.#isHere) return
    const { typed, step, order, guest } = this
    const { event_id } = this.#link
    const kept = { event_id, prefix: this.#prefix, at: Date.now(), typed, step, order, guest }
    await this.#session.keepWalkIn(kept)
  }
}

/** Somebody was registered here, or paid: known before the next refresh says so. */
function welcome(session: Session, attendee: Order['attendees'][number]): Ticket {
  const { id, name, company, ticket_type_id, status } = attendee
  // By its code a new one is known from the next refresh on.
  const known = { attendee_id: id, code_hash: id, entries: [], ...session.list.of(id) }
  const ticket = { ...known, name, company, ticket_type_id, status, order: null }
  session.list.put([ticket])
  session.keepTicket(id)
  return ticket
}

/** It pays for somebody on the list. */
const isOfGuest = (step: Step): boolean => step.does === 'pay' && step.order.isListed === true

/** No more of the buyer stays on the device than is needed: no address, and no code of a ticket. */
const essentials = ({ id, amount_due, currency, attendees, isListed = false }: Order): Order => ({
  ...{ id, amount_due, currency, isListed },
  attendees: attendees.map(({ id, name, company, ticket_type_id, status }) => ({
    id,
    name,
    company,
    ticket_type_id,
    status,
  })),
})
