// Errands about money: invoices, payments, refunds.

import type { Errand } from '../errand.ts'
import { guest } from '../organisation.ts'
import { add, between, emailed, like, the } from '../state.ts'

const whoHasNotPaid: Errand = {
  name: 'who-has-not-paid',
  says: [
    'Rust Days: unpaid orders, with amounts.',
    `I would like to ring up everybody who has not paid us yet for Rust Days. Could you give me a list of who that is and how much is still missing from each of them? Some paid a part of it, as far as I remember.`,
    `Somebody owes us money for Rust Days. Who is it, and what sum are we waiting for from whom?`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference()
    await organisation.order(event, { guests: [guest('Ada Lovelace')], paid: 4900 })
    await organisation.order(event, { guests: [guest('Grace Hopper'), guest('Joan Clarke')], paid: 0 })
    await organisation.order(event, { guests: [guest('Edsger Dijkstra', 'VIP')], paid: 20000 })
    await organisation.order(event, { guests: [guest('Mary Jackson')] })
    const other = await organisation.conference('Go Days', { Standard: { price: 7700 } })
    await organisation.order(other, { guests: [guest('Alan Turing')], paid: 0 })
    return {}
  },
  shortest: () => [['list_orders', { event: 'Rust Days', status: 'pending' }]],
  answer: () => [/Grace Hopper/, /98[.,]00|\b9800\b|\b98\b/, /Edsger Dijkstra/, /399[.,]00|\b39900\b|\b399\b/],
  // With a sum: that somebody has paid may be said.
  never: () => ['Ada Lovelace', 'Mary Jackson', 'Alan Turing'].map((name) => new RegExp(`${name}.{0,80}\\d[.,]\\d\\d`)),
}

const groupByInvoice: Errand = {
  name: 'group-by-invoice',
  says: [
    'Rust Days, Standard, by invoice: Acme AG, Petra Klein, accounts@acme.example. Guests: Melba Roy melba@acme.example, Raye Montague raye@acme.example, Annie Easley annie@acme.example.',
    `Acme AG just rang, they are coming to Rust Days with three people on normal Standard tickets and want one invoice for all of them. It goes to Petra Klein in their accounting, accounts@acme.example. The three who come are Melba Roy (melba@acme.example), Raye Montague (raye@acme.example) and Annie Easley (annie@acme.example).`,
    `Here is what I got by mail, please take care of it: "Dear organisers, we'd like to have Standard tickets for Rust Days for our colleagues Melba Roy <melba@acme.example>, Raye Montague <raye@acme.example> and Annie Easley <annie@acme.example>. Kindly bill us. Petra Klein, Acme AG, accounts@acme.example"`,
  ],
  async arrange(organisation) {
    await organisation.conference()
    return {}
  },
  shortest: () => [
    [
      'register_attendee',
      {
        event: 'Rust Days',
        ticket_type: 'Standard',
        name: 'Petra Klein',
        email: 'accounts@acme.example',
        company: 'Acme AG',
        payment_method: 'invoice',
        attendees: [
          { name: 'Melba Roy', email: 'melba@acme.example' },
          { name: 'Raye Montague', email: 'raye@acme.example' },
          { name: 'Annie Easley', email: 'annie@acme.example' },
        ],
      },
    ],
  ],
  becomes(state) {
    add(state, 'orders', {
      name: 'Petra Klein',
      email: 'accounts@acme.example',
      company: 'Acme AG',
      status: 'pending',
      payment_status: 'awaiting_payment',
      promo_code: null,
    })
    const type = the(state.ticket_types, { name: 'Standard' })
    for (const [name, email] of [
      ['Melba Roy', 'melba@acme.example'],
      ['Raye Montague', 'raye@acme.example'],
      ['Annie Easley', 'annie@acme.example'],
    ]) {
      add(state, 'attendees', { name, email, status: 'awaiting_payment', price: 4900, ticket_type_id: type.id })
    }
    emailed(state, 'order_confirmation', 'accounts@acme.example')
  },
}

