// Errands about events: set up, moved, repeated, filled, cancelled.

import type { Errand, Step } from '../errand.ts'
import { guest, year } from '../organisation.ts'
import { add, at, between, emailed, like, the } from '../state.ts'

const applyPlan: Step = ({ data }) => ['apply_event', { plan_id: data.plan_id }]

const setUpConference: Errand = {
  name: 'set-up-conference',
  says: [
    `New event: Rust Days, 14-15 May ${year}, 9:00 to 18:00, Kulturbrauerei Berlin, max 300. Tickets: Early bird 199 EUR, 60 pcs, until 31 March ${year}; VIP 599 EUR, 20 pcs. Code TEAM10 = 10% off. Publish it.`,
    `Hi! We finally have the dates for our conference "Rust Days": it runs over two days, from 14 May ${year} at nine in the morning until 15 May at six in the evening, in the Kulturbrauerei in Berlin, where 300 people fit in. Could you set it up with two kinds of tickets, an "Early bird" for 199 euros (60 of them, on sale until the end of March) and a "VIP" for 599 euros (20 of them)? Friends of the house get ten per cent off everything with the code TEAM10. And please put it online right away, people are waiting for it.`,
    `People should be able to register today for Rust Days, which takes place at the Kulturbrauerei (Berlin) on 14 and 15 May ${year} – doors at 9:00 on the first day, end at 18:00 on the second, room for 300. There is to be an "Early bird" ticket, 199.00 euros, of which we only want to sell sixty and none after 31 March, and twenty "VIP" tickets at 599.00. Whoever types in TEAM10 pays a tenth less.`,
  ],
  arrange: async () => ({}),
  shortest: () => [
    [
      'apply_event',
      {
        changes: {
          name: 'Rust Days',
          starts_at: `${year}-05-14T09:00:00+02:00`,
          ends_at: `${year}-05-15T18:00:00+02:00`,
          timezone: 'Europe/Berlin',
          venue: { name: 'Kulturbrauerei', city: 'Berlin' },
          capacity: 300,
          status: 'published',
        },
        ticket_types: [
          { name: 'Early bird', price: 19900, quantity: 60, sales_end_at: `${year}-03-31T23:59:59+02:00` },
          { name: 'VIP', price: 59900, quantity: 20 },
        ],
        promo_codes: [{ code: 'TEAM10', percent_off: 10 }],
      },
    ],
    applyPlan,
  ],
  becomes(state) {
    add(state, 'events', {
      name: 'Rust Days',
      status: 'published',
      starts_at: at(`${year}-05-14T09:00:00+02:00`),
      ends_at: at(`${year}-05-15T18:00:00+02:00`),
      timezone: 'Europe/Berlin',
      venue_name: like(/Kulturbrauerei/),
      capacity: 300,
    })
    add(
      state,
      'ticket_types',
      {
        name: like(/^early[ -]bird$/i),
        price: 19900,
        quantity: 60,
        sales_end_at: between(`${year}-03-31T23:59:00+02:00`, `${year}-04-01T00:00:00+02:00`),
        status: 'active',
        visibility: 'public',
      },
      { name: 'VIP', price: 59900, quantity: 20, sales_end_at: null, status: 'active', visibility: 'public' },
    )
    add(state, 'promo_codes', {
      code: 'TEAM10',
      percent_off: 10,
      amount_off: null,
      ticket_type_ids: [],
      max_redemptions: null,
      status: 'active',
    })
  },
}

