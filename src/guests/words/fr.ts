// French.

import type { Words } from './en.ts'

export const fr: Words = {
  locale: 'fr-FR',

  when: 'Quand',
  where: 'Où',
  online: 'En ligne',
  name: 'Nom',
  company: 'Société',
  ticket: 'Billet',
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

  toBeAnnounced: 'À préciser',
  by: 'par {organisation}',
  qrCode: 'Code QR {code}',
  line: '{quantity} × {name}',
  until: 'jusqu’au {moment}',
  offsets: '{start} au début, {end} à la fin',
  openTicket: 'Ouvrir votre billet dans le navigateur',

  showAtTheDoor:
    'Présentez le code QR à l’entrée, sur votre téléphone ou sur papier. Il laisse entrer une personne, une seule fois : ne le partagez pas.',
  keepAtHand: 'Gardez ce billet à portée de main : son code pourra vous être demandé.',
  attachedWithDate: 'Le code QR est joint en image, et la date en fichier de calendrier.',
  attached: 'Le code QR est joint en image.',
  calendarUpdates: 'Le fichier de calendrier joint met à jour l’entrée de votre calendrier.',
  calendarRemoves: 'Le fichier de calendrier joint retire l’entrée de votre calendrier.',
  reply: 'Des questions ? Répondez à cet e-mail pour joindre {organisation}.',
  ask: 'Des questions ? Adressez-vous à {organisation}.',

  calendarOrganiser: 'Par {organisation}',
  calendarOnline: 'En ligne : {url}',
  calendarTicket: 'Billet : {ticketType}',
  calendarOrder: 'Commande : {reference}',
  calendarCode: 'Votre code QR se trouve dans l’e-mail du billet.',

  kinds: {
    ticket: { subject: 'Votre billet : {event}', title: 'Votre billet pour' },
    order_confirmation: {
      subject: 'Votre commande {reference} : {event}',
      title: 'Votre commande pour',
      thanks: 'Merci pour votre commande, {name}.',
      pay: 'Veuillez payer {amount} en indiquant la référence {reference}.',
      payBy: 'Veuillez payer {amount} avant le {date} en indiquant la référence {reference}.',
      ticketsFollow: 'Les billets sont envoyés par e-mail dès que la commande est payée.',
      nothingDue: 'Il n’y a rien à payer. Chaque billet est envoyé par e-mail à la personne à qui il est destiné.',
    },
    payment_received: {
      subject: 'Paiement reçu : {event}',
      title: 'Paiement reçu pour',
      received: 'Nous avons reçu {amount} le {date}. Merci, {name}.',
      complete: 'La commande est payée. Chaque billet est envoyé par e-mail à la personne à qui il est destiné.',
      incomplete: 'Il reste {amount} à payer.',
    },
    payment_voided: {
      subject: 'Paiement non reçu : {event}',
      title: 'Paiement non reçu pour',
      voided:
        '{name}, nous vous avons écrit que nous avions reçu {amount} le {date}. C’était une erreur, qui est corrigée.',
      due: 'Il reste {amount} à payer.',
    },
    payment_reminder: {
      subject: 'À payer avant le {date} : {event}',
      title: 'Votre commande pour',
      reminder: 'Il reste {amount} à payer avant le {date}. Veuillez indiquer la référence {reference}.',
      consequence: 'Ensuite, la commande est annulée et ses places sont données à d’autres.',
    },
    order_expired: {
      subject: 'Votre commande a été annulée : {event}',
      title: 'Votre commande pour',
      expired: 'La commande n’a pas été payée à temps et a été annulée. Ses places ont été libérées.',
      doNotPay: 'Veuillez ne plus la payer. Si vous souhaitez toujours venir, demandez une nouvelle commande.',
      refund: 'Ce que vous avez payé, {amount}, vous sera remboursé.',
    },
    event_changed: {
      subject: 'Modifié : {event}',
      title: 'Quelque chose a changé :',
      note: 'Veuillez noter ce qui a changé.',
      valid: 'Votre billet reste valable.',
    },
    event_cancelled: {
      subject: 'Annulé : {event}',
      title: 'Cet événement a été annulé :',
      notice: 'L’événement n’a pas lieu. Votre billet n’est plus valable.',
    },
    ticket_cancelled: {
      subject: 'Votre billet a été annulé : {event}',
      title: 'Votre billet a été annulé :',
      notice: 'Votre billet n’est plus valable : il ne permet plus d’entrer.',
    },
    waiting_list_offer: {
      subject: 'Une place pour vous : {event}',
      title: 'Une place vous est réservée :',
      offer: 'Bonne nouvelle, {name} : une place s’est libérée et vous est réservée jusqu’au {date}.',
      reply: 'Pour la prendre, répondez à cet e-mail d’ici là.',
      ask: 'Pour la prendre, adressez-vous à {organisation} d’ici là.',
      after: 'Ensuite, elle est proposée à la personne suivante de la liste d’attente.',
    },
    waiting_list_cancelled: {
      subject: 'Annulé : {event}',
      title: 'Cet événement a été annulé :',
      notice: 'L’événement n’a pas lieu. Vous n’êtes plus sur la liste d’attente et aucune place ne vous est réservée.',
    },
  },

  page: {
    title: 'Billet : {event}',
    valid: 'Présentez ce code à l’entrée. Il fait entrer une seule personne : ne le partagez avec personne.',
    validOnline: 'Gardez ce billet à portée de main : son code peut vous être demandé.',
    checkedIn: 'Entrée enregistrée : {time}',
    awaitingPayment: 'En attente de paiement. Le code apparaît ici dès que la commande est payée.',
    cancelled: 'Ce billet a été annulé. Il ne permet pas d’entrer.',
    eventCancelled: 'Cet événement a été annulé.',
    eventEnded: 'Cet événement est terminé.',
    map: 'Voir sur une carte',
    calendar: 'Ajouter au calendrier',
    googleCalendar: 'Google Agenda',
    outdated: 'Il n’y a pas de connexion. Ce que dit cette page n’est peut-être plus à jour.',
    unknownTitle: 'Aucun billet ici',
    unknown:
      'Ce lien ne mène à aucun billet. Si votre billet a été renvoyé, utilisez le lien de l’e-mail le plus récent ; sinon, adressez-vous à l’organisateur.',
    busyTitle: 'Veuillez patienter un instant',
    busy: 'Le billet ne peut pas être affiché pour le moment. Réessayez dans une minute.',
  },
}
