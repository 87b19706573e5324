// English, from which the type of all languages follows: the same keys, and, as a test holds, the same {placeholders}.

export const en = {
  /** Passed to Intl, and the lang of the HTML. */
  locale: 'en-GB',
  /** As it calls itself. */
  language: 'English',

  // Labels
  when: 'When',
  where: 'Where',
  online: 'Online',
  name: 'Name',
  company: 'Company',
  ticket: 'Ticket',
  guests: 'Guests',
  order: 'Order',
  code: 'Code',
  before: 'before',
  now: 'now',
  event: 'Event',
  /** Of a test organisation. */
  test: 'Test',
  discount: 'Discount',
  total: 'Total',
  paid: 'Paid',
  due: 'Still to pay',
  howToPay: 'How to pay',

  // Times: {hour} has two digits, {h} none that is not needed.
  clock: '{hour}:{minute}',
  time: '{time}',
  times: '{start} – {end}',
  moment: '{date} at\u00a0{time}',
  /** The second line of an event over several days. */
  until: 'to {moment}',
  /** Of an event during which the clocks change. */
  offsets: '{start} at the start, {end} at the end',

  // Parts of sentences and lines
  subject: '{headline}: {event}',
  toBeAnnounced: 'To be announced',
  by: 'Organiser: {organisation}',
  qrCode: 'QR code {code}',
  line: '{quantity} × {name}',
  message: 'Message from {organisation}',
  openTicket: 'Open your ticket in the browser',

  // Closing sentences
  showAtTheDoor:
    'Show the QR code at the entrance, on your phone or on paper. It admits one person, once, so please do not share it.',
  keepAtHand: 'Please have this ticket to hand: you may be asked for its code.',
  attachedWithDate: 'The QR code is attached as an image, along with a file for your calendar.',
  attached: 'The QR code is attached as an image.',
  calendarUpdates: 'The attached calendar file updates the entry in your calendar.',
  calendarRemoves: 'The attached calendar file removes the entry from your calendar.',
  /** The address follows. */
  reply: 'Questions? Reply to this e-mail, or write to {organisation}:',
  write: 'Questions? Write to {organisation}:',
  ask: 'Questions? Please ask {organisation}.',

  // Of the calendar entry
  calendarOnline: 'Online: {url}',
  calendarTicket: 'Ticket: {ticketType}',
  calendarOrder: 'Order: {reference}',
  calendarCode: 'Your QR code is in the e-mail with your ticket.',

  // Each kind of e-mail: the headline, with which the subject begins, too, and what it says. The keys are the list of kinds, from which those
  // of SQL and of the API are written: test/guests/email-kinds.unit.test.ts. One that only says `notice` needs no code of its own.
  kinds: {
    ticket: {
      headline: 'Your ticket',
      several: 'Your {count} tickets',
      oneEach:
        'Each QR code admits one person, once. Show it at the entrance, on a phone or on paper, and pass each ticket on only to the guest it is meant for.',
    },
    order_confirmation: {
      headline: 'Your order {reference}',
      payHeadline: 'Your order {reference} – {amount} to pay',
      payByHeadline: 'Your order {reference} – {amount} to pay by {date}',
      thanks: 'Thank you for your order, {name}.',
      pay: 'Please pay {amount}, quoting the reference {reference}.',
      payBy: 'Please pay {amount} by {date}, quoting the reference {reference}.',
      ticketsFollow: 'The tickets will be e-mailed as soon as the order is paid.',
      nothingDue: 'There is nothing to pay. Each guest will receive their ticket by e-mail.',
    },
    payment_received: {
      headline: 'Payment of {amount} received',
      received: 'Thank you, {name}. We received your payment of {amount} on {date}.',
      complete: 'Your order is now paid in full. Each guest will receive their ticket by e-mail.',
    },
    payment_voided: {
      headline: 'Payment of {amount} not received',
      voided:
        'Dear {name}, we told you that we had received {amount} on {date}. We are sorry, that was a mistake: we have not received this payment.',
    },
    payment_reminder: {
      headline: 'Please pay {amount} by {date}',
      undatedHeadline: 'Please pay {amount} for order {reference}',
      reminder: 'There is still {amount} to pay by {date}. Please quote the reference {reference}.',
      consequence: 'If it is not paid by then, the order will be cancelled and its places offered to others.',
      undated: 'There is still {amount} to pay. Please quote the reference {reference}.',
      reserved: 'Thank you for what you have paid so far: your tickets remain reserved for you.',
    },
    order_expired: {
      headline: 'Your order has been cancelled',
      expired: 'Your order was not paid in time and has been cancelled. Its places have been released.',
      doNotPay: 'Please do not make a payment now. If you would still like to come, please place a new order.',
    },
    order_cancelled: {
      headline: 'Order {reference} cancelled',
      refundHeadline: '{headline}, {amount} will be refunded',
      requested: 'Your order {reference} for {event} has been cancelled, with all its tickets.',
      eventCancelled:
        'Unfortunately, {event} has been cancelled, and with it your order {reference} and all its tickets.',
      /** From here on also for a buyer who is told of a ticket or of the event. */
      doNotPay: 'Please do not make a payment now.',
      refund: 'The {amount} you have paid will be refunded.',
      retained: 'Of what you have paid, we keep {retained}.',
      rest: '{amount} will be refunded.',
    },
    event_changed: {
      headline: 'Event changed',
      note: 'Please note what has changed:',
      valid: 'Your ticket remains valid.',
      unpaid: 'You will receive your ticket as soon as the order is paid.',
    },
    event_cancelled: {
      headline: 'Cancelled',
      notice: 'Unfortunately, this event has been cancelled. Tickets for it are no longer valid.',
    },
    ticket_cancelled: {
      headline: 'Ticket cancelled',
      one: 'The ticket for {names} has been cancelled and is no longer valid.',
      several: 'The tickets for {names} have been cancelled and are no longer valid.',
    },
    ticket_passed_on: {
      headline: 'Ticket passed on',
      passedOn:
        'Your ticket for {event} has been passed on to somebody else, as requested on its page. Your QR code is no longer valid. If that was a mistake, please contact the organiser.',
    },
    waiting_list_offer: {
      headline: 'A place for you',
      offer: 'Good news, {name}: a place has become available, and we are holding it for you until {date}.',
      /** Of an offer that is repeated because the event changed. */
      again:
        '{name}, the event has changed since we offered you a place. We are still holding it for you until {date}.',
      /** The button, where there is a page of the offer; else one of the next two sentences. */
      page: 'Take it or decline it',
      reply: 'If you would like to take it, please reply to this e-mail before then.',
      ask: 'If you would like to take it, please contact {organisation} before then.',
      after: 'After that, it will be offered to the next person on the waiting list.',
    },
    waiting_list_cancelled: {
      headline: 'Cancelled',
      notice:
        'Unfortunately, this event has been cancelled. Its waiting list is now closed, and no place is being held for you.',
    },
    answers_reminder: {
      headline: 'Information needed',
      missing: 'Dear {name}, we still need some information from you.',
      answer: 'Answer now',
      /** Without a link. */
      reply: 'Please send your answers to {organisation}.',
    },
    /** The organiser's own words. */
    organiser_message: { headline: '{subject}' },
  },

  /** Of several tickets that one e-mail tells of. */
  several: {
    valid: 'Your tickets remain valid.',
    unpaid: 'You will receive your tickets as soon as they are paid.',
    /** Beside some that are good. */
    othersUnpaid: 'The tickets that have not been paid yet will follow as soon as they are.',
  },

  /** News of an event, changes and messages, which can be switched off: at their foot, on the page that this leads to, and on the ticket page. */
  optOut: {
    link: 'Stop news about this event',
    title: 'News about the event',
    ask: 'Would you like to stop receiving news about this event: changes and messages from the organiser?',
    stays:
      'You will still receive your tickets, receipts and payment requests, and you will be told if the event or your ticket is cancelled.',
    button: 'Stop these e-mails',
    done: 'You will receive no more news about this event.',
    again: 'You can switch them on again on the page of your ticket.',
    on: 'News by e-mail: on',
    off: 'News by e-mail: off',
    switchOff: 'Switch off',
    switchOn: 'Switch on',
  },

  /** For a secret link that leads nowhere, or cannot be followed now. */
  link: {
    unknownTitle: 'Link not valid',
    unknown:
      'This link is not valid, or no longer valid. Please use the link in the most recent e-mail; otherwise, please contact the organiser.',
    busyTitle: 'One moment, please',
    busy: 'This page cannot be shown right now. Please try again in a minute.',
  },

  /** The guest page, where the holder of a ticket acts, and the links to it. */
  guest: {
    saved: 'Your changes have been saved.',
    closed: 'This is no longer possible.',
    questions: 'Questions for you',
    optional: 'optional',
    yes: 'Yes',
    no: 'No',
    choose: 'Please choose',
    save: 'Save',
    details: 'Your details',
    email: 'E-mail address',
    until: 'Possible until {date}.',
    back: 'Back',
    noRefund: 'Nothing will be refunded.',
    refundToBuyer: 'Any refund goes to the person who placed the order.',
    shorten: 'Please shorten your text.',
    missing: 'Please fill this in.',
    phone: 'Please enter a telephone number, such as +49 40 123456.',
    wrong: 'Please check this entry.',
    answered: 'You have answered this question. Leave it empty to keep your answer.',
    passOnNote: 'The new guest gets a ticket by e-mail. Yours stops working at once. This cannot be undone.',
    giveBackNote: 'Your ticket will be cancelled and your place released. This cannot be undone.',
    answerOne: 'Answer 1 question',
    answerSeveral: 'Answer {count} questions',
    yourTicket: '{acts} your ticket',
    change: 'change',
    passOn: 'pass on',
    giveBack: 'give back',
  },

  /** The ticket page. */
  page: {
    title: 'Ticket: {event}',
    valid: 'Show this code at the entrance. It admits one person, so please do not share it.',
    checkedIn: 'Checked in: {time}',
    awaitingPayment: 'Awaiting payment. The code will appear here as soon as the order is paid.',
    cancelled: 'This ticket has been cancelled and is no longer valid.',
    eventCancelled: 'This event has been cancelled.',
    eventEnded: 'This event is over.',
    map: 'Show on a map',
    calendar: 'Add to calendar',
    googleCalendar: 'Google Calendar',
    outdated: 'There is no connection, so this page may be out of date.',
    fullScreen: 'Show full-screen',
    closeFullScreen: 'Close',
  },

  /** The page of an offer of the waiting list. */
  offer: {
    free: 'If you take it, your ticket is e-mailed to you at once.',
    invoice: 'If you take it, you place an order that is paid by invoice. How to pay, and by when, is e-mailed to you.',
    take: 'Take the place',
    /** Of what has a price: as Directive 2011/83/EU, article 8, asks of such a button. */
    order: 'Order with obligation to pay',
    decline: 'Decline the place',
    ask: 'The place then goes to the next person on the waiting list. This cannot be undone.',
    taken: 'The place is yours. Your ticket is on its way to you by e-mail.',
    /** After what is to be paid. */
    reserved: 'The place is reserved for you. How to pay is in the e-mail about your order.',
    expired: 'This offer has expired. The place is no longer being held for you.',
    declined: 'This place is no longer being held for you.',
    refused: 'This place cannot be taken at the moment.',
  },

  /** The page of an event where guests register themselves. */
  eventPage: {
    left: '{count} left',
    soldOut: 'Sold out',
    from: 'On sale from {date}',
    over: 'No longer on sale',
    free: 'Free',
    atLeast: 'at least {count}',
    code: 'Promo code',
    codeUsed: 'Code {code} applied',
    choose: 'Continue',
    change: 'Update',
    guest: 'Guest {number}',
    emailOptional: 'Left empty, the ticket is sent to you.',
    byEmail: 'Tickets are sent by e-mail.',
    invoice: 'You pay by invoice. How to pay, and by when, is e-mailed to you.',
    register: 'Register',
    registered: 'Thank you for registering. The tickets are on their way by e-mail.',
    ordered: 'Thank you for your order. How to pay is on its way by e-mail. The tickets follow as soon as it is paid.',
    again: 'Register more guests',
    wait: 'Join the waiting list',
    waitNote: 'If a place becomes available, we will e-mail you.',
    waiting: 'You are on the waiting list. If a place becomes available, we will e-mail you.',
    closed: 'Registration is closed.',
    notOnSale: 'There are no tickets at the moment.',
    taken: 'Some of these tickets have just been taken. Please choose again.',
    badCode: 'This promo code is not valid, or no longer valid.',
    badNumber: 'Please choose another number of tickets.',
    tooMany: 'Too many registrations. Please try again later.',
    notPossible: 'This is not possible at the moment.',
    check: 'Please check the marked fields.',
    changed: 'The total has changed. Please check it, then send the form again.',
    sentBefore: 'This form was sent before. To register more guests, send it again.',
  },

  /** The page of an order, for its buyer. */
  orderPage: {
    open: 'Open your order',
    paid: 'This order is paid in full.',
    free: 'There is nothing to pay.',
    cancelled: 'This order has been cancelled.',
    reference: 'Payment reference',
    copy: 'Copy',
    copied: 'Copied: {text}',
    payments: 'Payments',
    payment: 'Payment received on {date}',
    refund: 'Refund made on {date}',
    tickets: 'Tickets',
    valid: 'Valid',
    unpaid: 'Awaiting payment',
    ticketCancelled: 'Cancelled',
    openTicket: 'Open ticket',
    change: 'Change name or pass on',
    printTickets: 'Print your tickets',
    receipt: 'Receipt',
    seller: 'Seller',
    buyer: 'Buyer',
    print: 'Print',
    page: 'Page {page} of {pages}',
  },
}

export type Words = typeof en
