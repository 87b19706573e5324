// What the ticket page says, by language. Facts of the event come from src/courier/, as in e-mails.

export const en = {
  title: 'Ticket',
  valid: 'Show this code at the entrance. It lets one person in: share it with nobody.',
  validOnline: 'Keep this ticket at hand: you may be asked for its code.',
  checkedIn: (time: string) => `Checked in: ${time}`,
  awaitingPayment: 'Awaiting payment. The code appears here as soon as the order is paid.',
  cancelled: 'This ticket was cancelled. It lets nobody in.',
  eventCancelled: 'This event was cancelled.',
  eventEnded: 'This event is over.',
  qrCode: (code: string) => `QR code ${code}`,
  when: 'When',
  where: 'Where',
  ticket: 'Ticket',
  order: 'Order',
  toBeAnnounced: 'To be announced',
  online: 'Online',
  map: 'Show on a map',
  calendar: 'Add to calendar',
  googleCalendar: 'Google Calendar',
  by: (organisation: string) => `By ${organisation}`,
  outdated: 'There is no connection. What this page says may be out of date.',
  unknownTitle: 'No ticket here',
  unknown:
    'This link leads to no ticket. If your ticket was sent again, use the link in the newest e-mail; otherwise ask the organiser.',
  busyTitle: 'Please wait a moment',
  busy: 'The ticket cannot be shown right now. Try again in a minute.',
}

export type TicketPageWords = typeof en
