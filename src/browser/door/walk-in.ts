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
  busy = false
  /** What was tried last, without an answer. */
  again: (() => void) | null = null
  /** What the API says against it. */
  problem: string | null = null

  #session: Session
  #link: DoorLink
  #letIn: (ticket: Ticket) => void
  #close: () => void

  constructor(session: Session, link: DoorLink, letIn: (ticket: Ticket) => void, close: () => void) {
    this.#session = session
    this.#link = link
    this.#letIn = letIn
    this.#close = close
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
      else this.#enter(order)
    })
  }

  takeCash(order: Order): void {
    const write = { idempotencyKey: crypto.randomUUID() }
    this.#attempt(async () => this.#enter(await recordCash(this.#link, order, write)))
  }

  drop(order: Order): void {
    const write = { idempotencyKey: crypto.randomUUID() }
    this.#attempt(async () => {
      await cancelOrder(this.#link, order, write)
      this.#close()
    })
  }

  #enter(order: Order): void {
    const [attendee] = order.attendees
    if (attendee !== undefined) this.#letIn(this.#session.welcomeNew(attendee))
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
