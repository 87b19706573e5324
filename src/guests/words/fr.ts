// French.

import type { Words } from './en.ts'

const written: Words = {
  locale: 'fr-FR',

  when: 'Quand',
  where: 'Où',
  online: 'En ligne',
  name: 'Nom',
  company: 'Société',
  ticket: 'Billet',
  guests: 'Participants',
  order: 'Commande',
  code: 'Code',
  before: 'Avant',
  now: 'Maintenant',
  event: 'Événement',
  discount: 'Remise',
  total: 'Total',
  paid: 'Payé',
  due: 'Reste à payer',
  howToPay: 'Comment payer',

  clock: '{h} h {minute}',
  time: '{time}',
  times: 'de {start} à {end}',
  moment: '{date} à {time}',
  until: 'jusqu’au {moment}',
  offsets: '{start} au début, {end} à la fin',

  subject: '{headline} : {event}',
  toBeAnnounced: 'Communiqué ultérieurement',
  by: 'par {organisation}',
  qrCode: 'Code QR {code}',
  line: '{quantity} × {name}',
  openTicket: 'Ouvrir votre billet dans le navigateur',

  showAtTheDoor:
    'Présentez le code QR à l’entrée, sur votre téléphone ou imprimé. Il est valable pour une personne et une seule fois : merci de ne pas le partager.',
  keepAtHand: 'Gardez ce billet à portée de main : son code pourra vous être demandé.',
  attachedWithDate:
    'Vous trouverez en pièce jointe le code QR sous forme d’image, ainsi que la date à ajouter à votre agenda.',
  attached: 'Vous trouverez en pièce jointe le code QR sous forme d’image.',
  calendarUpdates: 'Le fichier joint met à jour l’événement dans votre agenda.',
  calendarRemoves: 'Le fichier joint supprime l’événement de votre agenda.',
  reply: 'Une question ? Répondez à cet e-mail ou écrivez à {organisation} :',
  write: 'Une question ? Écrivez à {organisation} :',
  ask: 'Une question ? Adressez-vous à {organisation}.',

  calendarOrganiser: 'Par {organisation}',
  calendarOnline: 'En ligne : {url}',
  calendarTicket: 'Billet : {ticketType}',
  calendarOrder: 'Commande : {reference}',
  calendarCode: 'Votre code QR se trouve dans l’e-mail contenant votre billet.',

  kinds: {
    ticket: {
      headline: 'Votre billet',
      several: 'Vos {count} billets',
      oneEach:
        'Chaque code QR est valable pour une personne et une seule fois. Présentez-le à l’entrée, sur un téléphone ou imprimé, et ne transmettez chaque billet qu’à la personne concernée.',
    },
    order_confirmation: {
      headline: 'Votre commande {reference}',
      thanks: 'Merci pour votre commande, {name}.',
      pay: 'Merci de régler {amount} en indiquant la référence {reference}.',
      payBy: 'Merci de régler {amount} au plus tard le {date}, en indiquant la référence {reference}.',
      ticketsFollow: 'Les billets seront envoyés par e-mail dès le règlement de la commande.',
      nothingDue: 'Vous n’avez rien à régler. Chaque participant recevra son billet par e-mail.',
    },
    payment_received: {
      headline: 'Paiement reçu',
      received: 'Merci, {name}. Nous avons bien reçu votre paiement de {amount} le {date}.',
      complete: 'Votre commande est désormais entièrement réglée. Chaque participant recevra son billet par e-mail.',
      incomplete: 'Il reste {amount} à régler.',
    },
    payment_voided: {
      headline: 'Paiement non reçu',
      voided:
        'Bonjour {name}, nous vous avions annoncé avoir reçu {amount} le {date}. C’était une erreur : nous n’avons pas reçu ce paiement.',
      due: 'Il reste {amount} à régler.',
    },
    payment_reminder: {
      headline: 'À régler au plus tard le {date}',
      reminder: 'Il reste {amount} à régler au plus tard le {date}. Merci d’indiquer la référence {reference}.',
      consequence: 'Passé ce délai, la commande sera annulée et ses places seront remises à disposition.',
    },
    order_expired: {
      headline: 'Votre commande a été annulée',
      expired:
        'Votre commande n’a pas été réglée à temps et a donc été annulée. Les places ont été remises à disposition.',
      doNotPay: 'Merci de ne plus la régler. Si vous souhaitez toujours venir, veuillez passer une nouvelle commande.',
      refund: 'Les {amount} que vous avez déjà réglés vous seront remboursés.',
    },
    event_changed: {
      headline: 'Changement',
      note: 'Voici ce qui a changé :',
      valid: 'Votre billet reste valable.',
      unpaid: 'Vous recevrez votre billet dès le règlement de la commande.',
    },
    event_cancelled: {
      headline: 'Annulé',
      notice: 'Nous sommes désolés : cet événement a été annulé. Les billets ne sont plus valables.',
    },
    ticket_cancelled: {
      headline: 'Billet annulé',
      one: 'Le billet suivant a été annulé et n’est plus valable : {names}.',
      several: 'Les billets suivants ont été annulés et ne sont plus valables : {names}.',
    },
    waiting_list_offer: {
      headline: 'Une place pour vous',
      offer: 'Bonne nouvelle, {name} : une place s’est libérée et nous vous la réservons jusqu’au {date}.',
      reply: 'Si vous la souhaitez, merci de répondre à cet e-mail d’ici là.',
      ask: 'Si vous la souhaitez, merci de contacter {organisation} d’ici là.',
      after: 'Passé ce délai, elle sera proposée à la personne suivante sur la liste d’attente.',
    },
    waiting_list_cancelled: {
      headline: 'Annulé',
      notice:
        'Nous sommes désolés : cet événement a été annulé. La liste d’attente est close et aucune place ne vous est plus réservée.',
    },
  },

  page: {
    title: 'Billet : {event}',
    valid: 'Présentez ce code à l’entrée. Il est valable pour une seule personne : merci de ne pas le partager.',
    validOnline: 'Gardez ce billet à portée de main : son code pourra vous être demandé.',
    checkedIn: 'Entrée enregistrée : {time}',
    awaitingPayment: 'En attente de paiement. Le code apparaîtra ici dès le règlement de la commande.',
    cancelled: 'Ce billet a été annulé et n’est plus valable.',
    eventCancelled: 'Cet événement a été annulé.',
    eventEnded: 'Cet événement est terminé.',
    map: 'Voir sur la carte',
    calendar: 'Ajouter à l’agenda',
    googleCalendar: 'Google Agenda',
    outdated: 'Pas de connexion. Les informations de cette page ne sont peut-être plus à jour.',
    unknownTitle: 'Aucun billet trouvé',
    unknown:
      'Ce lien ne correspond à aucun billet. Si votre billet vous a été renvoyé, utilisez le lien de l’e-mail le plus récent ; sinon, adressez-vous à l’organisateur.',
    busyTitle: 'Un instant, s’il vous plaît',
    busy: 'Le billet ne peut pas être affiché pour le moment. Veuillez réessayer dans une minute.',
  },
}

/** With spaces that do not break before double punctuation and between hours and minutes: a narrow one, except before a colon. */
const typeset = <Value>(value: Value): Value =>
  (typeof value === 'string'
    ? value.replace(/ (?=[?!;])/g, '\u202f').replace(/ (?=:)|(?<=\{h\}) | (?=\{minute\})/g, '\u00a0')
    : Object.fromEntries(Object.entries(value as object).map(([key, each]) => [key, typeset(each)]))) as Value

export const fr = typeset(written)