const moveByAWeek: Errand = {
  name: 'move-by-a-week',
  says: [
    'Move Summer Meetup by one week (later), same times. Notify everybody.',
    `Bad news from the venue: we cannot have our Summer Meetup on the day we planned, but they offered us the same room exactly one week later, at the same hours. Please change that, and make sure that really everyone who has a ticket hears of it, also the people who we did not e-mail at first.`,
    `Summer Meetup will now take place seven days after the date that is on the tickets, time of day as before. Nobody who is coming must be left standing in front of closed doors on the old date.`,
  ],
  // And apply_event.
  async arrange(organisation) {
    const event = await organisation.event({
      name: 'Summer Meetup',
      starts: `${year}-06-10T18:00:00+02:00`,
      ends: `${year}-06-10T22:00:00+02:00`,
      ticketTypes: { Standard: {} },
    })
    const other = await organisation.event({
      name: 'Autumn Meetup',
      starts: `${year}-10-07T18:00:00+02:00`,
      ends: `${year}-10-07T22:00:00+02:00`,
      ticketTypes: { Standard: {} },
    })
    await organisation.order(event, { guests: [guest('Ada Lovelace')] })
    await organisation.order(event, { guests: [guest('Grace Hopper'), guest('Joan Clarke')], sendEmail: false })
    await organisation.order(event, { guests: [guest('Edsger Dijkstra')], sendEmail: false })
    await organisation.order(other, { guests: [guest('Alan Turing')] })
    return {}
  },
  shortest: () => [['apply_event', { event: 'Summer Meetup', move: 'P7D', notify: 'everybody' }], applyPlan],
  becomes(state) {
    Object.assign(the(state.events, { name: 'Summer Meetup' }), {
      starts_at: at(`${year}-06-17T18:00:00+02:00`),
      ends_at: at(`${year}-06-17T22:00:00+02:00`),
    })
    const addresses = ['ada.lovelace', 'grace.hopper', 'joan.clarke', 'edsger.dijkstra']
    emailed(state, 'event_changed', ...addresses.map((name) => `${name}@example.com`))
  },
}

const againNextYear: Errand = {
  name: 'again-next-year',
  says: [
    `Copy Winter Gala to 10 December ${year + 1}, same hours. Name: Winter Gala ${year + 1}. Draft.`,
    `Our Winter Gala went so well that we want to do precisely the same thing once more in the following year, as "Winter Gala ${year + 1}" on 10 December ${year + 1}, from when to when as last time. Same tickets at the same prices, same discount, same door. Don't publish it yet, I want to look at it first.`,
    `I don't feel like typing everything in again: for ${year + 1} we need another Winter Gala (call it Winter Gala ${year + 1}), it'll be on the tenth of December, and otherwise nothing is different from the one we have, with the sales ending as long before it as they do now.`,
  ],
  async arrange(organisation) {
    const event = await organisation.event({
      name: 'Winter Gala',
      starts: `${year}-12-11T19:00:00+01:00`,
      ends: `${year}-12-11T23:30:00+01:00`,
      capacity: 200,
      venue: 'Alte Oper',
      ticketTypes: {
        Standard: { price: 8900, sales_end_at: `${year}-12-09T18:00:00+01:00` },
        Patron: { price: 25000, quantity: 12 },
      },
    })
    await organisation.database.query(
      `insert into public.promo_codes (event_id, code, percent_off, valid_until)
       values ($1, 'FRIENDS', 15, $2)`,
      [event.id, `${year}-12-04T18:00:00+01:00`],
    )
    await organisation.database.query(
      "insert into public.check_in_points (event_id, name, admission) values ($1, 'Foyer', 're_entry')",
      [event.id],
    )
    await organisation.order(event, { guests: [guest('Ada Lovelace'), guest('Grace Hopper', 'Patron')], paid: 0 })
    return {}
  },
  shortest: () => [
    [
      'apply_event',
      {
        copy_of: 'Winter Gala',
        changes: { name: `Winter Gala ${year + 1}`, starts_at: `${year + 1}-12-10T19:00:00+01:00` },
      },
    ],
    applyPlan,
  ],
  becomes(state) {
    add(state, 'events', {
      name: `Winter Gala ${year + 1}`,
      status: 'draft',
      starts_at: at(`${year + 1}-12-10T19:00:00+01:00`),
      ends_at: at(`${year + 1}-12-10T23:30:00+01:00`),
      timezone: 'Europe/Berlin',
      venue_name: 'Alte Oper',
      capacity: 200,
    })
    add(
      state,
      'ticket_types',
      { name: 'Standard', price: 8900, quantity: null, sales_end_at: at(`${year + 1}-12-08T18:00:00+01:00`) },
      { name: 'Patron', price: 25000, quantity: 12, sales_end_at: null },
    )
    add(state, 'promo_codes', {
      code: 'FRIENDS',
      percent_off: 15,
      valid_until: at(`${year + 1}-12-03T18:00:00+01:00`),
      ticket_type_ids: [],
    })
    add(state, 'check_in_points', { name: 'Foyer', admission: 're_entry', ticket_type_ids: [], status: 'active' })
  },
}

