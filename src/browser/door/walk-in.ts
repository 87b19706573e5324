// Registers somebody who came without a ticket, takes the money, and lets them in. Needs the network for every step; each step is
// sent again as it was when there was no answer, so that nothing happens twice. Draws nothing.

import {
  cancelOrder,
  KeyRefused,
  listTicketTypes,
  type Order,
  Refused,
  recordCash,
  register,
  type TicketType,
  Unreachable,
} from './api.ts'
import type { DoorLink } from './link.ts'
import type { Ticket } from './offline-rules.ts'
import type { Session } from './session.ts'

/** Of whom no address is known. The top-level domain takes no mail (RFC 2606), and the order sends none. */
const nobodysAddress = 'walk-in@door.invalid'

export type Guest = { type: TicketType; name: string; email: string }

export class WalkIn {
  /** Those that are on sale; null until they are read. */
  types: TicketType[] | null = null
  /** That is to be paid. */
  order: Order | null = null
  /** Who is registered and has paid, and was not let in yet. */
  guest: Ticket | null = null
  busy = false
  /** What was tried last, without an answer. */
  again: (() => void) | null = null
  /** What the API says against it. */
  problem: string | null = null

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
    if (!this.#isHere) return false
    const isTried = this.types !== null && (this.busy || this.again !== null)
    return isTried || this.order !== null || this.guest !== null
  }

  get #isHere(): boolean {
    return this.#session.link?.event_id === this.#link.event_id
  }

  read(): void {
    this.#attempt(async () => {
      const types = await listTicketTypes(this.#link)
      this.types = types.filter(({ sales_status }) => sales_status === 'on_sale')
    })
  }

  register({ type, name, email }: Guest): void {
    const write = { idempotencyKey: crypto.randomUUID() }
    const guest = {
      ticket_type_id: type.id,
      name,
      ...(email === '' ? { email: nobodysAddress, send_email: false } : { email }),
      ...(type.price > 0 && { payment_method: 'cash' }),
    }
    this.#attempt(async () => {
      const order = await register(this.#link, guest, write)
      if (order.amount_due > 0) this.order = order
      else await this.#enter(order)
    })
  }

  takeCash(order: Order): void {
    const write = { idempotencyKey: crypto.randomUUID() }
    this.#attempt(async () => await this.#enter(await recordCash(this.#link, order, write)))
  }

  drop(order: Order): void {
    const write = { idempotencyKey: crypto.randomUUID() }
    this.#attempt(async () => {
      try {
        await cancelOrder(this.#link, order, write)
      } catch (error) {
        // Settled elsewhere, or not to be settled here: the way back to the form.
        if (!(error instanceof Unreachable)) this.order = null
        throw error
      }
      this.order = null
      this.#close()
    })
  }

  async letIn(guest: Ticket): Promise<void> {
    if (await this.#letIn(guest)) this.guest = null
    this.#session.changed()
  }

  async #enter(order: Order): Promise<void> {
    const [attendee] = order.attendees
    this.order = null
    if (attendee === undefined || !this.#isHere) return
    this.guest = this.#session.welcomeNew(attendee)
    await this.letIn(this.guest)
  }

  #attempt(step: () => Promise<void>): void {
    const attempt = async () => {
      Object.assign(this, { busy: true, again: null, problem: null })
      this.#session.changed()
      try {
        await step()
      } catch (error) {
        if (error instanceof Unreachable) this.again = () => void attempt()
        else if (error instanceof Refused || error instanceof KeyRefused) this.problem = error.message
        else reportError(error)
      }
      this.busy = false
      this.#session.changed()
    }
    void attempt()
  }
}
