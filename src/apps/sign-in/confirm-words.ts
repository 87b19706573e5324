// What the page of a confirmation says, in each language that it has.

type Counted = [one: string, many: string]

export type ConfirmWords = {
  locale: string
  signInFirst: string
  /** What somebody else named: {text} */
  quoted: string
  /** By operation: the title and the button; {event}, {person}, {order} */
  titles: Record<string, [title: string, act: string]>
  /** {operation} */
  anyTitle: string
  askedBy: string
  event: string
  order: string
  person: string
  effect: string
  /** Singular and plural; {count} */
  orders: Counted
  attendees: Counted
  waitingList: Counted
  told: Counted
  notTold: Counted
  refundDue: string
  refunded: string
  /** In place of an amount. */
  unseen: string
  changes: string
  news: string
  message: string
  nothingNew: string
  /** Who is erased; {name}, {tickets}, {orders}, {waiting_list} */
  people: string
  onePerson: string
  waitingPerson: string
  /** {person} */
  member: string
  steps: string
  /** {kind}, {name}, {action} */
  step: string
  kinds: Record<string, string>
  actions: Record<string, string>
  /** {count} */
  more: string
  /** {scope} */
  mayNot: string
  /** {minutes} */
  minute: string
  minutes: string
  final: string
  confirm: string
  confirmedTitle: string
  confirmed: string
  takeBack: string
  spentTitle: string
  spent: string
  unknownTitle: string
  unknown: string
}

const en: ConfirmWords = {
  locale: 'en-GB',
  signInFirst: 'An assistant asks for your confirmation. Sign in to see what it wants to do.',
  quoted: '“{text}”',
  titles: {
    cancel_event: ['Cancel {event}?', 'Cancel the event'],
    complete_event: ['Complete {event} before it has begun?', 'Close registrations'],
    update_event: ['Tell the guests of {event} what has changed?', 'E-mail the guests'],
    apply_event: ['Tell the guests of {event} what has changed?', 'E-mail the guests'],
    cancel_order: ['Cancel the order {order} and tell its guests?', 'Cancel the order'],
    cancel_attendee: ['Cancel the ticket of {person} and tell the guests?', 'Cancel the ticket'],
    erase_attendee: ['Erase {person} for good?', 'Erase {person}’s data'],
    erase_person: ['Erase {person} for good?', 'Erase {person}’s data'],
    import_attendees: ['E-mail new guests of {event} their tickets?', 'E-mail the tickets'],
    send_payment_reminders: ['Remind the buyers of {event} of what they have to pay?', 'Send the reminders'],
    record_refund: ['Record a refund for the order {order}?', 'Record the refund'],
  },
  anyTitle: 'Carry out {operation}?',
  askedBy: 'Asked by',
  event: 'Event',
  order: 'Order',
  person: 'Person',
  effect: 'What will happen',
  orders: ['{count} order will be affected', '{count} orders will be affected'],
  attendees: ['{count} ticket will be affected', '{count} tickets will be affected'],
  waitingList: [
    '{count} person on the waiting list will be affected',
    '{count} people on the waiting list will be affected',
  ],
  told: ['{count} person will be e-mailed', '{count} people will be e-mailed'],
  notTold: ['{count} person will not be e-mailed', '{count} people will not be e-mailed'],
  refundDue: 'To be refunded',
  refunded: 'Refund',
  changes: 'Changes',
  unseen: 'The key that you signed in with may not see it: it cannot be told here',
  news: 'What they read',
  message: 'Message to them',
  nothingNew: 'Nothing new',
  people: 'Erased',
  onePerson: '{name} (tickets: {tickets}, orders: {orders})',
  waitingPerson: '{name} (tickets: {tickets}, orders: {orders}, waiting list: {waiting_list})',
  member: '{person}, member of the organisation',
  steps: 'Steps',
  step: '{kind} {name}: {action}',
  kinds: {
    event: 'Event',
    ticket_type: 'Ticket type',
    promo_code: 'Promo code',
    check_in_point: 'Check-in point',
  },
  actions: { create: 'new', change: 'changed', archive: 'archived' },
  more: '… and {count} more',
  mayNot: 'The key that you signed in with may not do this. It would have to: {scope}.',
  minute: 'Good for one more minute, and once.',
  minutes: 'Good for {minutes} more minutes, and once.',
  final: 'This cannot be undone.',
  confirm: 'Confirm',
  confirmedTitle: 'Confirmed',
  confirmed: 'Go back to the assistant and tell it so. Nothing has happened yet: it asks Usher once more.',
  takeBack: 'Take it back',
  spentTitle: 'It is done',
  spent: 'What you confirmed was carried out. You can close this page.',
  unknownTitle: 'There is nothing to confirm here',
  unknown:
    'The request has expired, was refused, or is of another organisation. Ask the assistant for a new link, or use another key.',
}

