// What the pages of a sign-in say, in each language that they have.

import type { Scope } from '../../operations/operation.ts'

export type SignInWords = {
  locale: string
  signIn: string
  signInTo: string
  signInFor: string
  key: string
  keyHint: string
  keyRefused: string
  keyOfProgram: string
  keyTriedTooOften: string
  formOutdated: string
  /** {client} */
  allowTitle: string
  allowMoreTitle: string
  client: string
  unverified: string
  describedAt: string
  returnsTo: string
  /** {host} */
  onDevice: string
  organisation: string
  signedInWith: string
  scopes: string
  newScopes: string
  allowedBefore: string
  scopeSentences: Record<Scope, string>
  nothingToAllow: string
  nothingTicked: string
  end: string
  /** Singular and plural; {days} */
  day: string
  days: string
  /** {date} */
  keyEnds: string
  /** Of what was allowed before, too. */
  endOfAll: string
  tooManyGrants: string
  takeBack: string
  allow: string
  deny: string
  otherKey: string
  grantsTitle: string
  grantsLead: string
  noGrants: string
  allowedOn: string
  lastUsed: string
  never: string
  endsOn: string
  endGrant: string
  signOut: string
  failedTitle: string
  expired: string
  failed: string
}

const keyFor = (name: string) => `npx usher keys create --organisation SLUG --person "${name}" --scopes all`

const en: SignInWords = {
  locale: 'en-GB',
  signIn: 'Sign in',
  signInTo: 'Sign in to Usher',
  signInFor: '{client} wants to use Usher for you. Sign in first; you then decide what it may do.',
  key: 'API key',
  keyHint:
    'Your personal key for your organisation, which begins with usher_live_. It stays here: the client never gets it.',
  keyRefused: 'This key is not valid: it was mistyped, revoked, or has expired.',
  keyOfProgram: `This key is for a program. Make one for yourself: ${keyFor('Your name')}`,
  keyTriedTooOften: 'Too many keys were tried from your network. Wait a minute, and try again.',
  formOutdated: 'The page was too old. Please do it once more.',
  allowTitle: 'Allow {client} to use Usher?',
  allowMoreTitle: 'Allow {client} more?',
  client: 'Client',
  unverified: 'This name is what the client calls itself.',
  describedAt: 'Described at',
  returnsTo: 'You are returned to',
  onDevice: 'a program on this device ({host})',
  organisation: 'Organisation',
  signedInWith: 'Signed in with the key',
  scopes: 'It may',
  newScopes: 'It may also',
  allowedBefore: 'Allowed before',
  scopeSentences: {
    'events:read': 'see events, ticket types and promo codes',
    'orders:read': 'see orders, payments and who bought',
    'attendees:read': 'see attendees and their contact details',
    'events:write': 'create, change and cancel events',
    'attendees:write': 'register people, change, transfer and erase them',
    'checkin:write': 'check tickets in at the door',
    'orders:write': 'change and cancel orders, record payments and refunds',
  },
  nothingToAllow: 'Your key may do none of what the client asks for. Use another key, or refuse.',
  nothingTicked: 'Tick at least one box, or refuse.',
  end: 'For',
  day: '{days} day',
  days: '{days} days',
  keyEnds: 'It ends on {date} at the latest, with your key.',
  endOfAll: 'Everything that you allowed this client before then ends with it.',
  tooManyGrants: 'Too many clients use this key. End one of them first, at the link below, or use another key.',
  takeBack: 'You can take this back at any time.',
  allow: 'Allow',
  deny: 'Refuse',
  otherKey: 'Use another key',
  grantsTitle: 'What you have allowed',
  grantsLead: 'These clients use Usher with the key that you signed in with.',
  noGrants: 'No client may use Usher with this key.',
  allowedOn: 'Allowed on',
  lastUsed: 'Last used',
  never: 'never',
  endsOn: 'Ends on',
  endGrant: 'End it now',
  signOut: 'Sign out',
  failedTitle: 'The sign-in cannot go on',
  expired: 'This sign-in has expired or was begun in another browser. Go back to the client and start again.',
  failed: 'The client sent something that cannot be accepted. Go back to it and start again.',
}

