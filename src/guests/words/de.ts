// German.

import type { Words } from './en.ts'

export const de: Words = {
  locale: 'de-DE',

  when: 'Wann',
  where: 'Wo',
  online: 'Online',
  name: 'Name',
  company: 'Firma',
  ticket: 'Ticket',
  order: 'Bestellung',
  code: 'Code',
  before: 'Bisher',
  now: 'Jetzt',
  event: 'Veranstaltung',
  discount: 'Rabatt',
  total: 'Gesamt',
  paid: 'Bezahlt',
  due: 'Noch zu zahlen',
  howToPay: 'So können Sie zahlen',

  toBeAnnounced: 'Wird noch bekannt gegeben',
  by: 'von {organisation}',
  qrCode: 'QR-Code {code}',
  line: '{quantity} × {name}',
  until: 'bis {moment}',
  offsets: '{start} zu Beginn, {end} am Ende',
  openTicket: 'Ihr Ticket im Browser öffnen',

  showAtTheDoor:
    'Zeigen Sie den QR-Code am Eingang, auf dem Telefon oder auf Papier. Er gilt für eine Person und einen Einlass: Bitte geben Sie ihn nicht weiter.',
  keepAtHand: 'Halten Sie dieses Ticket bereit: Sie werden vielleicht nach dem Code gefragt.',
  attachedWithDate: 'Der QR-Code ist als Bild angehängt, der Termin als Kalenderdatei.',
  attached: 'Der QR-Code ist als Bild angehängt.',
  calendarUpdates: 'Die angehängte Kalenderdatei aktualisiert den Eintrag in Ihrem Kalender.',
  calendarRemoves: 'Die angehängte Kalenderdatei entfernt den Eintrag aus Ihrem Kalender.',
  reply: 'Fragen? Antworten Sie auf diese E-Mail, um {organisation} zu erreichen.',
  ask: 'Fragen? Bitte wenden Sie sich an {organisation}.',

  calendarOrganiser: 'Von {organisation}',
  calendarOnline: 'Online: {url}',
  calendarTicket: 'Ticket: {ticketType}',
  calendarOrder: 'Bestellung: {reference}',
  calendarCode: 'Ihr QR-Code ist in der E-Mail mit dem Ticket.',

  kinds: {
    ticket: { subject: 'Ihr Ticket: {event}', title: 'Ihr Ticket für' },
    order_confirmation: {
      subject: 'Ihre Bestellung {reference}: {event}',
      title: 'Ihre Bestellung für',
      thanks: 'Vielen Dank für Ihre Bestellung, {name}.',
      pay: 'Bitte zahlen Sie {amount} und geben Sie {reference} als Verwendungszweck an.',
      payBy: 'Bitte zahlen Sie {amount} bis zum {date} und geben Sie {reference} als Verwendungszweck an.',
      ticketsFollow: 'Die Tickets kommen per E-Mail, sobald die Bestellung bezahlt ist.',
      nothingDue: 'Es ist nichts zu zahlen. Jedes Ticket geht per E-Mail an die Person, für die es ist.',
    },
    payment_received: {
      subject: 'Zahlung erhalten: {event}',
      title: 'Zahlung erhalten für',
      received: 'Am {date} haben wir {amount} erhalten. Vielen Dank, {name}.',
      complete: 'Die Bestellung ist bezahlt. Jedes Ticket geht per E-Mail an die Person, für die es ist.',
      incomplete: '{amount} sind noch zu zahlen.',
    },
    payment_voided: {
      subject: 'Zahlung nicht erhalten: {event}',
      title: 'Zahlung nicht erhalten für',
      voided:
        '{name}, wir haben Ihnen geschrieben, dass wir am {date} {amount} erhalten haben. Das war ein Versehen und wurde zurückgenommen.',
      due: '{amount} sind noch zu zahlen.',
    },
    payment_reminder: {
      subject: 'Bitte zahlen Sie bis zum {date}: {event}',
      title: 'Ihre Bestellung für',
      reminder: '{amount} sind noch bis zum {date} zu zahlen. Bitte geben Sie {reference} als Verwendungszweck an.',
      consequence: 'Danach wird die Bestellung storniert, und ihre Plätze werden an andere vergeben.',
    },
    order_expired: {
      subject: 'Ihre Bestellung wurde storniert: {event}',
      title: 'Ihre Bestellung für',
      expired: 'Die Bestellung wurde nicht rechtzeitig bezahlt und ist storniert. Ihre Plätze wurden freigegeben.',
      doNotPay: 'Bitte zahlen Sie nicht mehr. Wenn Sie weiterhin kommen möchten, bitten Sie um eine neue Bestellung.',
      refund: 'Was Sie gezahlt haben, {amount}, wird erstattet.',
    },
    event_changed: {
      subject: 'Geändert: {event}',
      title: 'Es hat sich etwas geändert:',
      note: 'Bitte beachten Sie, was sich geändert hat.',
      valid: 'Ihr Ticket bleibt gültig.',
    },
    event_cancelled: {
      subject: 'Abgesagt: {event}',
      title: 'Diese Veranstaltung wurde abgesagt:',
      notice: 'Die Veranstaltung findet nicht statt. Ihr Ticket ist nicht mehr gültig.',
    },
    ticket_cancelled: {
      subject: 'Ihr Ticket wurde storniert: {event}',
      title: 'Ihr Ticket wurde storniert:',
      notice: 'Ihr Ticket ist nicht mehr gültig: Sie kommen damit nicht hinein.',
    },
    waiting_list_offer: {
      subject: 'Ein Platz für Sie: {event}',
      title: 'Ein Platz ist für Sie reserviert:',
      offer: 'Gute Nachricht, {name}: Ein Platz ist frei geworden und bis zum {date} für Sie reserviert.',
      reply: 'Wenn Sie ihn möchten, antworten Sie bis dahin auf diese E-Mail.',
      ask: 'Wenn Sie ihn möchten, wenden Sie sich bis dahin bitte an {organisation}.',
      after: 'Danach wird er der nächsten Person auf der Warteliste angeboten.',
    },
    waiting_list_cancelled: {
      subject: 'Abgesagt: {event}',
      title: 'Diese Veranstaltung wurde abgesagt:',
      notice:
        'Die Veranstaltung findet nicht statt. Sie stehen nicht mehr auf der Warteliste, und es ist kein Platz für Sie reserviert.',
    },
  },

  page: {
    title: 'Ticket: {event}',
    valid: 'Zeigen Sie diesen Code am Einlass. Er lässt eine Person ein: Geben Sie ihn nicht weiter.',
    validOnline: 'Halten Sie dieses Ticket bereit: Vielleicht werden Sie nach dem Code gefragt.',
    checkedIn: 'Eingecheckt: {time}',
    awaitingPayment: 'Die Zahlung steht aus. Der Code erscheint hier, sobald die Bestellung bezahlt ist.',
    cancelled: 'Dieses Ticket wurde storniert. Es lässt niemanden ein.',
    eventCancelled: 'Diese Veranstaltung wurde abgesagt.',
    eventEnded: 'Diese Veranstaltung ist vorbei.',
    map: 'Auf einer Karte zeigen',
    calendar: 'In den Kalender eintragen',
    googleCalendar: 'Google Kalender',
    outdated: 'Es besteht keine Verbindung. Was hier steht, kann veraltet sein.',
    unknownTitle: 'Hier ist kein Ticket',
    unknown:
      'Dieser Link führt zu keinem Ticket. Wurde Ihr Ticket noch einmal verschickt, verwenden Sie den Link der neuesten E-Mail; sonst fragen Sie den Veranstalter.',
    busyTitle: 'Bitte warten Sie einen Moment',
    busy: 'Das Ticket kann gerade nicht gezeigt werden. Versuchen Sie es in einer Minute noch einmal.',
  },
}