const cancelAndTell: Errand = {
  name: 'cancel-and-tell',
  says: [
    'Cancel Open Harbour Day. Tell everybody. Yes, I am sure.',
    `We have to call off the Open Harbour Day, the storm took the pier. I have thought about it and there is no way around it, so please cancel it now and let all of them know: everyone with a ticket, whether or not they got e-mails so far, and the ones on the waiting list as well.`,
    `There won't be an Open Harbour Day this time, that is decided and you need not ask me again. I do not want anybody to travel for nothing, neither ticket holders nor those who were hoping for a place.`,
  ],
  async arrange(organisation) {
    const event = await organisation.event({
      name: 'Open Harbour Day',
      starts: `${year}-07-03T10:00:00+02:00`,
      ends: `${year}-07-03T18:00:00+02:00`,
      ticketTypes: { Standard: { price: 4900 }, Captain: { quantity: 0 } },
    })
    const other = await organisation.event({
      name: 'Harbour Concert',
      starts: `${year}-07-04T20:00:00+02:00`,
      ends: `${year}-07-04T22:00:00+02:00`,
      ticketTypes: { Standard: {} },
    })
    await organisation.order(event, { guests: [guest('Ada Lovelace')], paid: 4900 })
    await organisation.order(event, { guests: [guest('Grace Hopper')], sendEmail: false })
    await organisation.order(other, { guests: [guest('Alan Turing')] })
    for (const name of ['Mary Jackson', 'Annie Easley']) await organisation.waits(event, 'Captain', guest(name))
    // One place: Mary, who came first, is offered it.
    await organisation.database.query('update public.ticket_types set quantity = 1 where id = $1', [
      event.ticketTypes.Captain,
    ])
    return {}
  },
  shortest: () => [['cancel_event', { event: 'Open Harbour Day', notify: 'everybody' }]],
  becomes(state) {
    const event = the(state.events, { name: 'Open Harbour Day' })
    event.status = 'cancelled'
    for (const table of ['orders', 'attendees', 'waiting_list_entries']) {
      for (const row of state[table] ?? []) if (row.event_id === event.id) row.status = 'cancelled'
    }
    for (const order of state.orders ?? []) {
      if (order.event_id !== event.id) continue
      order.cancellation_reason = 'event_cancelled'
      if (order.email === 'ada.lovelace@example.com') order.payment_status = 'refund_due'
    }
    emailed(state, 'event_cancelled', 'ada.lovelace@example.com', 'grace.hopper@example.com')
    emailed(state, 'waiting_list_cancelled', 'mary.jackson@example.com', 'annie.easley@example.com')
  },
}