const de: SignInWords = {
  locale: 'de-DE',
  signIn: 'Anmelden',
  signInTo: 'Bei Usher anmelden',
  signInFor:
    '{client} möchte Usher für Sie benutzen. Melden Sie sich zuerst an; danach entscheiden Sie, was erlaubt ist.',
  key: 'API-Schlüssel',
  keyHint:
    'Ihr persönlicher Schlüssel für Ihre Organisation, der mit usher_live_ beginnt. Er bleibt hier: Das Programm bekommt ihn nie.',
  keyRefused: 'Dieser Schlüssel gilt nicht: Er ist vertippt, widerrufen oder abgelaufen.',
  keyOfProgram: `Dieser Schlüssel ist für ein Programm. Legen Sie einen für sich an: ${keyFor('Ihr Name')}`,
  keyTriedTooOften:
    'Aus Ihrem Netz wurden zu viele Schlüssel probiert. Warten Sie eine Minute und versuchen Sie es noch einmal.',
  formOutdated: 'Die Seite war zu alt. Bitte noch einmal.',
  allowTitle: 'Darf {client} Usher benutzen?',
  allowMoreTitle: 'Darf {client} mehr?',
  client: 'Programm',
  unverified: 'So nennt sich das Programm selbst.',
  describedAt: 'Beschrieben unter',
  returnsTo: 'Sie kommen zurück zu',
  onDevice: 'einem Programm auf diesem Gerät ({host})',
  organisation: 'Organisation',
  signedInWith: 'Angemeldet mit dem Schlüssel',
  scopes: 'Es darf',
  newScopes: 'Es darf außerdem',
  allowedBefore: 'Bereits erlaubt',
  scopeSentences: {
    'events:read': 'Veranstaltungen, Ticketarten und Rabattcodes sehen',
    'orders:read': 'Bestellungen, Zahlungen und Käufer sehen',
    'attendees:read': 'Gäste und ihre Kontaktdaten sehen',
    'events:write': 'Veranstaltungen anlegen, ändern und absagen',
    'attendees:write': 'Gäste anmelden, ändern, umschreiben und löschen',
    'checkin:write': 'Tickets am Einlass prüfen',
    'orders:write': 'Bestellungen ändern und stornieren, Zahlungen und Erstattungen erfassen',
  },
  nothingToAllow:
    'Ihr Schlüssel darf nichts von dem, was das Programm möchte. Nehmen Sie einen anderen, oder lehnen Sie ab.',
  nothingTicked: 'Kreuzen Sie wenigstens eines an, oder lehnen Sie ab.',
  end: 'Für',
  day: '{days} Tag',
  days: '{days} Tage',
  keyEnds: 'Es endet spätestens am {date}, mit Ihrem Schlüssel.',
  endOfAll: 'Was Sie diesem Programm vorher erlaubt haben, endet dann ebenfalls.',
  tooManyGrants:
    'Zu viele Programme benutzen diesen Schlüssel. Beenden Sie zuerst eines davon, über den Link unten, oder nehmen Sie einen anderen Schlüssel.',
  takeBack: 'Sie können das jederzeit zurücknehmen.',
  allow: 'Erlauben',
  deny: 'Ablehnen',
  otherKey: 'Anderen Schlüssel nehmen',
  grantsTitle: 'Was Sie erlaubt haben',
  grantsLead: 'Diese Programme benutzen Usher mit dem Schlüssel, mit dem Sie angemeldet sind.',
  noGrants: 'Mit diesem Schlüssel darf kein Programm Usher benutzen.',
  allowedOn: 'Erlaubt am',
  lastUsed: 'Zuletzt benutzt',
  never: 'nie',
  endsOn: 'Endet am',
  endGrant: 'Jetzt beenden',
  signOut: 'Abmelden',
  failedTitle: 'Die Anmeldung kann nicht weitergehen',
  expired:
    'Diese Anmeldung ist abgelaufen oder wurde in einem anderen Browser begonnen. Gehen Sie zurück zum Programm und beginnen Sie neu.',
  failed:
    'Das Programm hat etwas geschickt, das nicht angenommen werden kann. Gehen Sie dorthin zurück und beginnen Sie neu.',
}