const invoicePaid: Errand = {
  name: 'invoice-paid',
  says: [
    'Order {reference} paid: 147.00 EUR by bank transfer, bank reference NL-2291-77.',
    `I am going through our bank statement. There is a transfer of one hundred and forty-seven euros for the order {reference}, and the bank calls it NL-2291-77, please keep that with it so that we find it again. So that one is settled, isn't it?`,
    `147 € have come in quoting {reference} (the bank's own number of it is NL-2291-77). They should get their tickets now.`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference()
    const { reference } = await organisation.order(event, {
      buyer: { name: 'Petra Klein', email: 'accounts@acme.example', company: 'Acme AG' },
      guests: [guest('Melba Roy'), guest('Raye Montague'), guest('Annie Easley')],
      paid: 0,
    })
    await organisation.order(event, { guests: [guest('Ada Lovelace')], paid: 0 })
    return { reference }
  },
  shortest: ({ reference }) => [
    [
      'record_invoice_payment',
      { order: reference, amount: 14700, method: 'bank_transfer', external_reference: 'NL-2291-77' },
    ],
  ],
  becomes(state, { reference = '' }) {
    const order = the(state.orders, { reference })
    Object.assign(order, { status: 'completed', payment_status: 'paid' })
    for (const attendee of state.attendees ?? []) if (attendee.order_id === order.id) attendee.status = 'active'
    add(state, 'payments', { order_id: order.id, amount: 14700, external_reference: like(/NL-2291-77/) })
    emailed(state, 'payment_received', 'accounts@acme.example')
    emailed(state, 'ticket', ...['melba.roy', 'raye.montague', 'annie.easley'].map((name) => `${name}@example.com`))
  },
}

const refund: Errand = {
  name: 'refund',
  says: [
    'Refunded 49.00 EUR on {reference} by bank transfer today, credit note CN-31.',
    `Joan could not come and we had cancelled her ticket in Grace Hopper's order {reference}. I have just wired the 49 euros for it back, with credit note CN-31, so would you note that down?`,
    `The books should say that Grace's money for Joan's cancelled ticket (order {reference}) has gone back to her: 49 €, as in our credit note CN-31. I made the bank transfer this morning.`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference()
    const { reference, attendeeIds } = await organisation.order(event, {
      guests: [guest('Grace Hopper'), guest('Joan Clarke')],
      paid: 9800,
    })
    await organisation.database.query("update public.attendees set status = 'cancelled' where id = $1", [
      attendeeIds[1],
    ])
    return { reference }
  },
  shortest: ({ reference }) => [
    ['record_refund', { order: reference, amount: 4900, method: 'bank_transfer', external_reference: 'CN-31' }],
  ],
  becomes(state, { reference = '' }) {
    const order = the(state.orders, { reference })
    order.payment_status = 'paid'
    add(state, 'refunds', {
      order_id: order.id,
      amount: 4900,
      method: 'bank_transfer',
      external_reference: like(/CN-31/),
    })
  },
}

const wrongPayment: Errand = {
  name: 'wrong-payment',
  says: [
    'Void the payment on {reference}: booked on the wrong order.',
    `Oh dear, I made a mistake yesterday: the payment that I entered for the order {reference} was never theirs, the money belonged to somebody else altogether. Please take that payment out again, it's final and I am aware of it.`,
    `{reference} is shown as paid although these people have not sent us a cent; somebody here put a transfer on the wrong order. Set it right, I confirm.`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference()
    const { reference } = await organisation.order(event, { guests: [guest('Ada Lovelace')], paid: 4900 })
    await organisation.order(event, { guests: [guest('Grace Hopper')], paid: 4900 })
    return { reference }
  },
  shortest: ({ reference }) => [
    ['get_order', { order: reference }],
    ({ data }) => ['void_payment', { payment_id: data.payments[0].id, reason: 'Booked on the wrong order' }],
  ],
  becomes(state, { reference = '' }) {
    const order = the(state.orders, { reference })
    order.payment_status = 'awaiting_payment'
    const payment = the(state.payments, { order_id: order.id as string })
    add(state, 'payment_voids', { payment_id: payment.id })
    // The receipt that she was sent is not true any more.
    emailed(state, 'payment_voided', 'ada.lovelace@example.com')
  },
}