const de: ConfirmWords = {
  locale: 'de-DE',
  signInFirst: 'Ein Assistent bittet um Ihre Bestätigung. Melden Sie sich an, um zu sehen, was er tun möchte.',
  quoted: '„{text}“',
  titles: {
    cancel_event: ['{event} absagen?', 'Veranstaltung absagen'],
    complete_event: ['{event} abschließen, noch vor dem Beginn?', 'Anmeldung schließen'],
    update_event: ['Den Gästen von {event} sagen, was sich geändert hat?', 'Gäste benachrichtigen'],
    apply_event: ['Den Gästen von {event} sagen, was sich geändert hat?', 'Gäste benachrichtigen'],
    cancel_order: ['Die Bestellung {order} stornieren und es den Gästen sagen?', 'Bestellung stornieren'],
    cancel_attendee: ['Das Ticket von {person} stornieren und es den Gästen sagen?', 'Ticket stornieren'],
    erase_attendee: ['{person} endgültig löschen?', 'Daten von {person} löschen'],
    erase_person: ['{person} endgültig löschen?', 'Daten von {person} löschen'],
    import_attendees: ['Neuen Gästen von {event} ihre Tickets schicken?', 'Tickets schicken'],
    send_payment_reminders: ['Die Käufer von {event} daran erinnern, was noch zu zahlen ist?', 'Erinnerungen schicken'],
    record_refund: ['Eine Erstattung für die Bestellung {order} erfassen?', 'Erstattung erfassen'],
  },
  anyTitle: '{operation} ausführen?',
  askedBy: 'Angefragt von',
  event: 'Veranstaltung',
  order: 'Bestellung',
  person: 'Person',
  effect: 'Was geschehen wird',
  orders: ['{count} Bestellung wird betroffen sein', '{count} Bestellungen werden betroffen sein'],
  attendees: ['{count} Ticket wird betroffen sein', '{count} Tickets werden betroffen sein'],
  waitingList: [
    '{count} Person auf der Warteliste wird betroffen sein',
    '{count} Personen auf der Warteliste werden betroffen sein',
  ],
  told: ['{count} Person wird eine E-Mail bekommen', '{count} Personen werden eine E-Mail bekommen'],
  notTold: ['{count} Person wird keine E-Mail bekommen', '{count} Personen werden keine E-Mail bekommen'],
  refundDue: 'Zu erstatten',
  refunded: 'Erstattung',
  changes: 'Änderungen',
  unseen: 'Der Schlüssel, mit dem Sie angemeldet sind, darf es nicht sehen: Es lässt sich hier nicht sagen',
  news: 'Was sie lesen',
  message: 'Nachricht an sie',
  nothingNew: 'Nichts Neues',
  people: 'Gelöscht werden',
  onePerson: '{name} (Tickets: {tickets}, Bestellungen: {orders})',
  waitingPerson: '{name} (Tickets: {tickets}, Bestellungen: {orders}, Warteliste: {waiting_list})',
  member: '{person}, Mitglied der Organisation',
  steps: 'Schritte',
  step: '{kind} {name}: {action}',
  kinds: {
    event: 'Veranstaltung',
    ticket_type: 'Ticketart',
    promo_code: 'Rabattcode',
    check_in_point: 'Einlass',
  },
  actions: { create: 'neu', change: 'geändert', archive: 'archiviert' },
  more: '… und {count} weitere',
  mayNot: 'Der Schlüssel, mit dem Sie angemeldet sind, darf das nicht. Er müsste dürfen: {scope}.',
  minute: 'Gilt noch eine Minute, und einmal.',
  minutes: 'Gilt noch {minutes} Minuten, und einmal.',
  final: 'Das lässt sich nicht rückgängig machen.',
  confirm: 'Bestätigen',
  confirmedTitle: 'Bestätigt',
  confirmed:
    'Gehen Sie zurück zum Assistenten und sagen Sie es ihm. Noch ist nichts geschehen: Er fragt Usher noch einmal.',
  takeBack: 'Zurücknehmen',
  spentTitle: 'Es ist geschehen',
  spent: 'Was Sie bestätigt haben, wurde ausgeführt. Sie können diese Seite schließen.',
  unknownTitle: 'Hier ist nichts zu bestätigen',
  unknown:
    'Die Anfrage ist abgelaufen, wurde abgelehnt oder gehört zu einer anderen Organisation. Bitten Sie den Assistenten um einen neuen Link, oder nehmen Sie einen anderen Schlüssel.',
}

