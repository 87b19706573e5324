// English, from which the type of all languages follows: the same keys, and, as a test holds, the same {placeholders}.

export const en = {
  /** Passed to Intl, and the lang of the HTML. */
  locale: 'en-GB',

  // Labels
  when: 'When',
  where: 'Where',
  online: 'Online',
  name: 'Name',
  company: 'Company',
  ticket: 'Ticket',
  order: 'Order',
  code: 'Code',
  before: 'Before',
  now: 'Now',
  event: 'Event',
  discount: 'Discount',
  total: 'Total',
  paid: 'Paid',
  due: 'Still to be paid',
  howToPay: 'How to pay',

  // Parts of sentences and lines
  toBeAnnounced: 'To be announced',
  by: 'by {organisation}',
  qrCode: 'QR code {code}',
  line: '{quantity} × {name}',
  /** The second line of an event over several days. */
  until: 'to {moment}',
  /** Of an event during which the clocks change. */
  offsets: '{start} at the start, {end} at the end',
  openTicket: 'Open your ticket in the browser',

  // Closing sentences
  showAtTheDoor:
    'Show the QR code at the door, on your phone or on paper. It lets one person in, once: please share it with nobody.',
  keepAtHand: 'Keep this ticket at hand: you may be asked for its code.',
  attachedWithDate: 'The QR code is attached as a picture, and the date as a calendar file.',
  attached: 'The QR code is attached as a picture.',
  calendarUpdates: 'The attached calendar file updates the entry in your calendar.',
  calendarRemoves: 'The attached calendar file removes the entry from your calendar.',
  reply: 'Questions? Reply to this e-mail to reach {organisation}.',
  ask: 'Questions? Please ask {organisation}.',

  // Of the calendar entry
  calendarOrganiser: 'By {organisation}',
  calendarOnline: 'Online: {url}',
  calendarTicket: 'Ticket: {ticketType}',
  calendarOrder: 'Order: {reference}',
  calendarCode: 'Your QR code is in the ticket e-mail.',

  // Each kind of e-mail: its subject, what its text part begins with, and what it says. The keys are the list of kinds, from which those of
  // SQL and of the API are written: test/guests/email-kinds.unit.test.ts. One that only says `notice` needs no code of its own.
  kinds: {
    ticket: { subject: 'Your ticket: {event}', title: 'Your ticket for' },
    order_confirmation: {
      subject: 'Your order {reference}: {event}',
      title: 'Your order for',
      thanks: 'Thank you for your order, {name}.',
      pay: 'Please pay {amount} and give the reference {reference}.',
      payBy: 'Please pay {amount} by {date} and give the reference {reference}.',
      ticketsFollow: 'The tickets are e-mailed once the order is paid.',
      nothingDue: 'Nothing is to be paid. Each ticket is e-mailed to the person it is for.',
    },
    payment_received: {
      subject: 'Payment received: {event}',
      title: 'Payment received for',
      received: 'We received {amount} on {date}. Thank you, {name}.',
      complete: 'The order is paid. Each ticket is e-mailed to the person it is for.',
      incomplete: '{amount} is still to be paid.',
    },
    payment_voided: {
      subject: 'Payment not received: {event}',
      title: 'Payment not received for',
      voided:
        '{name}, we told you that we received {amount} on {date}. That was recorded by mistake, and is taken back.',
      due: '{amount} is still to be paid.',
    },
    payment_reminder: {
      subject: 'Please pay by {date}: {event}',
      title: 'Your order for',
      reminder: '{amount} is still to be paid by {date}. Please give the reference {reference}.',
      consequence: 'After that the order is cancelled, and its places are given to others.',
    },
    order_expired: {
      subject: 'Your order was cancelled: {event}',
      title: 'Your order for',
      expired: 'The order was not paid in time and was cancelled. Its places were given back.',
      doNotPay: 'Please do not pay it any more. If you still want to come, please ask for a new order.',
      refund: 'What you paid, {amount}, will be returned.',
    },
    event_changed: {
      subject: 'Changed: {event}',
      title: 'Something has changed:',
      note: 'Please note what has changed.',
      valid: 'Your ticket stays valid.',
    },
    event_cancelled: {
      subject: 'Cancelled: {event}',
      title: 'This event was cancelled:',
      notice: 'The event does not take place. Your ticket is no longer valid.',
    },
    ticket_cancelled: {
      subject: 'Your ticket was cancelled: {event}',
      title: 'Your ticket was cancelled:',
      notice: 'Your ticket is no longer valid: it does not let you in.',
    },
    waiting_list_offer: {
      subject: 'A place for you: {event}',
      title: 'A place is held for you:',
      offer: 'Good news, {name}: a place has become free, and it is held for you until {date}.',
      reply: 'To take it, reply to this e-mail before then.',
      ask: 'To take it, please contact {organisation} before then.',
      after: 'After that it is offered to the next person on the waiting list.',
    },
    waiting_list_cancelled: {
      subject: 'Cancelled: {event}',
      title: 'This event was cancelled:',
      notice: 'The event does not take place. You are no longer on its waiting list, and no place is held for you.',
    },
  },

  /** The ticket page. */
  page: {
    title: 'Ticket: {event}',
    valid: 'Show this code at the entrance. It lets one person in: share it with nobody.',
    validOnline: 'Keep this ticket at hand: you may be asked for its code.',
    checkedIn: 'Checked in: {time}',
    awaitingPayment: 'Awaiting payment. The code appears here as soon as the order is paid.',
    cancelled: 'This ticket was cancelled. It lets nobody in.',
    eventCancelled: 'This event was cancelled.',
    eventEnded: 'This event is over.',
    map: 'Show on a map',
    calendar: 'Add to calendar',
    googleCalendar: 'Google Calendar',
    outdated: 'There is no connection. What this page says may be out of date.',
    unknownTitle: 'No ticket here',
    unknown:
      'This link leads to no ticket. If your ticket was sent again, use the link in the newest e-mail; otherwise ask the organiser.',
    busyTitle: 'Please wait a moment',
    busy: 'The ticket cannot be shown right now. Try again in a minute.',
  },
}

export type Words = typeof en
