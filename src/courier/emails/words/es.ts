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

  toBeAnnounced: 'Por anunciar',
  by: 'de {organisation}',
  qrCode: 'Código QR {code}',
  line: '{quantity} × {name}',
  until: 'hasta el {moment}',
  offsets: '{start} al principio, {end} al final',

  showAtTheDoor:
    'Muestra el código QR en la entrada, en el teléfono o en papel. Deja entrar a una persona, una sola vez: no lo compartas con nadie.',
  keepAtHand: 'Ten esta entrada a mano: puede que te pidan su código.',
  attachedWithDate: 'El código QR va adjunto como imagen, y la fecha como archivo de calendario.',
  attached: 'El código QR va adjunto como imagen.',
  calendarUpdates: 'El archivo de calendario adjunto actualiza la entrada de tu calendario.',
  calendarRemoves: 'El archivo de calendario adjunto quita la entrada de tu calendario.',
  reply: '¿Preguntas? Responde a este correo para contactar con {organisation}.',
  ask: '¿Preguntas? Contacta con {organisation}.',

  calendarOrganiser: 'De {organisation}',
  calendarOnline: 'En línea: {url}',
  calendarTicket: 'Entrada: {ticketType}',
  calendarOrder: 'Pedido: {reference}',
  calendarCode: 'Tu código QR está en el correo de la entrada.',

  kinds: {
    ticket: { subject: 'Tu entrada: {event}', title: 'Tu entrada para' },
    order_confirmation: {
      subject: 'Tu pedido {reference}: {event}',
      title: 'Tu pedido para',
      thanks: 'Gracias por tu pedido, {name}.',
      pay: 'Paga {amount} e indica la referencia {reference}.',
      payBy: 'Paga {amount} antes del {date} e indica la referencia {reference}.',
      ticketsFollow: 'Las entradas se envían por correo en cuanto se paga el pedido.',
      nothingDue: 'No hay nada que pagar. Cada entrada se envía por correo a la persona para la que es.',
    },
    payment_received: {
      subject: 'Pago recibido: {event}',
      title: 'Pago recibido para',
      received: 'Hemos recibido {amount} el {date}. Gracias, {name}.',
      complete: 'El pedido está pagado. Cada entrada se envía por correo a la persona para la que es.',
      incomplete: 'Quedan {amount} por pagar.',
    },
    payment_reminder: {
      subject: 'Paga antes del {date}: {event}',
      title: 'Tu pedido para',
      reminder: 'Quedan {amount} por pagar antes del {date}. Indica la referencia {reference}.',
      consequence: 'Después, el pedido se cancela y sus plazas se dan a otras personas.',
    },
    order_expired: {
      subject: 'Tu pedido se ha cancelado: {event}',
      title: 'Tu pedido para',
      expired: 'El pedido no se pagó a tiempo y se ha cancelado. Sus plazas han quedado libres.',
      doNotPay: 'Ya no lo pagues. Si todavía quieres venir, solicita un pedido nuevo.',
      refund: 'Se te devolverá lo que pagaste: {amount}.',
    },
    event_changed: {
      subject: 'Cambios: {event}',
      title: 'Algo ha cambiado:',
      note: 'Ten en cuenta lo que ha cambiado.',
      valid: 'Tu entrada sigue siendo válida.',
    },
    event_cancelled: {
      subject: 'Cancelado: {event}',
      title: 'Este evento se ha cancelado:',
      invalid: 'El evento no se celebra. Tu entrada ya no es válida.',
    },
    ticket_cancelled: {
      subject: 'Tu entrada se ha cancelado: {event}',
      title: 'Tu entrada se ha cancelado:',
      invalid: 'Tu entrada ya no es válida: no permite entrar.',
    },
    waiting_list_offer: {
      subject: 'Una plaza para ti: {event}',
      title: 'Te guardamos una plaza:',
      offer: 'Buenas noticias, {name}: ha quedado libre una plaza y te la guardamos hasta el {date}.',
      reply: 'Si la quieres, responde a este correo antes de esa fecha.',
      ask: 'Si la quieres, contacta con {organisation} antes de esa fecha.',
      after: 'Después se ofrece a la siguiente persona de la lista de espera.',
    },
  },

  page: {
    title: 'Entrada: {event}',
    valid: 'Muestra este código en la puerta. Deja pasar a una sola persona: no lo compartas con nadie.',
    validOnline: 'Ten esta entrada a mano: puede que te pidan el código.',
    checkedIn: 'Acceso registrado: {time}',
    awaitingPayment: 'Pendiente de pago. El código aparece aquí en cuanto se pague el pedido.',
    cancelled: 'Esta entrada se ha cancelado. No permite entrar.',
    eventCancelled: 'Este evento se ha cancelado.',
    eventEnded: 'Este evento ha terminado.',
    map: 'Ver en un mapa',
    calendar: 'Añadir al calendario',
    googleCalendar: 'Google Calendar',
    outdated: 'No hay conexión. Lo que dice esta página puede no estar al día.',
    unknownTitle: 'Aquí no hay ninguna entrada',
    unknown:
      'Este enlace no lleva a ninguna entrada. Si te enviaron la entrada de nuevo, usa el enlace del correo más reciente; si no, pregunta al organizador.',
    busyTitle: 'Espera un momento',
    busy: 'La entrada no se puede mostrar ahora. Inténtalo de nuevo dentro de un minuto.',
  },
}