const es: SignInWords = {
  locale: 'es-ES',
  signIn: 'Iniciar sesión',
  signInTo: 'Iniciar sesión en Usher',
  signInFor: '{client} quiere usar Usher en su nombre. Inicie sesión primero; después usted decide qué puede hacer.',
  key: 'Clave de API',
  keyHint:
    'Su clave personal para su organización, que empieza por usher_live_. Se queda aquí: el programa nunca la recibe.',
  keyRefused: 'Esta clave no es válida: está mal escrita, revocada o caducada.',
  keyOfProgram: `Esta clave es para un programa. Cree una para usted: ${keyFor('Su nombre')}`,
  keyTriedTooOften: 'Se han probado demasiadas claves desde su red. Espere un minuto e inténtelo de nuevo.',
  formOutdated: 'La página era demasiado antigua. Hágalo otra vez, por favor.',
  allowTitle: '¿Permitir que {client} use Usher?',
  allowMoreTitle: '¿Permitir más a {client}?',
  client: 'Programa',
  unverified: 'Así se llama el programa a sí mismo.',
  describedAt: 'Descrito en',
  returnsTo: 'Usted vuelve a',
  onDevice: 'un programa de este dispositivo ({host})',
  organisation: 'Organización',
  signedInWith: 'Sesión iniciada con la clave',
  scopes: 'Puede',
  newScopes: 'Además puede',
  allowedBefore: 'Ya permitido',
  scopeSentences: {
    'events:read': 'ver eventos, tipos de entrada y códigos promocionales',
    'orders:read': 'ver pedidos, pagos y quién compró',
    'attendees:read': 'ver a los asistentes y sus datos de contacto',
    'events:write': 'crear, cambiar y cancelar eventos',
    'attendees:write': 'inscribir, cambiar, transferir y borrar a personas',
    'checkin:write': 'registrar entradas en la puerta',
    'orders:write': 'cambiar y cancelar pedidos, anotar pagos y reembolsos',
  },
  nothingToAllow: 'Su clave no puede nada de lo que pide el programa. Use otra clave o rechace.',
  nothingTicked: 'Marque al menos una casilla o rechace.',
  end: 'Durante',
  day: '{days} día',
  days: '{days} días',
  keyEnds: 'Termina a más tardar el {date}, con su clave.',
  endOfAll: 'Lo que permitió antes a este programa termina entonces también.',
  tooManyGrants:
    'Demasiados programas usan esta clave. Termine antes uno de ellos, en el enlace de abajo, o use otra clave.',
  takeBack: 'Puede retirarlo en cualquier momento.',
  allow: 'Permitir',
  deny: 'Rechazar',
  otherKey: 'Usar otra clave',
  grantsTitle: 'Lo que ha permitido',
  grantsLead: 'Estos programas usan Usher con la clave con la que inició sesión.',
  noGrants: 'Ningún programa puede usar Usher con esta clave.',
  allowedOn: 'Permitido el',
  lastUsed: 'Último uso',
  never: 'nunca',
  endsOn: 'Termina el',
  endGrant: 'Terminar ahora',
  signOut: 'Cerrar sesión',
  failedTitle: 'No se puede continuar',
  expired: 'Este inicio de sesión ha caducado o empezó en otro navegador. Vuelva al programa y empiece de nuevo.',
  failed: 'El programa envió algo que no se puede aceptar. Vuelva a él y empiece de nuevo.',
}