const es: ConfirmWords = {
  locale: 'es-ES',
  signInFirst: 'Un asistente le pide su confirmación. Inicie sesión para ver qué quiere hacer.',
  quoted: '«{text}»',
  titles: {
    cancel_event: ['¿Cancelar {event}?', 'Cancelar el evento'],
    complete_event: ['¿Dar por terminado {event} antes de que empiece?', 'Cerrar las inscripciones'],
    update_event: ['¿Avisar a los asistentes de {event} de lo que ha cambiado?', 'Avisar a los asistentes'],
    apply_event: ['¿Avisar a los asistentes de {event} de lo que ha cambiado?', 'Avisar a los asistentes'],
    cancel_order: ['¿Cancelar el pedido {order} y avisar a sus asistentes?', 'Cancelar el pedido'],
    cancel_attendee: ['¿Cancelar la entrada de {person} y avisar a los asistentes?', 'Cancelar la entrada'],
    erase_attendee: ['¿Borrar a {person} para siempre?', 'Borrar los datos de {person}'],
    erase_person: ['¿Borrar a {person} para siempre?', 'Borrar los datos de {person}'],
    import_attendees: ['¿Enviar sus entradas a los nuevos asistentes de {event}?', 'Enviar las entradas'],
    send_payment_reminders: [
      '¿Recordar a los compradores de {event} lo que les queda por pagar?',
      'Enviar los recordatorios',
    ],
    record_refund: ['¿Anotar un reembolso del pedido {order}?', 'Anotar el reembolso'],
  },
  anyTitle: '¿Ejecutar {operation}?',
  askedBy: 'Pedido por',
  event: 'Evento',
  order: 'Pedido',
  person: 'Persona',
  effect: 'Lo que va a pasar',
  orders: ['{count} pedido se verá afectado', '{count} pedidos se verán afectados'],
  attendees: ['{count} entrada se verá afectada', '{count} entradas se verán afectadas'],
  waitingList: [
    '{count} persona de la lista de espera se verá afectada',
    '{count} personas de la lista de espera se verán afectadas',
  ],
  told: ['{count} persona recibirá un correo', '{count} personas recibirán un correo'],
  notTold: ['{count} persona no recibirá ningún correo', '{count} personas no recibirán ningún correo'],
  refundDue: 'Por reembolsar',
  refunded: 'Reembolso',
  changes: 'Cambios',
  unseen: 'La clave con la que inició sesión no puede verlo: aquí no se puede decir',
  news: 'Lo que leen',
  message: 'Mensaje para ellos',
  nothingNew: 'Nada nuevo',
  people: 'Se borra a',
  onePerson: '{name} (entradas: {tickets}, pedidos: {orders})',
  waitingPerson: '{name} (entradas: {tickets}, pedidos: {orders}, lista de espera: {waiting_list})',
  member: '{person}, miembro de la organización',
  steps: 'Pasos',
  step: '{kind} {name}: {action}',
  kinds: {
    event: 'Evento',
    ticket_type: 'Tipo de entrada',
    promo_code: 'Código promocional',
    check_in_point: 'Punto de acceso',
  },
  actions: { create: 'nuevo', change: 'modificado', archive: 'archivado' },
  more: '… y {count} más',
  mayNot: 'La clave con la que inició sesión no puede hacer esto. Tendría que poder: {scope}.',
  minute: 'Vale un minuto más, y una sola vez.',
  minutes: 'Vale {minutes} minutos más, y una sola vez.',
  final: 'Esto no se puede deshacer.',
  confirm: 'Confirmar',
  confirmedTitle: 'Confirmado',
  confirmed: 'Vuelva al asistente y dígaselo. Todavía no ha pasado nada: él se lo pide a Usher otra vez.',
  takeBack: 'Retirarlo',
  spentTitle: 'Está hecho',
  spent: 'Lo que confirmó se ha llevado a cabo. Puede cerrar esta página.',
  unknownTitle: 'Aquí no hay nada que confirmar',
  unknown:
    'La petición ha caducado, fue rechazada o es de otra organización. Pida al asistente un enlace nuevo o use otra clave.',
}

