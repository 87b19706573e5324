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
  guests: 'Gäste',
  order: 'Bestellung',
  code: 'Code',
  before: 'bisher',
  now: 'neu',
  event: 'Veranstaltung',
  discount: 'Rabatt',
  total: 'Gesamt',
  paid: 'Bezahlt',
  due: 'Noch zu zahlen',
  howToPay: 'So bezahlen Sie',

  clock: '{hour}:{minute}',
  time: '{time}\u00a0Uhr',
  times: '{start} bis {end}\u00a0Uhr',
  moment: '{date} um\u00a0{time}',
  until: 'bis {moment}',
  offsets: '{start} zu Beginn, {end} am Ende',

  subject: '{headline}: {event}',
  toBeAnnounced: 'Wird noch bekannt gegeben',
  by: 'Veranstalter: {organisation}',
  qrCode: 'QR-Code {code}',
  line: '{quantity} × {name}',
  message: 'Nachricht von {organisation}',
  openTicket: 'Ticket im Browser öffnen',

  showAtTheDoor:
    'Zeigen Sie den QR-Code am Eingang vor, auf dem Handy oder ausgedruckt. Er gilt nur einmal und nur für eine Person. Bitte geben Sie ihn nicht weiter.',
  keepAtHand: 'Halten Sie Ihr Ticket bereit: Möglicherweise werden Sie nach dem Code gefragt.',
  attachedWithDate: 'Im Anhang finden Sie den QR-Code als Bild und den Termin für Ihren Kalender.',
  attached: 'Im Anhang finden Sie den QR-Code als Bild.',
  calendarUpdates: 'Die Kalenderdatei im Anhang aktualisiert den Termin in Ihrem Kalender.',
  calendarRemoves: 'Die Kalenderdatei im Anhang entfernt den Termin aus Ihrem Kalender.',
  reply: 'Fragen? Antworten Sie einfach auf diese E-Mail oder schreiben Sie an {organisation}:',
  write: 'Fragen? Schreiben Sie an {organisation}:',
  ask: 'Fragen? Bitte wenden Sie sich an {organisation}.',

  calendarOnline: 'Online: {url}',
  calendarTicket: 'Ticket: {ticketType}',
  calendarOrder: 'Bestellung: {reference}',
  calendarCode: 'Den QR-Code finden Sie in der E-Mail mit Ihrem Ticket.',

  kinds: {
    ticket: {
      headline: 'Ihr Ticket',
      several: 'Ihre {count} Tickets',
      oneEach:
        'Jeder QR-Code gilt nur einmal und nur für eine Person. Zeigen Sie ihn am Eingang vor, auf dem Handy oder ausgedruckt, und geben Sie jedes Ticket nur an die Person weiter, für die es bestimmt ist.',
    },
    order_confirmation: {
      headline: 'Ihre Bestellung {reference}',
      payHeadline: 'Ihre Bestellung {reference} – bitte zahlen Sie {amount}',
      payByHeadline: 'Ihre Bestellung {reference} – bitte zahlen Sie {amount} bis zum {date}',
      thanks: 'Vielen Dank für Ihre Bestellung, {name}.',
      pay: 'Bitte zahlen Sie {amount} und geben Sie als Verwendungszweck {reference} an.',
      payBy: 'Bitte zahlen Sie {amount} bis zum {date} und geben Sie als Verwendungszweck {reference} an.',
      ticketsFollow: 'Die Tickets kommen per E-Mail, sobald die Bestellung bezahlt ist.',
      nothingDue: 'Sie müssen nichts bezahlen. Alle Gäste erhalten ihr Ticket per E-Mail.',
    },
    payment_received: {
      headline: 'Zahlung über {amount} erhalten',
      received: 'Vielen Dank, {name}. Wir haben am {date} Ihre Zahlung über {amount} erhalten.',
      complete: 'Damit ist Ihre Bestellung vollständig bezahlt. Alle Gäste erhalten ihr Ticket per E-Mail.',
    },
    payment_voided: {
      headline: 'Zahlung über {amount} nicht erhalten',
      voided:
        'Guten Tag {name}, wir hatten Ihnen den Eingang von {amount} am {date} bestätigt. Das war leider ein Irrtum: Diese Zahlung haben wir nicht erhalten. Bitte entschuldigen Sie das Versehen.',
    },
    payment_reminder: {
      headline: 'Bitte zahlen Sie {amount} bis zum {date}',
      undatedHeadline: 'Bitte zahlen Sie {amount} für die Bestellung {reference}',
      reminder: 'Bis zum {date} sind noch {amount} zu zahlen. Bitte geben Sie als Verwendungszweck {reference} an.',
      consequence:
        'Geht die Zahlung nicht rechtzeitig ein, wird die Bestellung storniert und die Plätze werden anderen angeboten.',
      undated: 'Es sind noch {amount} zu zahlen. Bitte geben Sie als Verwendungszweck {reference} an.',
      reserved: 'Vielen Dank für das, was Sie schon bezahlt haben: Ihre Tickets bleiben für Sie reserviert.',
    },
    order_expired: {
      headline: 'Ihre Bestellung wurde storniert',
      expired:
        'Ihre Bestellung wurde nicht rechtzeitig bezahlt und deshalb storniert. Die Plätze wurden wieder freigegeben.',
      doNotPay: 'Bitte zahlen Sie jetzt nicht mehr. Wenn Sie weiterhin kommen möchten, bestellen Sie bitte neu.',
    },
    order_cancelled: {
      headline: 'Bestellung {reference} storniert',
      refundHeadline: '{headline}, {amount} werden erstattet',
      requested: 'Ihre Bestellung {reference} für {event} wurde mit allen Tickets storniert.',
      eventCancelled:
        'Die Veranstaltung {event} wurde leider abgesagt. Damit ist auch Ihre Bestellung {reference} mit allen Tickets storniert.',
      doNotPay: 'Bitte zahlen Sie jetzt nicht mehr.',
      refund: 'Die {amount}, die Sie schon bezahlt haben, werden Ihnen erstattet.',
      retained: 'Von Ihrer Zahlung behalten wir {retained} ein.',
      rest: '{amount} werden Ihnen erstattet.',
    },
    event_changed: {
      headline: 'Änderung',
      note: 'Das hat sich geändert:',
      valid: 'Ihr Ticket bleibt gültig.',
      unpaid: 'Ihr Ticket erhalten Sie, sobald die Bestellung bezahlt ist.',
    },
    event_cancelled: {
      headline: 'Abgesagt',
      notice: 'Diese Veranstaltung wurde leider abgesagt. Die Tickets sind nicht mehr gültig.',
    },
    ticket_cancelled: {
      headline: 'Ticket storniert',
      one: 'Das Ticket für {names} wurde storniert und ist nicht mehr gültig.',
      several: 'Die Tickets für {names} wurden storniert und sind nicht mehr gültig.',
    },
    ticket_passed_on: {
      headline: 'Ticket weitergegeben',
      passedOn:
        'Ihr Ticket für {event} wurde an jemand anderen weitergegeben, wie auf der Seite des Tickets gewünscht. Ihr QR-Code ist nicht mehr gültig. Falls das ein Versehen war, wenden Sie sich bitte an den Veranstalter.',
    },
    waiting_list_offer: {
      headline: 'Ein Platz für Sie',
      offer: 'Gute Nachrichten, {name}: Ein Platz ist frei geworden, und wir reservieren ihn bis zum {date} für Sie.',
      again:
        '{name}, seit wir Ihnen einen Platz angeboten haben, hat sich die Veranstaltung geändert. Wir reservieren ihn weiterhin bis zum {date} für Sie.',
      page: 'Annehmen oder ablehnen',
      reply: 'Wenn Sie ihn möchten, antworten Sie bitte bis dahin auf diese E-Mail.',
      ask: 'Wenn Sie ihn möchten, wenden Sie sich bitte bis dahin an {organisation}.',
      after: 'Danach bieten wir ihn der nächsten Person auf der Warteliste an.',
    },
    waiting_list_cancelled: {
      headline: 'Abgesagt',
      notice:
        'Diese Veranstaltung wurde leider abgesagt. Damit ist auch die Warteliste geschlossen, und wir halten keinen Platz mehr für Sie frei.',
    },
    answers_reminder: {
      headline: 'Angaben fehlen',
      missing: 'Guten Tag {name}, uns fehlen noch Angaben von Ihnen.',
      answer: 'Jetzt antworten',
      reply: 'Bitte schicken Sie Ihre Antworten an {organisation}.',
    },
    organiser_message: { headline: '{subject}' },
  },

  several: {
    valid: 'Ihre Tickets bleiben gültig.',
    unpaid: 'Ihre Tickets erhalten Sie, sobald sie bezahlt sind.',
    othersUnpaid: 'Die noch nicht bezahlten Tickets erhalten Sie, sobald sie bezahlt sind.',
  },

  optOut: {
    link: 'Keine Neuigkeiten mehr zu dieser Veranstaltung',
    title: 'Neuigkeiten zur Veranstaltung',
    ask: 'Möchten Sie keine Neuigkeiten mehr zu dieser Veranstaltung erhalten, weder Änderungen noch Mitteilungen des Veranstalters?',
    stays:
      'Tickets, Zahlungsbestätigungen und Zahlungsaufforderungen erhalten Sie weiterhin, und wir informieren Sie, falls die Veranstaltung abgesagt oder Ihr Ticket storniert wird.',
    button: 'E-Mails abbestellen',
    done: 'Sie erhalten keine Neuigkeiten mehr zu dieser Veranstaltung.',
    again: 'Auf der Seite Ihres Tickets können Sie sie wieder einschalten.',
    on: 'Neuigkeiten per E-Mail: an',
    off: 'Neuigkeiten per E-Mail: aus',
    switchOff: 'Ausschalten',
    switchOn: 'Einschalten',
  },

  link: {
    unknownTitle: 'Link ungültig',
    unknown:
      'Dieser Link ist ungültig oder nicht mehr gültig. Bitte verwenden Sie den Link aus der neuesten E-Mail oder wenden Sie sich an den Veranstalter.',
    busyTitle: 'Einen Moment bitte',
    busy: 'Diese Seite kann gerade nicht angezeigt werden. Bitte versuchen Sie es in einer Minute noch einmal.',
  },

  guest: {
    saved: 'Ihre Änderungen wurden gespeichert.',
    closed: 'Das ist nicht mehr möglich.',
    questions: 'Fragen an Sie',
    optional: 'freiwillig',
    yes: 'Ja',
    no: 'Nein',
    choose: 'Bitte wählen',
    save: 'Speichern',
    details: 'Ihre Angaben',
    email: 'E-Mail-Adresse',
    until: 'Möglich bis {date}.',
    back: 'Zurück',
    noRefund: 'Es wird nichts erstattet.',
    refundToBuyer: 'Eine Erstattung geht an die Person, die bestellt hat.',
    shorten: 'Bitte kürzen Sie Ihren Text.',
    missing: 'Bitte füllen Sie dieses Feld aus.',
    phone: 'Bitte geben Sie eine Telefonnummer ein, zum Beispiel +49 40 123456.',
    wrong: 'Bitte prüfen Sie diese Angabe.',
    answered: 'Sie haben diese Frage beantwortet. Lassen Sie das Feld leer, um Ihre Antwort zu behalten.',
    passOnNote: 'Der neue Gast erhält ein Ticket per E-Mail. Ihres gilt sofort nicht mehr. Das ist endgültig.',
    giveBackNote: 'Ihr Ticket wird storniert und Ihr Platz freigegeben. Das ist endgültig.',
    answerOne: '1 Frage beantworten',
    answerSeveral: '{count} Fragen beantworten',
    yourTicket: 'Ticket {acts}',
    change: 'ändern',
    passOn: 'weitergeben',
    giveBack: 'zurückgeben',
  },

  page: {
    title: 'Ticket: {event}',
    valid: 'Zeigen Sie diesen Code am Eingang vor. Er gilt nur für eine Person. Bitte geben Sie ihn nicht weiter.',
    checkedIn: 'Eingecheckt: {time}',
    awaitingPayment: 'Die Zahlung steht noch aus. Der Code erscheint hier, sobald die Bestellung bezahlt ist.',
    cancelled: 'Dieses Ticket wurde storniert und ist nicht mehr gültig.',
    eventCancelled: 'Diese Veranstaltung wurde abgesagt.',
    eventEnded: 'Diese Veranstaltung ist vorbei.',
    map: 'Auf der Karte anzeigen',
    calendar: 'In den Kalender eintragen',
    googleCalendar: 'Google Kalender',
    outdated: 'Keine Verbindung. Die Angaben auf dieser Seite sind möglicherweise nicht mehr aktuell.',
    fullScreen: 'Als Vollbild zeigen',
    closeFullScreen: 'Schließen',
  },

  offer: {
    free: 'Wenn Sie ihn annehmen, schicken wir Ihnen sofort Ihr Ticket per E-Mail.',
    invoice:
      'Wenn Sie ihn annehmen, bestellen Sie auf Rechnung. Wie und bis wann Sie bezahlen, steht in der E-Mail, die Sie dann erhalten.',
    take: 'Platz annehmen',
    order: 'Zahlungspflichtig bestellen',
    decline: 'Platz ablehnen',
    ask: 'Der Platz geht dann an die nächste Person auf der Warteliste. Das lässt sich nicht rückgängig machen.',
    taken: 'Der Platz gehört Ihnen. Ihr Ticket ist per E-Mail unterwegs.',
    reserved: 'Der Platz ist für Sie reserviert. Wie Sie bezahlen, steht in der E-Mail zu Ihrer Bestellung.',
    expired: 'Dieses Angebot ist abgelaufen. Der Platz wird nicht mehr für Sie reserviert.',
    declined: 'Dieser Platz wird nicht mehr für Sie reserviert.',
    refused: 'Dieser Platz kann im Moment nicht angenommen werden.',
  },

  orderPage: {
    open: 'Bestellung öffnen',
    paid: 'Diese Bestellung ist vollständig bezahlt.',
    free: 'Sie müssen nichts bezahlen.',
    cancelled: 'Diese Bestellung wurde storniert.',
    reference: 'Verwendungszweck',
    copy: 'Kopieren',
    copied: 'Kopiert: {text}',
    payments: 'Zahlungen',
    payment: 'Zahlung vom {date}',
    refund: 'Erstattung vom {date}',
    tickets: 'Tickets',
    valid: 'Gültig',
    unpaid: 'Noch nicht bezahlt',
    ticketCancelled: 'Storniert',
    openTicket: 'Ticket öffnen',
    change: 'Namen ändern oder weitergeben',
    printTickets: 'Ihre Tickets drucken',
    receipt: 'Zahlungsbestätigung',
    seller: 'Verkäufer',
    buyer: 'Käufer',
    print: 'Drucken',
    page: 'Seite {page} von {pages}',
  },
}
