// Errands about webhooks, e-mails that did not arrive, the audit trail, and files for others.

import type { Errand } from '../errand.ts'
import { guest, year } from '../organisation.ts'
import { add, optional, the } from '../state.ts'

const endpointForCrm: Errand = {
  name: 'endpoint-for-crm',
  says: [
    'Webhook to https://crm.example.com/usher: order.completed, attendee.checked_in. I need the secret.',
    `Our CRM should hear from you whenever an order is complete and whenever somebody has checked in, at https://crm.example.com/usher. The colleague who looks after it says that he needs a secret to verify what he gets, could you give me that too?`,
    `I want the CRM (it listens at https://crm.example.com/usher) to know at once when a registration is done and paid, and when a guest has walked in through the door. Nothing else, it's easily confused. Tell me what to put into its field "signing secret".`,
  ],
  async arrange(organisation) {
    await organisation.conference()
    return {}
  },
  shortest: () => [
    [
      'create_webhook_endpoint',
      { url: 'https://crm.example.com/usher', types: ['order.completed', 'attendee.checked_in'] },
    ],
  ],
  becomes(state) {
    add(state, 'webhook_endpoints', {
      url: 'https://crm.example.com/usher',
      types: (types: unknown) =>
        JSON.stringify([...(types as string[])].sort()) === '["attendee.checked_in","order.completed"]',
      event_ids: [],
      status: 'enabled',
    })
    // Whoever tries it out does well.
    add(state, 'webhook_deliveries', optional({ type: 'webhook_endpoint.test', status: 'pending' }))
  },
  answer: () => [/whsec_[A-Za-z0-9+/]{43}=/],
}

const failedWebhook: Errand = {
  name: 'failed-webhook',
  says: [
    'Which webhook delivery failed, and why? Redeliver it.',
    `Our accounting tells me that an order of Grace Hopper never arrived over there. Can you find out what went wrong with that webhook? Whatever it was, they say that it is repaired by now, so please have it sent once more.`,
    `There's a hole in accounting where a webhook of ours should be. They've fixed something on their side and would like to have that one again. And I'd like to know what their server said back then.`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference()
    for (const url of ['https://crm.example.com/usher', 'https://accounting.example.com/hooks']) {
      await organisation.database.query(
        "insert into public.webhook_endpoints (organisation_id, url, types) values ($1, $2, '{order.completed}')",
        [organisation.id, url],
      )
    }
    await organisation.order(event, { guests: [guest('Ada Lovelace')] })
    await organisation.order(event, { guests: [guest('Grace Hopper')] })
    await organisation.database.query('select private.enqueue_deliveries()')
    await organisation.database.query(
      `update public.webhook_deliveries set status = 'delivered', delivered_at = now(), attempts = 1, last_attempt_at = now(),
         last_response_status = 200, last_response_milliseconds = 80
       where organisation_id = $1`,
      [organisation.id],
    )
    const { id } = await organisation.row<{ id: string }>(
      `update public.webhook_deliveries d set status = 'failed', delivered_at = null, attempts = 10, last_response_status = 503,
         last_response_body = 'ledger is locked for the month-end closing'
       from public.webhook_endpoints w, public.notifications n
       where d.organisation_id = $1 and w.id = d.webhook_endpoint_id and w.url like '%accounting%'
         and n.id = d.notification_id and n.data ->> 'name' = 'Grace Hopper'
       returning d.id`,
      [organisation.id],
    )
    return { delivery: id }
  },
  shortest: () => [
    ['list_webhook_deliveries', { status: 'failed' }],
    ({ data }) => ['redeliver_webhook', { webhook_delivery_id: data[0].id }],
  ],
  becomes(state, { delivery = '' }) {
    the(state.webhook_deliveries, { id: delivery }).status = 'pending'
  },
  answer: () => [/503|month-end/],
}

const bouncedEmails: Errand = {
  name: 'bounced-e-mails',
  says: [
    'Rust Days: tickets whose e-mail bounced (name, address).',
    `Some of the ticket mails for Rust Days came back, I have heard. Can you tell me whose, and which address we have of them? I'll ring them up and ask for the right one.`,
    `To whom at Rust Days do I have to hand the ticket in person because our mail doesn't reach them?`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference()
    const other = await organisation.conference('Go Days')
    const bounced = [
      ...(await organisation.order(event, { guests: [{ name: 'Mary Jackson', email: 'mary@nasa.exmaple' }] }))
        .attendeeIds,
      ...(await organisation.order(event, { guests: [{ name: 'Joan Clarke', email: 'joan@bletchly.example' }] }))
        .attendeeIds,
      ...(await organisation.order(other, { guests: [guest('Alan Turing')] })).attendeeIds,
    ]
    await organisation.order(event, { guests: [guest('Ada Lovelace')] })
    await organisation.allSent()
    await organisation.database.query(
      `update public.attendees set ticket_email_status = 'bounced', ticket_email_last_error = '550 5.1.1 No such user here'
       where id = any ($1)`,
      [bounced],
    )
    return {}
  },
  shortest: () => [['list_attendees', { event: 'Rust Days', ticket_email_status: 'bounced' }]],
  answer: () => [/Mary Jackson/, /mary@nasa\.exmaple/, /Joan Clarke/, /joan@bletchly\.example/],
  never: () => [/Ada Lovelace/, /Alan Turing/],
}

