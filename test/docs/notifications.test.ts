// What notifies of what, as docs/reference/notifications.md has it: each fact is done, and the types that it left in the log are
// compared. The facts share an organisation, so they come one after the other.

import { beforeAll, expect, test } from 'vitest'
import { effects } from '../../src/operations/notification-effects.ts'
import { notificationTypes } from '../../src/operations/webhook-endpoints.ts'
import { row, studio } from '../support/database.ts'
import { overRest } from '../support/interfaces.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { listenIn, type Told } from '../support/outbox.ts'
import { rest } from '../support/rest.ts'
import { addAttendee, edit, remove } from '../support/studio.ts'

let organisation: TestOrganisation
let send: ReturnType<typeof rest>
let told: () => Promise<Told[]>
beforeAll(async () => {
  organisation = await createOrganisation()
  send = rest(await organisation.key())
  told = await listenIn(organisation.id)
})

type World = Awaited<ReturnType<typeof arrange>>
/** An event, and what facts do to it. */
async function arrange(options?: { capacity?: number; quantity?: number; status?: 'draft' }) {
  const event = await organisation.event(options)
  const priced = await event.ticketType({ price: 4900 })
  const act = async (method: string, path: string, body?: object, headers?: Record<string, string>) => {
    const answer = await send(method, path, body, headers)
    expect([path, answer.status]).toEqual([path, expect.toSatisfy((status) => status < 300)])
    return answer.body.data
  }
  const actions = overRest(send, event)
  return {
    ...actions,
    event,
    act,
    unpaid: () => actions.register({ ticketTypeId: priced, invoice: true }),
    add: (orderId: string) =>
      act('POST', `/orders/${orderId}/attendees`, { ticket_type_id: priced, name: 'Ada', email: 'ada@example.com' }),
    attendeesOf: async (orderId: string): Promise<{ id: string; ticket_code: string }[]> =>
      act('GET', `/attendees?order_id=${orderId}`),
    attendee: async (registration = {}): Promise<{ id: string; ticket_code: string }> =>
      (await act('GET', `/attendees?order_id=${await actions.register(registration)}`))[0],
    emptyOrder: () => addEmptyOrder(event),
    waits: async (name: string): Promise<string> =>
      (
        await act('POST', `/events/${event.id}/waiting-list`, {
          ticket_type_id: event.ticketTypeId,
          name,
          email: `${name}@example.com`,
        })
      ).id,
  }
}

const addEmptyOrder = async (event: TestEvent) =>
  (
    await row<{ id: string }>(
      "insert into public.orders (event_id, name, email) values ($1, 'Guest', 'guest@example.com') returning id",
      [event.id],
    )
  ).id

/** One guest has the only ticket, and Ann and Bea wait for it. */
async function soldOut() {
  const world = await arrange({ quantity: 1 })
  const orderId = await world.register()
  return { ...world, orderId, entries: [await world.waits('ann'), await world.waits('bea')] as const }
}

