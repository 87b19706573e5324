// Spanish.

import type { Words } from './en.ts'

export const es: Words = {
  locale: 'es-ES',

  when: 'Cuándo',
  where: 'Dónde',
  online: 'En línea',
  name: 'Nombre',
  company: 'Empresa',
  ticket: 'Entrada',
  guests: 'Asistentes',
  order: 'Pedido',
  code: 'Código',
  before: 'antes',
  now: 'ahora',
  event: 'Evento',
  discount: 'Descuento',
  total: 'Total',
  paid: 'Pagado',
  due: 'Pendiente de pago',
  howToPay: 'Cómo pagar',

  clock: '{h}:{minute}',
  time: '{time}\u00a0h',
  times: 'de {start} a {end}\u00a0h',
  moment: '{date} a\u00a0las\u00a0{time}',
  until: 'hasta el {moment}',
  offsets: '{start} al principio, {end} al final',

  subject: '{headline}: {event}',
  toBeAnnounced: 'Por confirmar',
  by: 'Organiza: {organisation}',
  qrCode: 'Código QR {code}',
  line: '{quantity} × {name}',
  message: 'Mensaje de {organisation}',
  openTicket: 'Ver la entrada en el navegador',

  showAtTheDoor:
    'Muestra el código QR al entrar, en el móvil o impreso. Es válido una sola vez y para una sola persona: no lo compartas con nadie.',
  keepAtHand: 'Ten esta entrada a mano: puede que te pidan el código.',
  attachedWithDate: 'Adjuntamos el código QR como imagen y el evento para tu calendario.',
  attached: 'Adjuntamos el código QR como imagen.',
  calendarUpdates: 'El archivo adjunto actualiza el evento en tu calendario.',
  calendarRemoves: 'El archivo adjunto elimina el evento de tu calendario.',
  reply: '¿Tienes alguna duda? Responde a este correo o escribe a {organisation}:',
  write: '¿Tienes alguna duda? Escribe a {organisation}:',
  ask: '¿Tienes alguna duda? Ponte en contacto con {organisation}.',

  calendarOnline: 'En línea: {url}',
  calendarTicket: 'Entrada: {ticketType}',
  calendarOrder: 'Pedido: {reference}',
  calendarCode: 'Encontrarás el código QR en el correo con tu entrada.',

  kinds: {
    ticket: {
      headline: 'Tu entrada',
      several: 'Tus {count} entradas',
      oneEach:
        'Cada código QR es válido una sola vez y para una sola persona. Muéstralo al entrar, en el móvil o impreso, y envía cada entrada solo a la persona a la que corresponde.',
    },
    order_confirmation: {
      headline: 'Tu pedido {reference}',
      payHeadline: 'Tu pedido {reference} – {amount} por pagar',
      payByHeadline: 'Tu pedido {reference} – tienes hasta el {date} para pagar {amount}',
      thanks: 'Gracias por tu pedido, {name}.',
      pay: 'Quedan {amount} por pagar. Indica la referencia {reference} al hacer el pago.',
      payBy: 'Tienes hasta el {date} para pagar {amount}. Indica la referencia {reference} al hacer el pago.',
      ticketsFollow: 'Enviaremos las entradas por correo electrónico en cuanto se pague el pedido.',
      nothingDue: 'No tienes que pagar nada. Cada asistente recibirá su entrada por correo electrónico.',
    },
    payment_received: {
      headline: 'Pago de {amount} recibido',
      received: 'Gracias, {name}. Recibimos tu pago de {amount} el {date}.',
      complete: 'Tu pedido ya está pagado por completo. Cada asistente recibirá su entrada por correo electrónico.',
    },
    payment_voided: {
      headline: 'Pago de {amount} no recibido',
      voided:
        'Hola, {name}: te dijimos que habíamos recibido {amount} el {date}. Lo sentimos, ha sido un error: no hemos recibido ese pago.',
    },
    payment_reminder: {
      headline: 'Tienes hasta el {date} para pagar {amount}',
      reminder:
        'Quedan {amount} por pagar. El plazo termina el {date}. Indica la referencia {reference} al hacer el pago.',
      consequence:
        'Si no se paga dentro de ese plazo, el pedido se cancelará y sus plazas se ofrecerán a otras personas.',
      undatedHeadline: 'Pedido {reference}: {amount} por pagar',
      undated: 'Quedan {amount} por pagar. Indica la referencia {reference}.',
      reserved: 'Gracias por lo que ya has pagado: tus entradas siguen reservadas.',
    },
    order_expired: {
      headline: 'Tu pedido se ha cancelado',
      expired: 'Tu pedido no se pagó a tiempo y se ha cancelado. Las plazas han quedado libres.',
      doNotPay: 'Por favor, no hagas ya ningún pago. Si todavía quieres venir, haz un pedido nuevo.',
    },
    order_cancelled: {
      headline: 'Pedido {reference} cancelado',
      refundHeadline: '{headline}, te devolveremos {amount}',
      requested: 'Tu pedido {reference} para {event} se ha cancelado, con todas sus entradas.',
      eventCancelled:
        'Lamentablemente, el evento {event} se ha cancelado y, con él, tu pedido {reference} y todas sus entradas.',
      doNotPay: 'Por favor, no hagas ya ningún pago.',
      refund: 'Te devolveremos los {amount} que ya habías pagado.',
      retained: 'De lo que has pagado retenemos {retained}.',
      rest: 'Te devolveremos {amount}.',
    },
    event_changed: {
      headline: 'Cambios en el evento',
      note: 'Esto es lo que ha cambiado:',
      valid: 'Tu entrada sigue siendo válida.',
      unpaid: 'Recibirás tu entrada en cuanto se pague el pedido.',
    },
    event_cancelled: {
      headline: 'Evento cancelado',
      notice: 'Lamentablemente, este evento se ha cancelado. Las entradas ya no son válidas.',
    },
    ticket_cancelled: {
      headline: 'Entrada anulada',
      one: 'La entrada a nombre de {names} se ha anulado y ya no es válida.',
      several: 'Las entradas a nombre de {names} se han anulado y ya no son válidas.',
    },
    ticket_passed_on: {
      headline: 'Entrada cedida',
      passedOn:
        'Tu entrada para {event} se ha cedido a otra persona, tal como se pidió en la página de la entrada. Tu código QR ya no es válido. Si ha sido un error, ponte en contacto con la organización.',
    },
    waiting_list_offer: {
      headline: 'Una plaza para ti',
      offer: 'Buenas noticias, {name}: ha quedado libre una plaza y te la guardamos hasta el {date}.',
      again:
        '{name}, el evento ha cambiado desde que te ofrecimos una plaza. Te la seguimos guardando hasta el {date}.',
      page: 'Aceptarla o rechazarla',
      reply: 'Si la quieres, responde a este correo dentro de ese plazo.',
      ask: 'Si la quieres, ponte en contacto con {organisation} dentro de ese plazo.',
      after: 'Después se la ofreceremos a la siguiente persona de la lista de espera.',
    },
    waiting_list_cancelled: {
      headline: 'Evento cancelado',
      notice:
        'Lamentablemente, este evento se ha cancelado. La lista de espera queda cerrada y ya no te guardamos ninguna plaza.',
    },
    answers_reminder: {
      headline: 'Faltan datos',
      missing: 'Hola, {name}: todavía nos faltan algunos datos tuyos.',
      answer: 'Responder ahora',
      reply: 'Envía tus respuestas a {organisation}.',
    },
    organiser_message: { headline: '{subject}' },
  },

  several: {
    valid: 'Tus entradas siguen siendo válidas.',
    unpaid: 'Recibirás tus entradas en cuanto estén pagadas.',
    othersUnpaid: 'Las entradas pendientes de pago te llegarán en cuanto estén pagadas.',
  },

  optOut: {
    link: 'Dejar de recibir novedades de este evento',
    title: 'Novedades del evento',
    ask: '¿Quieres dejar de recibir novedades de este evento: cambios y mensajes de la organización?',
    stays:
      'Seguirás recibiendo tus entradas, los recibos y las solicitudes de pago, y te avisaremos si se cancela el evento o se anula tu entrada.',
    button: 'No quiero recibir más correos',
    done: 'Ya no recibirás novedades de este evento.',
    again: 'Puedes volver a activarlas en la página de tu entrada.',
    on: 'Novedades por correo: activadas',
    off: 'Novedades por correo: desactivadas',
    switchOff: 'Desactivar',
    switchOn: 'Activar',
  },

  link: {
    unknownTitle: 'Enlace no válido',
    unknown:
      'Este enlace no es válido o ha dejado de serlo. Usa el enlace del correo más reciente o ponte en contacto con la organización del evento.',
    busyTitle: 'Un momento, por favor',
    busy: 'Esta página no se puede mostrar en este momento. Vuelve a intentarlo dentro de un minuto.',
  },

  guest: {
    saved: 'Tus cambios se han guardado.',
    closed: 'Esto ya no es posible.',
    questions: 'Preguntas para ti',
    optional: 'opcional',
    yes: 'Sí',
    no: 'No',
    choose: 'Elige una opción',
    save: 'Guardar',
    details: 'Tus datos',
    email: 'Dirección de correo',
    until: 'Posible hasta el {date}.',
    back: 'Volver',
    noRefund: 'No se reembolsará nada.',
    refundToBuyer: 'Si hay reembolso, lo recibe quien hizo el pedido.',
    shorten: 'Acorta tu texto.',
    missing: 'Rellena este campo.',
    phone: 'Escribe un número de teléfono, por ejemplo +34 912 34 56 78.',
    wrong: 'Revisa este dato.',
    answered: 'Has respondido a esta pregunta. Deja el campo vacío para conservar tu respuesta.',
    passOnNote:
      'La otra persona recibe una entrada por correo. La tuya deja de valer al momento. No se puede deshacer.',
    giveBackNote: 'Tu entrada se anulará y tu plaza quedará libre. No se puede deshacer.',
    answerOne: 'Responder a 1 pregunta',
    answerSeveral: 'Responder a {count} preguntas',
    yourTicket: '{acts} tu entrada',
    change: 'cambiar',
    passOn: 'ceder',
    giveBack: 'devolver',
  },

  page: {
    title: 'Entrada: {event}',
    valid: 'Muestra este código al entrar. Es válido para una sola persona: no lo compartas con nadie.',
    checkedIn: 'Acceso registrado: {time}',
    awaitingPayment: 'Pendiente de pago. El código aparecerá aquí en cuanto se pague el pedido.',
    cancelled: 'Esta entrada se ha anulado y ya no es válida.',
    eventCancelled: 'Este evento se ha cancelado.',
    eventEnded: 'Este evento ha terminado.',
    map: 'Ver en el mapa',
    calendar: 'Añadir al calendario',
    googleCalendar: 'Google Calendar',
    outdated: 'Sin conexión. Es posible que la información de esta página no esté actualizada.',
    fullScreen: 'Ver en pantalla completa',
    closeFullScreen: 'Cerrar',
  },

  offer: {
    free: 'Si la aceptas, te enviamos la entrada por correo electrónico al momento.',
    invoice:
      'Si la aceptas, haces un pedido que se paga con factura. Te enviaremos por correo electrónico cómo pagar y hasta cuándo.',
    take: 'Aceptar la plaza',
    order: 'Pedido con obligación de pago',
    decline: 'Rechazar la plaza',
    ask: 'La plaza pasará a la siguiente persona de la lista de espera. Esto no se puede deshacer.',
    taken: 'La plaza es tuya. Te enviamos la entrada por correo electrónico.',
    reserved: 'La plaza está reservada para ti. En el correo sobre tu pedido se explica cómo pagar.',
    expired: 'Esta oferta ha caducado. Ya no te guardamos la plaza.',
    declined: 'Ya no te guardamos esta plaza.',
    refused: 'Esta plaza no se puede aceptar en este momento.',
  },

  orderPage: {
    open: 'Ver tu pedido',
    paid: 'Este pedido está pagado por completo.',
    free: 'No tienes que pagar nada.',
    cancelled: 'Este pedido se ha cancelado.',
    reference: 'Referencia del pago',
    copy: 'Copiar',
    copied: 'Copiado: {text}',
    payments: 'Pagos',
    payment: 'Pago recibido el {date}',
    refund: 'Devolución realizada el {date}',
    tickets: 'Entradas',
    valid: 'Válida',
    unpaid: 'Pendiente de pago',
    ticketCancelled: 'Anulada',
    openTicket: 'Ver la entrada',
    change: 'Cambiar el nombre o cederla',
    printTickets: 'Imprimir tus entradas',
    receipt: 'Recibo',
    seller: 'Vendedor',
    buyer: 'Comprador',
    print: 'Imprimir',
    page: 'Página {page} de {pages}',
  },
}