const fr: SignInWords = {
  locale: 'fr-FR',
  signIn: 'Se connecter',
  signInTo: 'Se connecter à Usher',
  signInFor:
    '{client} veut utiliser Usher pour vous. Connectez-vous d’abord ; vous décidez ensuite de ce qui est permis.',
  key: 'Clé d’API',
  keyHint:
    'Votre clé personnelle pour votre organisation, qui commence par usher_live_. Elle reste ici : le programme ne la reçoit jamais.',
  keyRefused: 'Cette clé n’est pas valable : elle est mal saisie, révoquée ou expirée.',
  keyOfProgram: `Cette clé est destinée à un programme. Créez-en une pour vous : ${keyFor('Votre nom')}`,
  keyTriedTooOften: 'Trop de clés ont été essayées depuis votre réseau. Attendez une minute et réessayez.',
  formOutdated: 'La page était trop ancienne. Recommencez, s’il vous plaît.',
  allowTitle: 'Permettre à {client} d’utiliser Usher ?',
  allowMoreTitle: 'Permettre davantage à {client} ?',
  client: 'Programme',
  unverified: 'C’est ainsi que le programme se nomme lui-même.',
  describedAt: 'Décrit à',
  returnsTo: 'Vous revenez à',
  onDevice: 'un programme sur cet appareil ({host})',
  organisation: 'Organisation',
  signedInWith: 'Connecté avec la clé',
  scopes: 'Il peut',
  newScopes: 'Il peut aussi',
  allowedBefore: 'Déjà permis',
  scopeSentences: {
    'events:read': 'voir les événements, les types de billets et les codes promo',
    'orders:read': 'voir les commandes, les paiements et les acheteurs',
    'attendees:read': 'voir les participants et leurs coordonnées',
    'events:write': 'créer, modifier et annuler des événements',
    'attendees:write': 'inscrire, modifier, transférer et effacer des personnes',
    'checkin:write': 'contrôler les billets à l’entrée',
    'orders:write': 'modifier et annuler des commandes, noter paiements et remboursements',
  },
  nothingToAllow: 'Votre clé ne peut rien de ce que demande le programme. Prenez une autre clé, ou refusez.',
  nothingTicked: 'Cochez au moins une case, ou refusez.',
  end: 'Pour',
  day: '{days} jour',
  days: '{days} jours',
  keyEnds: 'Cela prend fin au plus tard le {date}, avec votre clé.',
  endOfAll: 'Ce que vous avez permis auparavant à ce programme prend alors fin aussi.',
  tooManyGrants:
    'Trop de programmes utilisent cette clé. Mettez d’abord fin à l’un d’eux, par le lien ci-dessous, ou prenez une autre clé.',
  takeBack: 'Vous pouvez revenir là-dessus à tout moment.',
  allow: 'Permettre',
  deny: 'Refuser',
  otherKey: 'Prendre une autre clé',
  grantsTitle: 'Ce que vous avez permis',
  grantsLead: 'Ces programmes utilisent Usher avec la clé avec laquelle vous êtes connecté.',
  noGrants: 'Aucun programme ne peut utiliser Usher avec cette clé.',
  allowedOn: 'Permis le',
  lastUsed: 'Dernière utilisation',
  never: 'jamais',
  endsOn: 'Prend fin le',
  endGrant: 'Y mettre fin',
  signOut: 'Se déconnecter',
  failedTitle: 'La connexion ne peut pas continuer',
  expired: 'Cette connexion a expiré ou a commencé dans un autre navigateur. Revenez au programme et recommencez.',
  failed: 'Le programme a envoyé quelque chose qui ne peut pas être accepté. Revenez-y et recommencez.',
}