const whoChangedThePrice: Errand = {
  name: 'who-changed-the-price',
  says: [
    'Who changed the price of Standard (Rust Days), from what to what?',
    `I could swear that a Standard ticket for Rust Days cost 49 euros last week, and now there's another price on the website. Who has changed that, and what was it before?`,
    `Somebody must have tampered with what we charge for Standard at Rust Days. I want to know who it was, and the old and the new price.`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference()
    await organisation.as('Website sync', 'PATCH', `/ticket-types/${event.ticketTypes.Standard}`, { price: 3900 })
    await organisation.as('Box office', 'PATCH', `/ticket-types/${event.ticketTypes.VIP}`, { quantity: 30 })
    return {}
  },
  shortest: () => [['list_audit_entries', { object_type: 'ticket_type' }]],
  answer: () => [/Website sync/, /49[.,]00|\b4900\b|\b49\b/, /39[.,]00|\b3900\b|\b39\b/],
}

const link = /\/exports\/[0-9a-f]{32}/

const guestsAsAFile: Errand = {
  name: 'guests-as-a-file',
  says: [
    'Export all attendees of Rust Days who come. How many rows?',
    `The caterer would like a list of everybody who comes to Rust Days, without those who cancelled, as a file for Excel. Can you get me that, and tell me how many people are on it?`,
    `I have to hand the guests of Rust Days over to somebody who works with spreadsheets. Only people who still have a ticket, please; and I need to know how many there are to order the badges.`,
  ],
  async arrange(organisation) {
    const [event, other] = [await organisation.conference(), await organisation.conference('Go Days')]
    const guests = Array.from({ length: 12 }, (_, i) => guest(`Guest Number${String.fromCharCode(65 + i)}`))
    await organisation.order(event, { guests })
    const { attendeeIds } = await organisation.order(event, { guests: [guest('Ada Lovelace')] })
    await organisation.database.query("update public.attendees set status = 'cancelled' where id = any ($1)", [
      attendeeIds,
    ])
    await organisation.order(other, { guests: [guest('Alan Turing')] })
    await organisation.allSent()
    return {}
  },
  shortest: () => [['export_attendees', { event: 'Rust Days', status: 'active' }]],
  answer: () => [link, /\b12\b|twelve/i],
}

const booksOfSeptember: Errand = {
  name: 'books-of-september',
  says: [
    `Finance wants the payments of September ${year - 2} (Berlin time) as a file, voids and refunds included. How many lines?`,
    `Our bookkeeper closes September ${year - 2} and asks for everything that came in and went out again in that month, by Berlin time, as something that she can import. Please send me that, and how many entries it has so that she can check.`,
    `For the books: I need what we received and returned in September of ${year - 2}, Berlin time, as a file for accounting. They'd like the number of entries with it.`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference()
    const paid = async (amount: number, at: string) => {
      const { id } = await organisation.order(event, { guests: [guest('Ada Lovelace')], paid: 0 })
      await organisation.database.query(
        'insert into public.payments (order_id, amount, received_at) values ($1, $2, $3)',
        [id, amount, `${year - 2}-${at}`],
      )
    }
    for (const at of ['08-31T23:30:00+02:00', '09-01T00:30:00+02:00', '09-12T12:00:00Z', '10-01T00:30:00+02:00']) {
      await paid(4900, at)
    }
    await organisation.allSent()
    return {}
  },
  shortest: () => [
    [
      'export_payments',
      { received_after: `${year - 2}-09-01T00:00:00+02:00`, received_before: `${year - 2}-10-01T00:00:00+02:00` },
    ],
  ],
  answer: () => [link, /\b2\b|two/i],
}

export const recordErrands = [
  endpointForCrm,
  failedWebhook,
  bouncedEmails,
  whoChangedThePrice,
  guestsAsAFile,
  booksOfSeptember,
]
