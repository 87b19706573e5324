// French.

import type { Words } from './en.ts'

const written: Words = {
  locale: 'fr-FR',
  language: 'Français',

  when: 'Quand',
  where: 'Où',
  online: 'En ligne',
  name: 'Nom',
  company: 'Société',
  ticket: 'Billet',
  guests: 'Participants',
  order: 'Commande',
  code: 'Code',
  before: 'avant',
  now: 'désormais',
  event: 'Événement',
  test: 'Test',
  discount: 'Remise',
  total: 'Total',
  paid: 'Payé',
  due: 'Reste à payer',
  howToPay: 'Modalités de paiement',

  clock: '{h} h {minute}',
  time: '{time}',
  times: 'de {start} à {end}',
  moment: '{date} à\u00a0{time}',
  until: 'jusqu’au {moment}',
  offsets: '{start} au début, {end} à la fin',

  subject: '{headline} : {event}',
  toBeAnnounced: 'À préciser',
  by: 'Organisé par {organisation}',
  qrCode: 'QR code {code}',
  line: '{quantity} × {name}',
  message: 'Message de {organisation}',
  openTicket: 'Ouvrir votre billet dans le navigateur',

  showAtTheDoor:
    'Présentez le QR code à l’entrée, sur votre téléphone ou imprimé. Il n’est valable qu’une seule fois, pour une seule personne : merci de ne pas le partager.',
  keepAtHand: 'Gardez ce billet à portée de main : son code pourra vous être demandé.',
  attachedWithDate:
    'Vous trouverez en pièces jointes le QR code sous forme d’image et l’événement à ajouter à votre agenda.',
  attached: 'Vous trouverez en pièce jointe le QR code sous forme d’image.',
  calendarUpdates: 'Le fichier joint met à jour l’événement dans votre agenda.',
  calendarRemoves: 'Le fichier joint retire l’événement de votre agenda.',
  reply: 'Une question ? Répondez à cet e-mail ou écrivez à {organisation} :',
  write: 'Une question ? Écrivez à {organisation} :',
  ask: 'Une question ? Adressez-vous à {organisation}.',

  calendarOnline: 'En ligne : {url}',
  calendarTicket: 'Billet : {ticketType}',
  calendarOrder: 'Commande : {reference}',
  calendarCode: 'Votre QR code se trouve dans l’e-mail contenant votre billet.',

  kinds: {
    ticket: {
      headline: 'Votre billet',
      several: 'Vos {count} billets',
      oneEach:
        'Chaque QR code n’est valable qu’une seule fois, pour une seule personne. Présentez-le à l’entrée, sur un téléphone ou imprimé, et ne transmettez chaque billet qu’à la personne à qui il est destiné.',
    },
    order_confirmation: {
      headline: 'Votre commande {reference}',
      payHeadline: 'Votre commande {reference} – {amount} à régler',
      payByHeadline: 'Votre commande {reference} – {amount} à régler au plus tard le {date}',
      thanks: 'Merci pour votre commande, {name}.',
      pay: 'Merci de régler {amount} en indiquant la référence {reference}.',
      payBy: 'Merci de régler {amount} au plus tard le {date}, en indiquant la référence {reference}.',
      ticketsFollow: 'Les billets seront envoyés par e-mail dès le règlement de la commande.',
      nothingDue: 'Vous n’avez rien à régler. Chaque participant recevra son billet par e-mail.',
    },
    payment_received: {
      headline: 'Paiement de {amount} reçu',
      received: 'Merci, {name}. Nous avons bien reçu votre paiement de {amount} le {date}.',
      complete: 'Votre commande est désormais entièrement réglée. Chaque participant recevra son billet par e-mail.',
    },
    payment_voided: {
      headline: 'Paiement de {amount} non reçu',
      voided:
        'Bonjour {name}, nous vous avions confirmé la réception de {amount} le {date}. C’était une erreur, et nous vous prions de nous en excuser : nous n’avons pas reçu ce paiement.',
    },
    payment_reminder: {
      headline: '{amount} à régler au plus tard le {date}',
      undatedHeadline: 'Commande {reference} : {amount} à régler',
      reminder: 'Il reste {amount} à régler au plus tard le {date}. Merci d’indiquer la référence {reference}.',
      consequence:
        'Sans règlement d’ici là, la commande sera annulée et les places seront proposées à d’autres personnes.',
      undated: 'Il reste {amount} à régler. Merci d’indiquer la référence {reference}.',
      reserved: 'Merci pour ce que vous avez déjà réglé : vos billets vous restent réservés.',
    },
    order_expired: {
      headline: 'Votre commande a été annulée',
      expired: 'Votre commande n’a pas été réglée à temps et a donc été annulée. Les places ont été libérées.',
      doNotPay:
        'Merci de ne plus effectuer de paiement. Si vous souhaitez toujours venir, veuillez passer une nouvelle commande.',
    },
    order_cancelled: {
      headline: 'Commande {reference} annulée',
      refundHeadline: '{headline}, {amount} vous seront remboursés',
      requested: 'Votre commande {reference} pour {event} a été annulée, avec tous ses billets.',
      eventCancelled:
        'Nous sommes désolés : l’événement {event} a été annulé. Votre commande {reference} l’est donc aussi, avec tous ses billets.',
      doNotPay: 'Merci de ne plus effectuer de paiement.',
      refund: 'Les {amount} que vous avez déjà réglés vous seront remboursés.',
      retained: 'Sur la somme réglée, nous conservons {retained}.',
      rest: '{amount} vous seront remboursés.',
    },
    event_changed: {
      headline: 'Événement modifié',
      note: 'Voici ce qui a changé :',
      valid: 'Votre billet reste valable.',
      unpaid: 'Vous recevrez votre billet dès le règlement de la commande.',
    },
    event_cancelled: {
      headline: 'Événement annulé',
      notice: 'Nous sommes désolés : cet événement a été annulé. Les billets ne sont plus valables.',
    },
    ticket_cancelled: {
      headline: 'Billet annulé',
      one: 'Le billet destiné à {names} a été annulé et n’est plus valable.',
      several: 'Les billets destinés à {names} ont été annulés et ne sont plus valables.',
    },
    ticket_passed_on: {
      headline: 'Billet transmis',
      passedOn:
        'Votre billet pour {event} a été transmis à une autre personne, comme demandé sur la page du billet. Votre QR code n’est plus valable. S’il s’agit d’une erreur, veuillez contacter l’organisateur.',
    },
    waiting_list_offer: {
      headline: 'Une place pour vous',
      offer: 'Bonne nouvelle, {name} : une place s’est libérée et nous vous la réservons jusqu’au {date}.',
      again:
        '{name}, l’événement a changé depuis que nous vous avons proposé une place. Nous vous la réservons toujours jusqu’au {date}.',
      page: 'Accepter ou refuser',
      reply: 'Si elle vous intéresse, merci de répondre à cet e-mail d’ici là.',
      ask: 'Si elle vous intéresse, merci de contacter {organisation} d’ici là.',
      after: 'Passé ce délai, elle sera proposée à la personne suivante sur la liste d’attente.',
    },
    waiting_list_cancelled: {
      headline: 'Événement annulé',
      notice:
        'Nous sommes désolés : cet événement a été annulé. La liste d’attente est fermée et plus aucune place ne vous est réservée.',
    },
    answers_reminder: {
      headline: 'Informations manquantes',
      missing: 'Bonjour {name}, il nous manque encore quelques informations de votre part.',
      answer: 'Répondre maintenant',
      reply: 'Merci d’envoyer vos réponses à {organisation}.',
    },
    organiser_message: { headline: '{subject}' },
  },

  several: {
    valid: 'Vos billets restent valables.',
    unpaid: 'Vous recevrez vos billets dès qu’ils seront réglés.',
    othersUnpaid: 'Vous recevrez les billets qui restent à régler dès qu’ils le seront.',
  },

  optOut: {
    link: 'Ne plus recevoir les actualités de cet événement',
    title: 'Actualités de l’événement',
    ask: 'Souhaitez-vous ne plus recevoir les actualités de cet événement : changements et messages de l’organisateur ?',
    stays:
      'Vous continuerez à recevoir vos billets, vos reçus et les demandes de paiement, et nous vous préviendrons si l’événement ou votre billet est annulé.',
    button: 'Ne plus recevoir ces e-mails',
    done: 'Vous ne recevrez plus les actualités de cet événement.',
    again: 'Vous pouvez les réactiver sur la page de votre billet.',
    on: 'Actualités par e-mail : activées',
    off: 'Actualités par e-mail : désactivées',
    switchOff: 'Désactiver',
    switchOn: 'Activer',
  },

  link: {
    unknownTitle: 'Lien non valable',
    unknown:
      'Ce lien n’est pas valable ou ne l’est plus. Utilisez le lien de l’e-mail le plus récent ; sinon, adressez-vous à l’organisateur.',
    busyTitle: 'Un instant, s’il vous plaît',
    busy: 'Cette page ne peut pas être affichée pour le moment. Veuillez réessayer dans une minute.',
  },

  guest: {
    saved: 'Vos modifications ont été enregistrées.',
    closed: 'Cela n’est plus possible.',
    questions: 'Questions pour vous',
    optional: 'facultatif',
    yes: 'Oui',
    no: 'Non',
    choose: 'Veuillez choisir',
    save: 'Enregistrer',
    details: 'Vos coordonnées',
    email: 'Adresse e-mail',
    until: 'Possible jusqu’au {date}.',
    back: 'Retour',
    noRefund: 'Rien ne sera remboursé.',
    refundToBuyer: 'Un éventuel remboursement revient à la personne qui a passé la commande.',
    shorten: 'Veuillez raccourcir votre texte.',
    missing: 'Veuillez remplir ce champ.',
    phone: 'Veuillez saisir un numéro de téléphone, par exemple +33 1 23 45 67 89.',
    wrong: 'Veuillez vérifier ce champ.',
    answered: 'Vous avez répondu à cette question. Laissez le champ vide pour conserver votre réponse.',
    passOnNote:
      'Le nouveau participant reçoit un billet par e-mail. Le vôtre cesse aussitôt d’être valable. C’est irréversible.',
    giveBackNote: 'Votre billet sera annulé et votre place libérée. C’est irréversible.',
    answerOne: 'Répondre à 1 question',
    answerSeveral: 'Répondre à {count} questions',
    yourTicket: '{acts} votre billet',
    change: 'modifier',
    passOn: 'transmettre',
    giveBack: 'rendre',
  },

  page: {
    title: 'Billet : {event}',
    valid: 'Présentez ce code à l’entrée. Il est valable pour une seule personne : merci de ne pas le partager.',
    checkedIn: 'Entrée enregistrée : {time}',
    awaitingPayment: 'En attente de paiement. Le code apparaîtra ici dès le règlement de la commande.',
    cancelled: 'Ce billet a été annulé et n’est plus valable.',
    eventCancelled: 'Cet événement a été annulé.',
    eventEnded: 'Cet événement est terminé.',
    map: 'Voir sur la carte',
    calendar: 'Ajouter à l’agenda',
    googleCalendar: 'Google Agenda',
    outdated: 'Pas de connexion. Les informations de cette page ne sont peut-être plus à jour.',
    fullScreen: 'Afficher en plein écran',
    closeFullScreen: 'Fermer',
  },

  offer: {
    free: 'Si vous l’acceptez, votre billet vous est envoyé aussitôt par e-mail.',
    invoice:
      'Si vous l’acceptez, vous passez une commande payable sur facture. Un e-mail vous indiquera comment payer et avant quelle date.',
    take: 'Accepter la place',
    order: 'Commander avec obligation de paiement',
    decline: 'Refuser la place',
    ask: 'La place sera proposée à la personne suivante sur la liste d’attente. Ce choix est définitif.',
    taken: 'La place est à vous. Votre billet vous est envoyé par e-mail.',
    reserved: 'La place vous est réservée. L’e-mail concernant votre commande indique comment payer.',
    expired: 'Cette proposition a expiré. La place ne vous est plus réservée.',
    declined: 'Cette place ne vous est plus réservée.',
    refused: 'Cette place ne peut pas être acceptée pour le moment.',
  },

  eventPage: {
    left: 'encore {count}',
    soldOut: 'Complet',
    from: 'Disponible à partir du {date}',
    over: 'Plus disponible',
    free: 'Gratuit',
    atLeast: 'au moins {count}',
    code: 'Code promo',
    codeUsed: 'Code {code} appliqué',
    choose: 'Continuer',
    change: 'Actualiser',
    guest: 'Invité {number}',
    emailOptional: 'Sans adresse, le billet vous est envoyé.',
    byEmail: 'Les billets sont envoyés par e-mail.',
    invoice: 'Vous payez sur facture. Les instructions et l’échéance vous sont envoyées par e-mail.',
    register: 'S’inscrire',
    registered: 'Merci pour votre inscription. Les billets vous parviennent par e-mail.',
    ordered:
      'Merci pour votre commande. Les instructions de paiement vous parviennent par e-mail. Les billets suivront dès le paiement.',
    again: 'Inscrire d’autres invités',
    wait: 'S’inscrire sur la liste d’attente',
    waitNote: 'Si une place se libère, nous vous enverrons un e-mail.',
    waiting: 'Vous êtes sur la liste d’attente. Si une place se libère, nous vous enverrons un e-mail.',
    closed: 'Les inscriptions sont closes.',
    notOnSale: 'Aucun billet n’est disponible pour le moment.',
    taken: 'Certains de ces billets viennent d’être pris. Veuillez choisir à nouveau.',
    badCode: 'Ce code promo n’est pas valable, ou ne l’est plus.',
    badNumber: 'Veuillez choisir un autre nombre de billets.',
    tooMany: 'Trop d’inscriptions. Veuillez réessayer plus tard.',
    notPossible: 'Ce n’est pas possible pour le moment.',
    check: 'Veuillez vérifier les champs signalés.',
    changed: 'Le total a changé. Veuillez le vérifier, puis renvoyer le formulaire.',
    sentBefore: 'Ce formulaire a déjà été envoyé. Pour inscrire d’autres invités, envoyez-le à nouveau.',
  },

  orderPage: {
    open: 'Ouvrir votre commande',
    paid: 'Cette commande est entièrement réglée.',
    free: 'Vous n’avez rien à régler.',
    cancelled: 'Cette commande a été annulée.',
    reference: 'Référence du paiement',
    copy: 'Copier',
    copied: 'Copié : {text}',
    payments: 'Paiements',
    payment: 'Paiement reçu le {date}',
    refund: 'Remboursement effectué le {date}',
    tickets: 'Billets',
    valid: 'Valable',
    unpaid: 'En attente de paiement',
    ticketCancelled: 'Annulé',
    openTicket: 'Ouvrir le billet',
    change: 'Changer le nom ou transmettre',
    printTickets: 'Imprimer vos billets',
    receipt: 'Reçu',
    seller: 'Vendeur',
    buyer: 'Acheteur',
    print: 'Imprimer',
    page: 'Page {page} sur {pages}',
  },
}

/** With spaces that do not break before double punctuation and between hours and minutes: a narrow one, except before a colon. */
const typeset = <Value>(value: Value): Value =>
  (typeof value === 'string'
    ? value.replace(/ (?=[?!;])/g, '\u202f').replace(/ (?=:)|(?<=\{h\}) | (?=\{minute\})/g, '\u00a0')
    : Object.fromEntries(Object.entries(value as object).map(([key, each]) => [key, typeset(each)]))) as Value

export const fr = typeset(written)