const nl: SignInWords = {
  locale: 'nl-NL',
  signIn: 'Inloggen',
  signInTo: 'Inloggen bij Usher',
  signInFor: '{client} wil Usher voor u gebruiken. Log eerst in; daarna bepaalt u wat het mag.',
  key: 'API-sleutel',
  keyHint:
    'Uw persoonlijke sleutel voor uw organisatie, die met usher_live_ begint. Hij blijft hier: het programma krijgt hem nooit.',
  keyRefused: 'Deze sleutel is niet geldig: verkeerd getypt, ingetrokken of verlopen.',
  keyOfProgram: `Deze sleutel is voor een programma. Maak er een voor uzelf: ${keyFor('Uw naam')}`,
  keyTriedTooOften: 'Vanaf uw netwerk zijn te veel sleutels geprobeerd. Wacht een minuut en probeer het opnieuw.',
  formOutdated: 'De pagina was te oud. Doe het alstublieft nog een keer.',
  allowTitle: 'Mag {client} Usher gebruiken?',
  allowMoreTitle: 'Mag {client} meer?',
  client: 'Programma',
  unverified: 'Zo noemt het programma zichzelf.',
  describedAt: 'Beschreven op',
  returnsTo: 'U gaat terug naar',
  onDevice: 'een programma op dit apparaat ({host})',
  organisation: 'Organisatie',
  signedInWith: 'Ingelogd met de sleutel',
  scopes: 'Het mag',
  newScopes: 'Het mag ook',
  allowedBefore: 'Al toegestaan',
  scopeSentences: {
    'events:read': 'evenementen, tickettypen en kortingscodes zien',
    'orders:read': 'bestellingen, betalingen en kopers zien',
    'attendees:read': 'deelnemers en hun contactgegevens zien',
    'events:write': 'evenementen maken, wijzigen en annuleren',
    'attendees:write': 'mensen inschrijven, wijzigen, overzetten en wissen',
    'checkin:write': 'tickets inchecken aan de deur',
    'orders:write': 'bestellingen wijzigen en annuleren, betalingen en terugbetalingen vastleggen',
  },
  nothingToAllow: 'Uw sleutel mag niets van wat het programma vraagt. Neem een andere sleutel, of weiger.',
  nothingTicked: 'Vink er minstens één aan, of weiger.',
  end: 'Voor',
  day: '{days} dag',
  days: '{days} dagen',
  keyEnds: 'Het eindigt uiterlijk op {date}, met uw sleutel.',
  endOfAll: 'Wat u dit programma eerder hebt toegestaan, eindigt dan ook.',
  tooManyGrants:
    'Te veel programma’s gebruiken deze sleutel. Beëindig er eerst een, via de link hieronder, of neem een andere sleutel.',
  takeBack: 'U kunt dit op elk moment terugnemen.',
  allow: 'Toestaan',
  deny: 'Weigeren',
  otherKey: 'Een andere sleutel nemen',
  grantsTitle: 'Wat u hebt toegestaan',
  grantsLead: 'Deze programma’s gebruiken Usher met de sleutel waarmee u bent ingelogd.',
  noGrants: 'Geen programma mag Usher met deze sleutel gebruiken.',
  allowedOn: 'Toegestaan op',
  lastUsed: 'Laatst gebruikt',
  never: 'nooit',
  endsOn: 'Eindigt op',
  endGrant: 'Nu beëindigen',
  signOut: 'Uitloggen',
  failedTitle: 'Het inloggen kan niet doorgaan',
  expired: 'Deze aanmelding is verlopen of begon in een andere browser. Ga terug naar het programma en begin opnieuw.',
  failed: 'Het programma stuurde iets dat niet kan worden aanvaard. Ga ernaar terug en begin opnieuw.',
}

export const signInLanguages: Record<string, SignInWords> = { en, de, es, fr, nl }

/** @param acceptable `req.acceptsLanguages`. */
export const signInWords = (acceptable: (languages: string[]) => string | false): SignInWords =>
  signInLanguages[acceptable(Object.keys(signInLanguages)) || 'en'] ?? en