const misspeltBuyer: Errand = {
  name: 'misspelt-buyer',
  says: [
    'Order {reference}: invoices to ada@engines.example instead of ada@engnies.example, company Engines Ltd.',
    `Ada Lovelace got neither the confirmation nor our reminder for order {reference}: she had mistyped her address, it is ada@engines.example with the i before the n. And could you note Engines Ltd as the company, her accounting asks for that?`,
    `Whatever we still send about order {reference} has to reach ada@engines.example; the address that we have for it bounces. It is for Engines Ltd, by the way.`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference()
    const { reference } = await organisation.order(event, {
      buyer: { name: 'Ada Lovelace', email: 'ada@engnies.example' },
      guests: [guest('Raye Montague')],
      paid: 0,
    })
    return { reference }
  },
  shortest: ({ reference }) => [
    ['update_order', { order: reference, changes: { email: 'ada@engines.example', company: 'Engines Ltd' } }],
  ],
  becomes(state, { reference = '' }) {
    Object.assign(the(state.orders, { reference }), { email: 'ada@engines.example', company: 'Engines Ltd' })
    // What an e-mail of the order is addressed to.
    the(state.emails, { to: 'ada@engnies.example' }).to = 'ada@engines.example'
  },
}

const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

const overdue: Errand = {
  name: 'overdue-invoices',
  says: [
    'Which invoices are overdue? ACME: two more weeks from today. Mail nobody.',
    `Could you check which invoices people have let slip past their deadline, so that I can ring them up? And ACME have just called, they'd still like to come and need another two weeks from now on; I have told them it's fine, so no e-mail about it.`,
    `I'm told that some of our customers did not pay in time. Who? If ACME is among them, have them back: they get a fortnight from today (they know already, don't write to them).`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference()
    const acme = { name: 'Petra Klein', email: 'accounts@acme.example', company: 'ACME' }
    const globex = { name: 'Hank Scorpio', email: 'accounts@globex.example', company: 'Globex' }
    const initech = { name: 'Bill Lumbergh', email: 'accounts@initech.example', company: 'Initech' }
    const orders = []
    for (const [buyer, due] of [
      [acme, '0 days'],
      [globex, '0 days'],
      [initech, '9 days'],
    ] as const) {
      const { id } = await organisation.order(event, {
        buyer,
        guests: [guest(`${buyer.company} One`), guest(`${buyer.company} Two`)],
        paid: 0,
      })
      await organisation.database.query(
        'update public.orders set payment_due_at = now() + $2::interval where id = $1',
        [id, due],
      )
      orders.push(id)
    }
    await organisation.database.query('select private.expire_orders($1)', [orders])
    return {}
  },
  shortest: () => [
    ['list_orders', { overdue: true }],
    ({ data }) => [
      'reopen_order',
      {
        order_id: data.find(({ company }: { company: string }) => company === 'ACME').id,
        payment_due_at: inDays(14),
      },
    ],
  ],
  becomes(state) {
    const order = the(state.orders, { company: 'ACME' })
    Object.assign(order, {
      status: 'pending',
      payment_status: 'awaiting_payment',
      cancellation_reason: null,
      payment_due_at: between(inDays(13), inDays(15)),
    })
    for (const attendee of state.attendees ?? [])
      if (attendee.order_id === order.id) attendee.status = 'awaiting_payment'
  },
  answer: () => [/Globex|Hank Scorpio/, /ACME/],
  never: () => [/(Initech|Lumbergh).{0,80}\d[.,]\d\d/],
}

const remindEverybody: Errand = {
  name: 'remind-who-owes',
  says: [
    'Rust Days: send a payment reminder for every unpaid order.',
    `There's still money missing for Rust Days. Would you send a friendly reminder to each of those who have not settled their invoice in full?`,
    `Nobody who owes us something for Rust Days should be able to say that we did not remind them today.`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference()
    await organisation.order(event, { guests: [guest('Ada Lovelace')], paid: 4900 })
    await organisation.order(event, { guests: [guest('Grace Hopper')], paid: 0 })
    await organisation.order(event, { guests: [guest('Edsger Dijkstra', 'VIP')], paid: 20000 })
    await organisation.order(event, { guests: [guest('Mary Jackson')] })
    return {}
  },
  shortest: () => [['send_payment_reminders', { event: 'Rust Days' }]],
  becomes(state) {
    emailed(state, 'payment_reminder', 'grace.hopper@example.com', 'edsger.dijkstra@example.com')
  },
}

export const moneyErrands = [
  ...[whoHasNotPaid, groupByInvoice, invoicePaid, refund, wrongPayment],
  ...[misspeltBuyer, overdue, remindEverybody],
]
