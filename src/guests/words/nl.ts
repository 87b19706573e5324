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
  guests: 'Gasten',
  order: 'Bestelling',
  code: 'Code',
  before: 'oud',
  now: 'nieuw',
  event: 'Evenement',
  discount: 'Korting',
  total: 'Totaal',
  paid: 'Betaald',
  due: 'Nog te betalen',
  howToPay: 'Zo betaal je',

  clock: '{hour}:{minute}',
  time: '{time}\u00a0uur',
  times: '{start} tot {end}\u00a0uur',
  moment: '{date} om\u00a0{time}',
  until: 'tot {moment}',
  offsets: '{start} aan het begin, {end} aan het eind',

  subject: '{headline}: {event}',
  toBeAnnounced: 'Wordt nog bekendgemaakt',
  by: 'Organisator: {organisation}',
  qrCode: 'QR-code {code}',
  line: '{quantity} × {name}',
  message: 'Bericht van {organisation}',
  openTicket: 'Ticket openen in de browser',

  showAtTheDoor:
    'Laat de QR-code zien bij de ingang, op je telefoon of op papier. De code geeft één persoon één keer toegang, dus deel hem met niemand.',
  keepAtHand: 'Houd dit ticket bij de hand: er kan naar de code worden gevraagd.',
  attachedWithDate: 'In de bijlage vind je de QR-code als afbeelding en de afspraak voor je agenda.',
  attached: 'In de bijlage vind je de QR-code als afbeelding.',
  calendarUpdates: 'Het bijgevoegde agendabestand werkt de afspraak in je agenda bij.',
  calendarRemoves: 'Het bijgevoegde agendabestand verwijdert de afspraak uit je agenda.',
  reply: 'Vragen? Beantwoord deze e-mail of mail naar {organisation}:',
  write: 'Vragen? Mail naar {organisation}:',
  ask: 'Vragen? Neem contact op met {organisation}.',

  calendarOnline: 'Online: {url}',
  calendarTicket: 'Ticket: {ticketType}',
  calendarOrder: 'Bestelling: {reference}',
  calendarCode: 'Je QR-code staat in de e-mail met je ticket.',

  kinds: {
    ticket: {
      headline: 'Je ticket',
      several: 'Je {count} tickets',
      oneEach:
        'Elke QR-code geeft één persoon één keer toegang. Laat de code zien bij de ingang, op een telefoon of op papier, en geef elk ticket alleen door aan de persoon voor wie het bestemd is.',
    },
    order_confirmation: {
      headline: 'Je bestelling {reference}',
      thanks: 'Bedankt voor je bestelling, {name}.',
      pay: 'Betaal {amount} onder vermelding van {reference}.',
      payBy: 'Betaal {amount} uiterlijk {date}, onder vermelding van {reference}.',
      ticketsFollow: 'Zodra de bestelling is betaald, worden de tickets per e-mail verstuurd.',
      nothingDue: 'Je hoeft niets te betalen. Alle gasten krijgen hun ticket per e-mail.',
    },
    payment_received: {
      headline: 'Betaling ontvangen',
      received: 'Bedankt, {name}. We hebben je betaling van {amount} op {date} ontvangen.',
      complete: 'Je bestelling is nu volledig betaald. Alle gasten krijgen hun ticket per e-mail.',
      incomplete: 'Er staat nog {amount} open.',
    },
    payment_voided: {
      headline: 'Betaling niet ontvangen',
      voided:
        'Hallo {name}, we hadden je laten weten dat we op {date} {amount} hadden ontvangen. Dat was een vergissing, onze excuses: we hebben deze betaling niet ontvangen.',
    },
    payment_reminder: {
      headline: 'Betaal uiterlijk {date}',
      reminder: 'Er staat nog {amount} open. Betaal dit uiterlijk {date}, onder vermelding van {reference}.',
      consequence: 'Is er dan nog niet betaald, dan wordt de bestelling geannuleerd en gaan de plaatsen naar anderen.',
      undatedHeadline: 'Betaal bestelling {reference}',
      undated: 'Er staat nog {amount} open. Vermeld bij de betaling {reference}.',
      reserved: 'Bedankt voor wat je al hebt betaald: je tickets blijven voor je gereserveerd.',
    },
    order_expired: {
      headline: 'Je bestelling is geannuleerd',
      expired: 'Je bestelling is niet op tijd betaald en daarom geannuleerd. De plaatsen zijn weer vrijgegeven.',
      doNotPay: 'Betaal nu niet meer. Wil je nog steeds komen, plaats dan een nieuwe bestelling.',
    },
    order_cancelled: {
      headline: 'Bestelling {reference} geannuleerd',
      requested: 'Je bestelling {reference} voor {event} is geannuleerd, met alle tickets.',
      eventCancelled:
        'Het evenement {event} is helaas afgelast. Daarmee is ook je bestelling {reference} geannuleerd, met alle tickets.',
      doNotPay: 'Betaal nu niet meer.',
      refund: 'De {amount} die je al hebt betaald, krijg je terug.',
      retained: 'Van wat je hebt betaald, houden we {retained} in.',
      rest: 'Je krijgt {amount} terug.',
    },
    event_changed: {
      headline: 'Wijziging',
      note: 'Dit is er veranderd:',
      valid: 'Je ticket blijft geldig.',
      unpaid: 'Je krijgt je ticket zodra de bestelling is betaald.',
    },
    event_cancelled: {
      headline: 'Afgelast',
      notice: 'Dit evenement is helaas afgelast. De tickets zijn niet meer geldig.',
    },
    ticket_cancelled: {
      headline: 'Ticket geannuleerd',
      one: 'Het ticket voor {names} is geannuleerd en niet meer geldig.',
      several: 'De tickets voor {names} zijn geannuleerd en niet meer geldig.',
    },
    ticket_passed_on: {
      headline: 'Ticket doorgegeven',
      passedOn:
        'Je ticket voor {event} is doorgegeven aan iemand anders, zoals gevraagd op de pagina van het ticket. Je QR-code is niet meer geldig. Was dat een vergissing, neem dan contact op met de organisator.',
    },
    waiting_list_offer: {
      headline: 'Een plaats voor jou',
      offer: 'Goed nieuws, {name}: er is een plaats vrijgekomen. We houden die voor je vrij tot {date}.',
      /** Of an offer that is repeated because the event changed. */
      again:
        '{name}, het evenement is gewijzigd sinds we je een plaats aanboden. We houden die nog steeds voor je vrij tot {date}.',
      page: 'Aannemen of afslaan',
      reply: 'Wil je die plaats? Laat het ons vóór die tijd weten door deze e-mail te beantwoorden.',
      ask: 'Wil je die plaats? Neem dan vóór die tijd contact op met {organisation}.',
      after: 'Daarna gaat de plaats naar de volgende op de wachtlijst.',
    },
    waiting_list_cancelled: {
      headline: 'Afgelast',
      notice:
        'Dit evenement is helaas afgelast. De wachtlijst is gesloten en er wordt geen plaats meer voor je vrijgehouden.',
    },
    answers_reminder: {
      headline: 'Gegevens ontbreken',
      missing: 'Beste {name}, we hebben nog gegevens van je nodig.',
      questions: 'Openstaande vragen',
      answer: 'Nu beantwoorden',
      reply: 'Stuur je antwoorden naar {organisation}.',
    },
  },

  several: {
    valid: 'Je tickets blijven geldig.',
    unpaid: 'Je krijgt je tickets zodra ze zijn betaald.',
    othersUnpaid: 'De tickets die nog niet zijn betaald, krijg je zodra ze zijn betaald.',
  },

  optOut: {
    link: 'Geen e-mails meer over wijzigingen van dit evenement',
    title: 'E-mails over wijzigingen',
    ask: 'Wil je geen e-mails meer krijgen over wijzigingen van dit evenement?',
    stays:
      'Je krijgt nog wel je tickets, betalingsbevestigingen en betaalverzoeken, en je hoort het als het evenement wordt afgelast of je ticket wordt geannuleerd.',
    button: 'Stop deze e-mails',
    done: 'Je krijgt geen e-mails meer over wijzigingen van dit evenement.',
    again: 'Op de pagina van je ticket kun je ze weer aanzetten.',
    unknownTitle: 'Link niet geldig',
    unknown: 'Deze link is niet (meer) geldig. Op de pagina van je ticket kun je e-mails uit- en weer aanzetten.',
    busy: 'Dit kan nu even niet. Probeer het over een minuut opnieuw.',
    on: 'E-mails over wijzigingen: aan',
    off: 'E-mails over wijzigingen: uit',
    switchOff: 'Uitzetten',
    switchOn: 'Aanzetten',
  },

  guest: {
    saved: 'Je wijzigingen zijn opgeslagen.',
    closed: 'Dit kan niet meer.',
    questions: 'Vragen voor jou',
    optional: 'niet verplicht',
    yes: 'Ja',
    no: 'Nee',
    choose: 'Maak een keuze',
    save: 'Opslaan',
    details: 'Je gegevens',
    email: 'E-mailadres',
    until: 'Mogelijk tot {date}.',
    back: 'Terug',
    passOn: 'Je ticket doorgeven',
    giveBack: 'Je ticket teruggeven',
    noRefund: 'Er wordt niets terugbetaald.',
    refundToBuyer: 'Een eventuele terugbetaling gaat naar degene die heeft besteld.',
    shorten: 'Maak je tekst korter.',
    missing: 'Vul dit in.',
    phone: 'Vul een telefoonnummer in, bijvoorbeeld +31 20 123 4567.',
    wrong: 'Controleer dit antwoord.',
    answered: 'Je hebt deze vraag beantwoord. Laat hem leeg om je antwoord te houden.',
    passOnNote: 'De nieuwe gast krijgt een ticket per e-mail. Dat van jou vervalt meteen. Dit is definitief.',
    passedOn: 'Het ticket is doorgegeven. Je QR-code en je links zijn niet meer geldig.',
    giveBackNote: 'Je ticket wordt geannuleerd en je plek komt vrij. Dit is definitief.',
    links: {
      answerOne: '1 vraag beantwoorden',
      answerSeveral: '{count} vragen beantwoorden',
      yourTicket: 'Je ticket {acts}',
      change: 'wijzigen',
      passOn: 'doorgeven',
      giveBack: 'teruggeven',
    },
  },

  page: {
    title: 'Ticket: {event}',
    valid: 'Laat deze code zien bij de ingang. Hij geldt voor één persoon, dus deel hem met niemand.',
    checkedIn: 'Ingecheckt: {time}',
    awaitingPayment: 'Nog niet betaald. De code verschijnt hier zodra de bestelling is betaald.',
    cancelled: 'Dit ticket is geannuleerd en niet meer geldig.',
    eventCancelled: 'Dit evenement is afgelast.',
    eventEnded: 'Dit evenement is voorbij.',
    map: 'Bekijken op de kaart',
    calendar: 'Toevoegen aan agenda',
    googleCalendar: 'Google Agenda',
    outdated: 'Geen verbinding. De informatie op deze pagina is mogelijk niet meer actueel.',
    fullScreen: 'Op volledig scherm tonen',
    closeFullScreen: 'Sluiten',
    unknownTitle: 'Geen ticket gevonden',
    unknown:
      'Bij deze link hoort geen ticket. Is je ticket opnieuw verstuurd, gebruik dan de link in de nieuwste e-mail; neem anders contact op met de organisator.',
    busyTitle: 'Een ogenblik geduld',
    busy: 'Het ticket kan nu niet worden getoond. Probeer het over een minuut opnieuw.',
  },

  offer: {
    held: '{name}, we houden deze plaats voor je vrij tot {date}.',
    free: 'Als je de plaats aanneemt, sturen we je meteen je ticket per e-mail.',
    invoice:
      'Als je de plaats aanneemt, plaats je een bestelling op factuur. Hoe en wanneer je betaalt, staat in de e-mail die je dan krijgt.',
    take: 'Plaats aannemen',
    order: 'Bestelling met betalingsverplichting',
    decline: 'Plaats afslaan',
    ask: 'De plaats gaat dan naar de volgende op de wachtlijst. Dit kan niet ongedaan worden gemaakt.',
    taken: 'De plaats is van jou. Je ticket is per e-mail onderweg.',
    reserved: 'De plaats is voor je gereserveerd. Hoe je betaalt, staat in de e-mail over je bestelling.',
    expired: 'Dit aanbod is verlopen. De plaats wordt niet meer voor je vrijgehouden.',
    declined: 'Deze plaats wordt niet meer voor je vrijgehouden.',
    refused: 'Deze plaats kan op dit moment niet worden aangenomen.',
    unknown: 'Deze link is niet of niet meer geldig. Gebruik de link uit de nieuwste e-mail.',
  },
}