const fr: ConfirmWords = {
  locale: 'fr-FR',
  signInFirst: 'Un assistant demande votre confirmation. Connectez-vous pour voir ce qu’il veut faire.',
  quoted: '« {text} »',
  titles: {
    cancel_event: ['Annuler {event} ?', 'Annuler l’événement'],
    complete_event: ['Clore {event} avant son début ?', 'Fermer les inscriptions'],
    update_event: ['Dire aux invités de {event} ce qui a changé ?', 'Prévenir les invités'],
    apply_event: ['Dire aux invités de {event} ce qui a changé ?', 'Prévenir les invités'],
    cancel_order: ['Annuler la commande {order} et le dire à ses invités ?', 'Annuler la commande'],
    cancel_attendee: ['Annuler le billet de {person} et le dire aux invités ?', 'Annuler le billet'],
    erase_attendee: ['Effacer {person} pour toujours ?', 'Effacer les données de {person}'],
    erase_person: ['Effacer {person} pour toujours ?', 'Effacer les données de {person}'],
    import_attendees: ['Envoyer leurs billets aux nouveaux invités de {event} ?', 'Envoyer les billets'],
    send_payment_reminders: ['Rappeler aux acheteurs de {event} ce qu’il leur reste à payer ?', 'Envoyer les rappels'],
    record_refund: ['Enregistrer un remboursement pour la commande {order} ?', 'Enregistrer le remboursement'],
  },
  anyTitle: 'Exécuter {operation} ?',
  askedBy: 'Demandé par',
  event: 'Événement',
  order: 'Commande',
  person: 'Personne',
  effect: 'Ce qui va se passer',
  orders: ['{count} commande sera concernée', '{count} commandes seront concernées'],
  attendees: ['{count} billet sera concerné', '{count} billets seront concernés'],
  waitingList: [
    '{count} personne de la liste d’attente sera concernée',
    '{count} personnes de la liste d’attente seront concernées',
  ],
  told: ['{count} personne recevra un e-mail', '{count} personnes recevront un e-mail'],
  notTold: ['{count} personne ne recevra pas d’e-mail', '{count} personnes ne recevront pas d’e-mail'],
  refundDue: 'À rembourser',
  refunded: 'Remboursement',
  changes: 'Changements',
  unseen: 'La clé avec laquelle vous êtes connecté ne peut pas le voir : impossible de le dire ici',
  news: 'Ce qu’ils lisent',
  message: 'Message pour eux',
  nothingNew: 'Rien de nouveau',
  people: 'Sont effacés',
  onePerson: '{name} (billets : {tickets}, commandes : {orders})',
  waitingPerson: '{name} (billets : {tickets}, commandes : {orders}, liste d’attente : {waiting_list})',
  member: '{person}, membre de l’organisation',
  steps: 'Étapes',
  step: '{kind} {name} : {action}',
  kinds: {
    event: 'Événement',
    ticket_type: 'Type de billet',
    promo_code: 'Code promo',
    check_in_point: 'Point de contrôle',
  },
  actions: { create: 'nouveau', change: 'modifié', archive: 'archivé' },
  more: '… et {count} de plus',
  mayNot: 'La clé avec laquelle vous êtes connecté ne le permet pas. Elle devrait pouvoir : {scope}.',
  minute: 'Valable encore une minute, et une seule fois.',
  minutes: 'Valable encore {minutes} minutes, et une seule fois.',
  final: 'Cette action est irréversible.',
  confirm: 'Confirmer',
  confirmedTitle: 'Confirmé',
  confirmed:
    'Revenez à l’assistant et dites-le-lui. Rien ne s’est encore passé : il le demande encore une fois à Usher.',
  takeBack: 'Revenir là-dessus',
  spentTitle: 'C’est fait',
  spent: 'Ce que vous avez confirmé a été exécuté. Vous pouvez fermer cette page.',
  unknownTitle: 'Il n’y a rien à confirmer ici',
  unknown:
    'La demande a expiré, a été refusée ou vient d’une autre organisation. Demandez un nouveau lien à l’assistant, ou prenez une autre clé.',
}

