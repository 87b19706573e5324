import { registerInBulk } from '../stack.ts'
import { type Call, registration } from '../subjects.ts'
import { comparing, type Scenario } from './scenario.ts'

export const onSale: Scenario = {
  name: 'on-sale',
  question: 'How fast does everyone register for one ticket type, and what does one call cost?',
  run: comparing(
    ['usher', 'postgrest', 'base'],
    [
      {
        title: 'Registrations',
        connections: [1, 64],
        prepare: (_, organiser) => (nth) => registration(organiser, nth),
        written: 'registrations',
        limits: [
          { figure: 'rate', at: 64, against: 'postgrest', atLeast: 5 },
          { figure: 'postgres', at: 1, against: 'base', atMost: 1.3 },
        ],
      },
      {
        title: 'Registrations, and the tickets run out half-way',
        connections: [64],
        async prepare({ database }, organiser, calls) {
          const { rows } = await database.query(
            "insert into public.ticket_types (event_id, name, quantity) values ($1, 'Few', $2) returning id",
            [organiser.eventId, Math.ceil(calls / 4)],
          )
          return (nth) => registration(organiser, nth, { ticket_type_id: rows[0].id })
        },
        written: 'registrations',
        sellsOut: true,
        limits: [],
      },
      {
        title: 'Payments of invoices',
        connections: [1],
        price: 10_000,
        async prepare(stack, organiser, calls) {
          const orders = await registerInBulk(stack, organiser, calls, { paymentMethod: 'invoice' })
          return (): Call => ({
            operation: 'record_invoice_payment',
            args: { order_id: orders.pop(), method: 'bank_transfer', amount: 10_000, currency: 'EUR' },
          })
        },
        limits: [{ figure: 'postgres', at: 1, against: 'base', atMost: 1.3 }],
      },
    ],
  ),
}
