// Promo codes: active and disabled, both ways; and who can use one, by its state.

import { PromoCodeSchema } from '../../src/operations/promo-codes.ts'
import { row } from '../support/database.ts'
import type { TestOrganisation } from '../support/organisation.ts'
import { edit, inOneTransaction } from '../support/studio.ts'
import { registeredGuest, registeredPayer, registering } from './registering.ts'
import { columnOf, done, type Interfaces, refused, type Subject, testStateMachine, unchanged } from './state-machine.ts'

const price = 3000
const terms = { payment_method: 'invoice', promo_code: 'HALF' } as const

type Coded = Subject & { id: string; attendeeId: string }

/** Half off, and one ticket has it already; then something is set. */
const promoCodeThat =
  (assignments?: string) =>
  async (organisation: TestOrganisation): Promise<Coded> => {
    const event = await organisation.event()
    await edit('ticket_types', event.ticketTypeId, 'price = $2', [price])
    const { id } = await row<{ id: string }>(
      'insert into public.promo_codes (event_id, code, percent_off) values ($1, $2, 50) returning id',
      [event.id, terms.promo_code],
    )
    await inOneTransaction((hand) => registering(terms).sql({ event }, hand))
    const attendee = await row<{ id: string }>('select id from public.attendees where event_id = $1', [event.id])
    if (assignments) await edit('promo_codes', id, assignments)
    return { event, id, attendeeId: attendee.id }
  }

const forAnotherTicketType = async (organisation: TestOrganisation) => {
  const it = await promoCodeThat()(organisation)
  await edit('promo_codes', it.id, 'ticket_type_ids = $2', [[await it.event.ticketType()]])
  return it
}

const states = {
  'active valid': promoCodeThat(),
  'active valid, for one more use': promoCodeThat('max_redemptions = 2'),
  'active valid, an amount above the price': promoCodeThat(`percent_off = null, amount_off = ${price + 1}`),
  'active valid, for another ticket type': forAnotherTicketType,
  'active upcoming': promoCodeThat("valid_from = now() + interval '1 hour'"),
  'active expired': promoCodeThat("valid_until = now() - interval '1 hour'"),
  'active used_up': promoCodeThat('max_redemptions = 1'),
  'disabled disabled': promoCodeThat("status = 'disabled'"),
}

const setTo = (status: string): Interfaces<Coded> => ({
  rest: (send, { id }) => send('PATCH', `/promo-codes/${id}`, { status }),
  sql: ({ id }, hand) => edit('promo_codes', id, 'status = $2', [status], hand),
})

/** The use that the ticket had is free again, whatever the code is good for by now. */
const given = done({
  'attendee.status': 'cancelled',
  'attendee.cancelled_at': 'set',
  'attendee.ticket_email_status': 'cancelled',
  'order.status': 'cancelled',
  'order.cancelled_at': 'set',
  'order.cancellation_reason': 'requested',
  'order.payment_status': 'not_required',
  'ticket_type.quantity_sold': 0,
  'promo_code.times_redeemed': 0,
})

// A change of fields over REST is a save, as in Studio: from a status to itself it is not refused, and does nothing.
const active = {
  'to active': unchanged,
  'to disabled': done({ 'promo_code.status': 'disabled' }),
  'cancelling the ticket that has it': given,
}
const disabled = {
  'to active': done({ 'promo_code.status': 'active' }),
  'to disabled': unchanged,
  'cancelling the ticket that has it': given,
}

const secondUse = { 'promo_code.times_redeemed': 2 }
const halfPrice = registeredPayer(price, { before: 1, discount: price / 2, also: secondUse })
const refusedFor = (code: string, details?: object) => refused(code, { param: 'promo_code', details })

testStateMachine({
  name: 'a promo code',
  dimensions: [
    {
      values: 'promo_code_status',
      read: columnOf(({ id }: Coded) => id, 'status'),
      settable: true,
    },
    {
      values: PromoCodeSchema.shape.state.options,
      read: async ({ id }, _before, send) => (await send('GET', `/promo-codes/${id}`)).body.data.state,
    },
  ],
  unreachable: {
    'active disabled': 'disabled is what it is called when it is disabled',
    'disabled valid': 'a disabled one is disabled, whatever else',
    'disabled upcoming': 'a disabled one is disabled, whatever its dates',
    'disabled expired': 'a disabled one is disabled, whatever its dates',
    'disabled used_up': 'a disabled one is disabled, however often it was used',
  },
  states,
  transitions: {
    'to active': setTo('active'),
    'to disabled': setTo('disabled'),
    'registering with it': registering(terms),
    'cancelling the ticket that has it': {
      rest: (send, { attendeeId }) => send('POST', `/attendees/${attendeeId}/cancel`),
      sql: ({ attendeeId }, hand) => edit('attendees', attendeeId, "status = 'cancelled'", [], hand),
    },
  },
  table: {
    'active valid': { ...active, 'registering with it': halfPrice },
    'active valid, for one more use': { ...active, 'registering with it': halfPrice },
    'active valid, an amount above the price': {
      ...active,
      'registering with it': registeredGuest(1, { price, ...secondUse }),
    },
    'active valid, for another ticket type': {
      ...active,
      'registering with it': refusedFor('promo_code_not_applicable'),
    },
    'active upcoming': {
      ...active,
      'registering with it': refusedFor('promo_code_not_started', { valid_from: 'promo_code.valid_from' }),
    },
    'active expired': {
      ...active,
      'registering with it': refusedFor('promo_code_expired', { valid_until: 'promo_code.valid_until' }),
    },
    'active used_up': { ...active, 'registering with it': refusedFor('promo_code_used_up') },
    'disabled disabled': { ...disabled, 'registering with it': refusedFor('promo_code_disabled') },
  },
})