/** Arranges what a fact needs, and answers the fact itself. Those that say several things do each. */
const facts: Record<string, () => Promise<(() => Promise<unknown>)[]>> = {
  'guests are registered, and nothing is to be paid': each(
    (w) => w.register({ guests: 2 }),
    (w) => w.register({ invoice: true }),
  ),
  'guests are registered, to be paid': each((w) => w.unpaid()),
  'an import adds a guest': each((w) => imported(w, 'Mary')),
  'an import changes a guest': each(async (w) => {
    await imported(w, 'Mary')
    return () => imported(w, 'Mary Jackson')
  }),
  'in Studio, an order is added, without attendees': each((w) => w.emptyOrder()),
  '… then its first attendee': each(async (w) => {
    const id = await w.emptyOrder()
    return () => addAttendee(id, w.event.ticketTypeId)
  }),
  '… then another attendee': each(async (w) => {
    const id = await w.emptyOrder()
    await addAttendee(id, w.event.ticketTypeId)
    return () => addAttendee(id, w.event.ticketTypeId)
  }),
  'an attendee is added to an order that is not paid': each(async (w) => {
    const id = await w.unpaid()
    return () => w.add(id)
  }),
  'a part of an order is paid': each(async (w) => {
    const id = await w.unpaid()
    return () => w.pay(id, 900)
  }),
  'the rest of it is paid': each(async (w) => {
    const id = await w.unpaid()
    await w.pay(id, 900)
    return () => w.pay(id, 4000)
  }),
  'a payment is voided': each(async (w) => {
    const id = await w.unpaid()
    await w.pay(id, 4900)
    const { payments } = await w.act('GET', `/orders/${id}`)
    return () => w.act('POST', `/payments/${payments[0].id}/void`, {})
  }),
  'a refund is recorded': each(async (w) => {
    const id = await w.unpaid()
    await w.pay(id, 4900)
    return () => w.act('POST', `/orders/${id}/refunds`, { amount: 900 })
  }),
  'a payment deadline is moved': each(async (w) => {
    const id = await w.unpaid()
    return () => w.act('PATCH', `/orders/${id}`, { payment_due_at: new Date(Date.now() + 3_600_000).toISOString() })
  }),
  'the buyer is reminded of it': each(async (w) => {
    const id = await w.unpaid()
    await w.act('PATCH', `/orders/${id}`, { payment_due_at: new Date(Date.now() + 3_600_000).toISOString() })
    return async () => {
      const { reminded } = await row<{ reminded: string[] }>('select private.remind_of_payments($1) as reminded', [
        [id],
      ])
      expect(reminded).toEqual([id])
    }
  }),
  'an order expires after its payment deadline': each(async (w) => {
    const id = await w.unpaid()
    await w.act('PATCH', `/orders/${id}`, { payment_due_at: new Date().toISOString(), expire_now: true })
    return () => studio.query('select private.expire_orders($1)', [[id]])
  }),
  'an order that has expired is reopened': each(async (w) => {
    const id = await w.unpaid()
    await w.act('PATCH', `/orders/${id}`, { payment_due_at: new Date().toISOString(), expire_now: true })
    // Skips an order that another test's round of deadlines is just expiring.
    await studio.query('select private.expire_orders($1)', [[id]])
    const status = async () =>
      (await studio.query('select status from public.orders where id = $1', [id])).rows[0].status
    await expect.poll(status).toBe('cancelled')
    return () => w.act('POST', `/orders/${id}/reopen`)
  }),
  'an order is cancelled, or its last ticket': each(
    async (w) => {
      const id = await w.register({ guests: 2 })
      return () => w.cancelOrder(id)
    },
    async (w) => {
      const { id } = await w.attendee()
      return () => w.cancelAttendee(id)
    },
  ),
  'another ticket of an order is cancelled': each(async (w) => {
    const { id } = await w.attendee({ guests: 2 })
    return () => w.cancelAttendee(id)
  }),
  '… and lowers its total': each(async (w) => {
    const id = await w.unpaid()
    const added = await w.add(id)
    return () => w.cancelAttendee(added.id)
  }),
  'a cancelled ticket is deleted by hand': each(async (w) => {
    const { id } = await w.attendee()
    await w.cancelAttendee(id)
    return () => remove('attendees', id)
  }),
  'an attendee is edited, or their ticket reissued': each(
    async (w) => {
      const { id } = await w.attendee()
      return () => w.rename(id, 'Mary')
    },
    async (w) => {
      const { id } = await w.attendee()
      return () => w.transfer(id)
    },
  ),
  'the contact of an order is edited': each(async (w) => {
    const id = await w.register()
    return () => edit('orders', id, "name = 'Office'")
  }),
  'a person is erased': each(async (w) => {
    const [latest] = await w.attendeesOf(await w.register({ guests: 2 }))
    return () => w.act('POST', `/attendees/${latest?.id}/erase`, {})
  }),
  '… who is the contact of the order as well': each(async (w) => {
    const { id } = await w.attendee()
    return () => w.act('POST', `/attendees/${id}/erase`, {})
  }),
  'a ticket is sent once more': each(async (w) => {
    const { id } = await w.attendee()
    return () => w.act('POST', `/attendees/${id}/ticket-email`)
  }),
  'an e-mail comes back, or is given up': each(
    async (w) => {
      const { id } = await w.attendee()
      return () => edit('attendees', id, "ticket_email_status = 'bounced'")
    },
    async (w) => {
      const id = await w.unpaid()
      return () =>
        studio.query("update public.emails set status = 'failed', next_attempt_at = null where order_id = $1", [id])
    },
  ),
  'an entry is scanned': each(async (w) => {
    const { ticket_code } = await w.attendee()
    return () => w.scan(ticket_code)
  }),
  'an exit is scanned': each(async (w) => {
    const { ticket_code: code } = await w.attendee()
    await w.scan(code)
    return () => w.act('POST', '/check-ins', { event_id: w.event.id, code, direction: 'exit' })
  }),
  'a scan is rejected': each(async (w) => {
    const { ticket_code } = await w.attendee()
    await w.scan(ticket_code)
    return () => w.scan(ticket_code)
  }),
  'a check-in is undone': each(async (w) => {
    const { id } = await w.scan((await w.attendee()).ticket_code)
    return () => w.undo(id)
  }),
  'a draft, a ticket type, a promo code or a check-in point is added or edited': each(async (w) => async () => {
    await w.act('POST', '/events', { name: 'Fair' })
    const path = `/events/${w.event.id}`
    const type = await w.act('POST', `${path}/ticket-types`, { name: 'General' })
    await w.act('PATCH', `/ticket-types/${type.id}`, { name: 'Everybody' })
    const code = await w.act('POST', `${path}/promo-codes`, { code: 'SPRING', percent_off: 20 })
    await w.act('PATCH', `/promo-codes/${code.id}`, { percent_off: 30 })
    const point = await w.act('POST', `${path}/check-in-points`, { name: 'Gate' })
    await w.act('PATCH', `/check-in-points/${point.id}`, { name: 'Main gate' })
  }),
  'an event is published': async () => {
    const w = await arrange({ status: 'draft' })
    return [() => w.setStatus('published')]
  },
  'an event that is no draft is edited, unpublished or completed': each(
    (w) => w.renameEvent('Summer fair'),
    (w) => w.setStatus('draft'),
    (w) => w.setStatus('completed'),
  ),
  'an event is cancelled, with its orders and waiting list': async () => {
    const w = await soldOut()
    return [() => w.setStatus('cancelled')]
  },
  'the last place of a ticket type or of the event is taken': async () => {
    const [few, small] = [await arrange({ quantity: 1 }), await arrange({ capacity: 1 })]
    return [() => few.register(), () => small.register()]
  },
  'a quantity is lowered to what is sold': async () => {
    const w = await arrange({ quantity: 3 })
    await w.register()
    return [() => w.act('PATCH', `/ticket-types/${w.event.ticketTypeId}`, { quantity: 1 })]
  },
  'a capacity is lowered to what is sold': async () => {
    const w = await arrange({ capacity: 3 })
    await w.register()
    return [() => w.act('PATCH', `/events/${w.event.id}`, { capacity: 1 })]
  },
  'somebody joins the waiting list': async () => {
    const w = await soldOut()
    return [() => w.waits('cay')]
  },
  'a ticket is given back, while somebody waits': async () => {
    const w = await soldOut()
    return [() => w.cancelOrder(w.orderId)]
  },
  'an offer is accepted': async () => {
    const w = await soldOut()
    await w.cancelOrder(w.orderId)
    return [() => w.act('POST', `/waiting-list-entries/${w.entries[0]}/accept`, {})]
  },
  'an offer expires, and the next is offered the place': async () => {
    const w = await soldOut()
    await w.cancelOrder(w.orderId)
    await w.act('PATCH', `/waiting-list-entries/${w.entries[0]}`, { offer_expires_at: '2026-01-01T00:00:00Z' })
    return [
      () => studio.query("update public.waiting_list_entries set status = 'expired' where id = $1", [w.entries[0]]),
    ]
  },
  'a waiting-list entry is cancelled': async () => {
    const w = await soldOut()
    return [() => w.act('POST', `/waiting-list-entries/${w.entries[0]}/cancel`, {})]
  },
  'a webhook endpoint is tested': async () => {
    const { id } = await row<{ id: string }>(
      `insert into public.webhook_endpoints (organisation_id, url, types)
       values ($1, 'https://hooks.example.com', '{order.created}') returning id`,
      [organisation.id],
    )
    return [() => send('POST', `/webhook-endpoints/${id}/test`)]
  },
  'a write is refused, repeated with its idempotency key, or a dry run': each(
    (w) => expect(w.register({ promoCode: 'NONE', invoice: true })).rejects.toThrow('not_found'),
    async (w) => {
      const path = `/events/${w.event.id}/registrations`
      const guest = { ticket_type_id: w.event.ticketTypeId, name: 'Mary', email: 'mary@example.com' }
      const register = () => w.act('POST', path, guest, { 'Idempotency-Key': `once-${w.event.id}` })
      await register()
      return register
    },
    async (w) => {
      const id = await w.register()
      return () => w.act('POST', `/orders/${id}/cancel`, { dry_run: true })
    },
  ),
}

const imported = (w: World, name: string) =>
  w.act('POST', `/events/${w.event.id}/attendees/import`, {
    ticket_type_id: w.event.ticketTypeId,
    attendees: [{ external_id: `crm-${w.event.id}`, name, email: 'mary@example.com' }],
  })

/** Facts, each in a world of its own; what arranges something first answers the fact as a function. */
function each(...done: ((world: World) => Promise<unknown>)[]): () => Promise<(() => Promise<unknown>)[]> {
  return async () =>
    done.map((fact) => async () => {
      const world = await arrange()
      await told()
      const then = await fact(world)
      if (typeof then !== 'function') return
      await told()
      await then()
    })
}

test('every fact is done here, and every type of notification is among them', () => {
  expect(Object.keys(effects)).toEqual(Object.keys(facts))
  expect(new Set(Object.values(effects).flat())).toEqual(new Set(notificationTypes))
})

test.each(Object.entries(facts))('%s', async (fact, arranged) => {
  for (const done of await arranged()) {
    await told()
    await done()
    expect([...new Set((await told()).map(({ type }) => type))].sort()).toEqual([...(effects[fact] ?? [])].sort())
  }
})
