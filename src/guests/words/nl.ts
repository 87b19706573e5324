// Dutch.

import type { Words } from './en.ts'

export const nl: Words = {
  locale: 'nl-NL',

  when: 'Wanneer',
  where: 'Waar',
  online: 'Online',
  name: 'Naam',
  company: 'Bedrijf',
  ticket: 'Ticket',
  order: 'Bestelling',
  code: 'Code',
  before: 'Eerst',
  now: 'Nu',
  event: 'Evenement',
  discount: 'Korting',
  total: 'Totaal',
  paid: 'Betaald',
  due: 'Nog te betalen',
  howToPay: 'Zo betaal je',

  toBeAnnounced: 'Wordt nog bekendgemaakt',
  by: 'van {organisation}',
  qrCode: 'QR-code {code}',
  line: '{quantity} × {name}',
  until: 'tot {moment}',
  offsets: '{start} aan het begin, {end} aan het eind',
  openTicket: 'Je ticket openen in de browser',

  showAtTheDoor:
    'Laat de QR-code bij de ingang zien, op je telefoon of op papier. Hij geeft één persoon één keer toegang: deel hem met niemand.',
  keepAtHand: 'Houd dit ticket bij de hand: er kan naar de code worden gevraagd.',
  attachedWithDate: 'De QR-code is als afbeelding bijgevoegd, en de datum als agendabestand.',
  attached: 'De QR-code is als afbeelding bijgevoegd.',
  calendarUpdates: 'Het bijgevoegde agendabestand werkt de afspraak in je agenda bij.',
  calendarRemoves: 'Het bijgevoegde agendabestand verwijdert de afspraak uit je agenda.',
  reply: 'Vragen? Beantwoord deze e-mail om {organisation} te bereiken.',
  ask: 'Vragen? Neem contact op met {organisation}.',

  calendarOrganiser: 'Van {organisation}',
  calendarOnline: 'Online: {url}',
  calendarTicket: 'Ticket: {ticketType}',
  calendarOrder: 'Bestelling: {reference}',
  calendarCode: 'Je QR-code staat in de e-mail met het ticket.',

  kinds: {
    ticket: { subject: 'Je ticket: {event}', title: 'Je ticket voor' },
    order_confirmation: {
      subject: 'Je bestelling {reference}: {event}',
      title: 'Je bestelling voor',
      thanks: 'Bedankt voor je bestelling, {name}.',
      pay: 'Betaal {amount} en vermeld het kenmerk {reference}.',
      payBy: 'Betaal {amount} vóór {date} en vermeld het kenmerk {reference}.',
      ticketsFollow: 'De tickets worden gemaild zodra de bestelling is betaald.',
      nothingDue: 'Er hoeft niets te worden betaald. Elk ticket wordt gemaild naar degene voor wie het is.',
    },
    payment_received: {
      subject: 'Betaling ontvangen: {event}',
      title: 'Betaling ontvangen voor',
      received: 'We hebben {amount} ontvangen op {date}. Bedankt, {name}.',
      complete: 'De bestelling is betaald. Elk ticket wordt gemaild naar degene voor wie het is.',
      incomplete: 'Er is nog {amount} te betalen.',
    },
    payment_voided: {
      subject: 'Betaling niet ontvangen: {event}',
      title: 'Betaling niet ontvangen voor',
      voided:
        '{name}, we hebben je geschreven dat we op {date} {amount} hebben ontvangen. Dat was een vergissing en is teruggedraaid.',
      due: 'Er is nog {amount} te betalen.',
    },
    payment_reminder: {
      subject: 'Betaal vóór {date}: {event}',
      title: 'Je bestelling voor',
      reminder: 'Er is nog {amount} te betalen vóór {date}. Vermeld het kenmerk {reference}.',
      consequence: 'Daarna wordt de bestelling geannuleerd en gaan de plaatsen naar anderen.',
    },
    order_expired: {
      subject: 'Je bestelling is geannuleerd: {event}',
      title: 'Je bestelling voor',
      expired: 'De bestelling is niet op tijd betaald en is geannuleerd. De plaatsen zijn vrijgegeven.',
      doNotPay: 'Betaal niet meer. Wil je nog steeds komen, vraag dan om een nieuwe bestelling.',
      refund: 'Wat je hebt betaald, {amount}, krijg je terug.',
    },
    event_changed: {
      subject: 'Gewijzigd: {event}',
      title: 'Er is iets veranderd:',
      note: 'Let op wat er is veranderd.',
      valid: 'Je ticket blijft geldig.',
    },
    event_cancelled: {
      subject: 'Afgelast: {event}',
      title: 'Dit evenement is afgelast:',
      notice: 'Het evenement gaat niet door. Je ticket is niet meer geldig.',
    },
    ticket_cancelled: {
      subject: 'Je ticket is geannuleerd: {event}',
      title: 'Je ticket is geannuleerd:',
      notice: 'Je ticket is niet meer geldig: je komt er niet mee binnen.',
    },
    waiting_list_offer: {
      subject: 'Een plaats voor jou: {event}',
      title: 'Er is een plaats voor je vrijgehouden:',
      offer: 'Goed nieuws, {name}: er is een plaats vrijgekomen, die tot {date} voor je wordt vrijgehouden.',
      reply: 'Wil je hem hebben, beantwoord dan vóór die tijd deze e-mail.',
      ask: 'Wil je hem hebben, neem dan vóór die tijd contact op met {organisation}.',
      after: 'Daarna gaat hij naar de volgende op de wachtlijst.',
    },
    waiting_list_cancelled: {
      subject: 'Afgelast: {event}',
      title: 'Dit evenement is afgelast:',
      notice:
        'Het evenement gaat niet door. Je staat niet meer op de wachtlijst en er wordt geen plaats voor je vrijgehouden.',
    },
  },

  page: {
    title: 'Ticket: {event}',
    valid: 'Laat deze code bij de ingang zien. De code laat één persoon binnen: deel hem met niemand.',
    validOnline: 'Houd dit ticket bij de hand: er kan naar de code worden gevraagd.',
    checkedIn: 'Ingecheckt: {time}',
    awaitingPayment: 'De betaling wordt nog verwacht. De code verschijnt hier zodra de bestelling is betaald.',
    cancelled: 'Dit ticket is geannuleerd. Niemand komt ermee binnen.',
    eventCancelled: 'Dit evenement is afgelast.',
    eventEnded: 'Dit evenement is voorbij.',
    map: 'Op een kaart tonen',
    calendar: 'In de agenda zetten',
    googleCalendar: 'Google Agenda',
    outdated: 'Er is geen verbinding. Wat deze pagina zegt, kan verouderd zijn.',
    unknownTitle: 'Hier is geen ticket',
    unknown:
      'Deze link leidt niet naar een ticket. Is je ticket opnieuw verstuurd, gebruik dan de link in de nieuwste e-mail; vraag het anders aan de organisator.',
    busyTitle: 'Een ogenblik geduld',
    busy: 'Het ticket kan nu niet worden getoond. Probeer het over een minuut opnieuw.',
  },
}