const biggerRoom: Errand = {
  name: 'bigger-room',
  says: [
    'Knitting Night: 8 places instead of 5, waiting list moves up.',
    `Good news about the Knitting Night! We get the larger room, which has eight chairs and not five, so both the event and its Seat tickets can go up to eight. The people on the waiting list are to be offered the new places, please.`,
    `Three people are waiting for Knitting Night, and as of today we could seat 8 altogether (so far: five, the Seat tickets are limited to that as well). It would be nice if those three got their chance.`,
  ],
  async arrange(organisation) {
    const event = await organisation.event({
      name: 'Knitting Night',
      starts: `${year}-04-22T19:00:00+02:00`,
      ends: `${year}-04-22T22:00:00+02:00`,
      capacity: 5,
      ticketTypes: { Seat: { quantity: 5 } },
    })
    const names = ['Ada Reader', 'Barbara Reader', 'Chien Reader', 'Dorothy Reader', 'Edsger Reader']
    await organisation.order(event, { guests: names.map((name) => guest(name)) })
    for (const name of ['Frances Allen', 'Grace Hopper', 'Hedy Lamarr']) {
      await organisation.waits(event, 'Seat', guest(name))
    }
    return {}
  },
  shortest: () => [
    ['update_event', { event: 'Knitting Night', changes: { capacity: 8 } }],
    ['update_ticket_type', { event: 'Knitting Night', ticket_type: 'Seat', changes: { quantity: 8 } }],
  ],
  becomes(state) {
    the(state.events, { name: 'Knitting Night' }).capacity = 8
    the(state.ticket_types, { name: 'Seat' }).quantity = 8
    for (const entry of state.waiting_list_entries ?? []) entry.status = 'offered'
    emailed(
      state,
      'waiting_list_offer',
      ...['frances.allen', 'grace.hopper', 'hedy.lamarr'].map((name) => `${name}@example.com`),
    )
  },
}

const closeTicketType: Errand = {
  name: 'close-ticket-type',
  says: [
    'Rust Days: archive the Student ticket.',
    `Could you take the "Student" ticket of Rust Days off sale? We have more than enough students and would not like to issue any more of those, ever. The ones who have one keep it, of course, and the other tickets go on.`,
    `From now on nobody new is to come to Rust Days on a Student ticket; close that type for good.`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference('Rust Days', { Standard: { price: 29900 }, Student: { price: 4900 } })
    await organisation.conference('Go Days', { Student: { price: 4900 } })
    await organisation.order(event, { guests: [guest('Ada Lovelace', 'Student')], paid: 4900 })
    return {}
  },
  shortest: () => [
    ['update_ticket_type', { event: 'Rust Days', ticket_type: 'Student', changes: { status: 'archived' } }],
  ],
  becomes(state) {
    const event = the(state.events, { name: 'Rust Days' })
    the(state.ticket_types, { name: 'Student', event_id: event.id as string }).status = 'archived'
  },
}

const figures: Errand = {
  name: 'figures',
  says: [
    'Rust Days: tickets sold, money received, money outstanding?',
    `My boss wants to know how Rust Days is doing. How many tickets have we sold by now, how much money has come in for them and how much are people still owing us?`,
    `I'm writing the report on Rust Days and need three numbers for it: what has gone out in tickets, what's in the bank, what is yet to come.`,
  ],
  async arrange(organisation) {
    const event = await organisation.conference('Rust Days', { Standard: { price: 29900 }, Student: { price: 4900 } })
    for (const name of ['Ada Lovelace', 'Grace Hopper', 'Joan Clarke']) {
      await organisation.order(event, { guests: [guest(name)], paid: 29900 })
    }
    await organisation.order(event, {
      guests: [guest('Edsger Dijkstra', 'Student'), guest('Alan Turing', 'Student')],
      paid: 0,
    })
    return {}
  },
  shortest: () => [['get_event_summary', { event: 'Rust Days' }]],
  answer: () => [/\b5\b|\bfive\b/i, /897\.00|897,00|\b89700\b|\b897\b/, /98\.00|98,00|\b9800\b|\b98\b/],
}

export const eventErrands = [
  setUpConference,
  moveByAWeek,
  againNextYear,
  cancelAndTell,
  biggerRoom,
  closeTicketType,
  figures,
]