const nl: ConfirmWords = {
  locale: 'nl-NL',
  signInFirst: 'Een assistent vraagt om uw bevestiging. Log in om te zien wat hij wil doen.',
  quoted: '‘{text}’',
  titles: {
    cancel_event: ['{event} annuleren?', 'Het evenement annuleren'],
    complete_event: ['{event} afsluiten voordat het begint?', 'De aanmelding sluiten'],
    update_event: ['De gasten van {event} vertellen wat er is veranderd?', 'De gasten mailen'],
    apply_event: ['De gasten van {event} vertellen wat er is veranderd?', 'De gasten mailen'],
    cancel_order: ['De bestelling {order} annuleren en het de gasten vertellen?', 'De bestelling annuleren'],
    cancel_attendee: ['Het ticket van {person} annuleren en het de gasten vertellen?', 'Het ticket annuleren'],
    erase_attendee: ['{person} voorgoed wissen?', 'Gegevens van {person} wissen'],
    erase_person: ['{person} voorgoed wissen?', 'Gegevens van {person} wissen'],
    import_attendees: ['Nieuwe gasten van {event} hun tickets mailen?', 'De tickets mailen'],
    send_payment_reminders: [
      'De kopers van {event} herinneren aan wat ze nog moeten betalen?',
      'De herinneringen sturen',
    ],
    record_refund: ['Een terugbetaling voor de bestelling {order} vastleggen?', 'De terugbetaling vastleggen'],
  },
  anyTitle: '{operation} uitvoeren?',
  askedBy: 'Gevraagd door',
  event: 'Evenement',
  order: 'Bestelling',
  person: 'Persoon',
  effect: 'Wat er gaat gebeuren',
  orders: ['Dit raakt {count} bestelling', 'Dit raakt {count} bestellingen'],
  attendees: ['Dit raakt {count} ticket', 'Dit raakt {count} tickets'],
  waitingList: ['Dit raakt {count} persoon op de wachtlijst', 'Dit raakt {count} personen op de wachtlijst'],
  told: ['{count} persoon krijgt een e-mail', '{count} personen krijgen een e-mail'],
  notTold: ['{count} persoon krijgt geen e-mail', '{count} personen krijgen geen e-mail'],
  refundDue: 'Terug te betalen',
  refunded: 'Terugbetaling',
  changes: 'Wijzigingen',
  unseen: 'De sleutel waarmee u bent ingelogd, mag het niet zien: het valt hier niet te zeggen',
  news: 'Wat ze lezen',
  message: 'Bericht aan hen',
  nothingNew: 'Niets nieuws',
  people: 'Gewist worden',
  onePerson: '{name} (tickets: {tickets}, bestellingen: {orders})',
  waitingPerson: '{name} (tickets: {tickets}, bestellingen: {orders}, wachtlijst: {waiting_list})',
  member: '{person}, lid van de organisatie',
  steps: 'Stappen',
  step: '{kind} {name}: {action}',
  kinds: {
    event: 'Evenement',
    ticket_type: 'Tickettype',
    promo_code: 'Kortingscode',
    check_in_point: 'Toegangspunt',
  },
  actions: { create: 'nieuw', change: 'gewijzigd', archive: 'gearchiveerd' },
  more: '… en nog {count}',
  mayNot: 'De sleutel waarmee u bent ingelogd, mag dit niet. Hij zou moeten mogen: {scope}.',
  minute: 'Nog één minuut geldig, en één keer.',
  minutes: 'Nog {minutes} minuten geldig, en één keer.',
  final: 'Dit kan niet ongedaan worden gemaakt.',
  confirm: 'Bevestigen',
  confirmedTitle: 'Bevestigd',
  confirmed: 'Ga terug naar de assistent en zeg het hem. Er is nog niets gebeurd: hij vraagt het Usher nog een keer.',
  takeBack: 'Terugnemen',
  spentTitle: 'Het is gedaan',
  spent: 'Wat u hebt bevestigd, is uitgevoerd. U kunt deze pagina sluiten.',
  unknownTitle: 'Hier valt niets te bevestigen',
  unknown:
    'Het verzoek is verlopen, geweigerd of van een andere organisatie. Vraag de assistent om een nieuwe link, of neem een andere sleutel.',
}

export const confirmLanguages: Record<string, ConfirmWords> = { en, de, es, fr, nl }

/** @param acceptable `req.acceptsLanguages`. */
export const confirmWords = (acceptable: (languages: string[]) => string | false): ConfirmWords =>
  confirmLanguages[acceptable(Object.keys(confirmLanguages)) || 'en'] ?? en
