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
  before: 'Antes',
  now: 'Ahora',
  event: 'Evento',
  discount: 'Descuento',
  total: 'Total',
  paid: 'Pagado',
  due: 'Pendiente de pago',
  howToPay: 'Cómo pagar',

  clock: '{h}:{minute}',
  time: '{time} h',
  times: 'de {start} a {end} h',
  moment: '{date} a las {time}',
  until: 'hasta el {moment}',
  offsets: '{start} al principio, {end} al final',

  subject: '{headline}: {event}',
  toBeAnnounced: 'Por confirmar',
  by: 'de {organisation}',
  qrCode: 'Código QR {code}',
  line: '{quantity} × {name}',
  openTicket: 'Abrir la entrada en el navegador',

  showAtTheDoor:
    'Muestra el código QR en el acceso, en el móvil o impreso. Es válido para una persona y una sola vez: no lo compartas con nadie.',
  keepAtHand: 'Ten esta entrada a mano: puede que te pidan el código.',
  attachedWithDate: 'Adjuntamos el código QR como imagen y la fecha para tu calendario.',
  attached: 'Adjuntamos el código QR como imagen.',
  calendarUpdates: 'El archivo adjunto actualiza el evento en tu calendario.',
  calendarRemoves: 'El archivo adjunto elimina el evento de tu calendario.',
  reply: '¿Tienes alguna pregunta? Responde a este correo o escribe a {organisation}:',
  write: '¿Tienes alguna pregunta? Escribe a {organisation}:',
  ask: '¿Tienes alguna pregunta? Ponte en contacto con {organisation}.',

  calendarOrganiser: 'De {organisation}',
  calendarOnline: 'En línea: {url}',
  calendarTicket: 'Entrada: {ticketType}',
  calendarOrder: 'Pedido: {reference}',
  calendarCode: 'Encontrarás el código QR en el correo con tu entrada.',

  kinds: {
    ticket: {
      headline: 'Tu entrada',
      several: 'Tus {count} entradas',
      oneEach:
        'Cada código QR es válido para una persona y una sola vez. Muéstralo en el acceso, en el móvil o impreso, y comparte cada entrada solo con la persona a la que corresponde.',
    },
    order_confirmation: {
      headline: 'Tu pedido {reference}',
      thanks: 'Gracias por tu pedido, {name}.',
      pay: 'Paga {amount} indicando la referencia {reference}.',
      payBy: 'Paga {amount} antes del {date} indicando la referencia {reference}.',
      ticketsFollow: 'Enviaremos las entradas por correo en cuanto se pague el pedido.',
      nothingDue: 'No tienes que pagar nada. Cada asistente recibirá su entrada por correo.',
    },
    payment_received: {
      headline: 'Pago recibido',
      received: 'Gracias, {name}. Recibimos tu pago de {amount} el {date}.',
      complete: 'Tu pedido ya está pagado por completo. Cada asistente recibirá su entrada por correo.',
      incomplete: 'Quedan {amount} por pagar.',
    },
    payment_voided: {
      headline: 'Pago no recibido',
      voided:
        'Hola, {name}: te dijimos que habíamos recibido {amount} el {date}. Fue un error: no hemos recibido ese pago.',
      due: 'Quedan {amount} por pagar.',
    },
    payment_reminder: {
      headline: 'Paga antes del {date}',
      reminder: 'Quedan {amount} por pagar antes del {date}. Indica la referencia {reference}.',
      consequence: 'Pasado ese plazo, el pedido se cancelará y sus plazas se ofrecerán a otras personas.',
    },
    order_expired: {
      headline: 'Tu pedido se ha cancelado',
      expired: 'Tu pedido no se pagó a tiempo y se ha cancelado. Las plazas han quedado libres.',
      doNotPay: 'Por favor, ya no lo pagues. Si todavía quieres venir, haz un pedido nuevo.',
      refund: 'Te devolveremos los {amount} que ya habías pagado.',
    },
    event_changed: {
      headline: 'Cambios',
      note: 'Esto es lo que ha cambiado:',
      valid: 'Tu entrada sigue siendo válida.',
      unpaid: 'Recibirás tu entrada en cuanto se pague el pedido.',
    },
    event_cancelled: {
      headline: 'Cancelado',
      notice: 'Lamentablemente, este evento se ha cancelado. Las entradas ya no son válidas.',
    },
    ticket_cancelled: {
      headline: 'Entrada anulada',
      one: 'La entrada a nombre de {names} se ha anulado y ya no es válida.',
      several: 'Las entradas a nombre de {names} se han anulado y ya no son válidas.',
    },
    waiting_list_offer: {
      headline: 'Una plaza para ti',
      offer: 'Buenas noticias, {name}: ha quedado libre una plaza y te la guardamos hasta el {date}.',
      reply: 'Si la quieres, responde a este correo dentro de ese plazo.',
      ask: 'Si la quieres, ponte en contacto con {organisation} dentro de ese plazo.',
      after: 'Después se la ofreceremos a la siguiente persona de la lista de espera.',
    },
    waiting_list_cancelled: {
      headline: 'Cancelado',
      notice:
        'Lamentablemente, este evento se ha cancelado. La lista de espera queda cerrada y ya no te guardamos ninguna plaza.',
    },
  },

  page: {
    title: 'Entrada: {event}',
    valid: 'Muestra este código en el acceso. Es válido para una sola persona: no lo compartas con nadie.',
    validOnline: 'Ten esta entrada a mano: puede que te pidan el código.',
    checkedIn: 'Acceso registrado: {time}',
    awaitingPayment: 'Pendiente de pago. El código aparecerá aquí en cuanto se pague el pedido.',
    cancelled: 'Esta entrada se ha anulado y ya no es válida.',
    eventCancelled: 'Este evento se ha cancelado.',
    eventEnded: 'Este evento ha terminado.',
    map: 'Ver en el mapa',
    calendar: 'Añadir al calendario',
    googleCalendar: 'Google Calendar',
    outdated: 'Sin conexión. Es posible que esta página no esté actualizada.',
    unknownTitle: 'No se ha encontrado la entrada',
    unknown:
      'Este enlace no corresponde a ninguna entrada. Si te han reenviado la entrada, usa el enlace del correo más reciente; si no, ponte en contacto con la organización del evento.',
    busyTitle: 'Un momento, por favor',
    busy: 'La entrada no se puede mostrar en este momento. Vuelve a intentarlo dentro de un minuto.',
  },
}
