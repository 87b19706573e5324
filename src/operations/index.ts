// The list of operations, by toolset, from which REST, MCP and the OpenAPI document are made. A new operation must be added here.

import * as apiKeys from './api-keys.ts'
import * as applyEvent from './apply-event.ts'
import * as attendees from './attendees.ts'
import * as audit from './audit.ts'
import { warnings } from './changes.ts'
import * as checkInPoints from './check-in-points.ts'
import * as checkIns from './check-ins.ts'
import * as emails from './emails.ts'
import * as events from './events.ts'
import * as exports from './exports.ts'
import * as messages from './messages.ts'
import * as notifications from './notifications.ts'
import { type Declared, isRead, type Operation, type Toolset } from './operation.ts'
import * as orders from './orders.ts'
import * as paymentReminders from './payment-reminders.ts'
import * as people from './people.ts'
import * as promoCodes from './promo-codes.ts'
import * as questions from './questions.ts'
import * as registrations from './registrations.ts'
import * as requests from './requests.ts'
import * as ticketTypes from './ticket-types.ts'
import * as waitingList from './waiting-list.ts'
import * as webhookEndpoints from './webhook-endpoints.ts'

const listedBy = (toolset: Toolset, operations: readonly Declared[]): Operation[] =>
  operations.map((operation) => ({ ...operation, toolset }))

const declared: readonly Operation[] = [
  ...listedBy('account', [apiKeys.getApiKey]),
  ...listedBy('events', [
    events.listEvents,
    events.getEvent,
    events.getEventSummary,
    applyEvent.applyEvent,
    events.createEvent,
    events.updateEvent,
    events.publishEvent,
    events.unpublishEvent,
    events.cancelEvent,
    events.completeEvent,
    events.deleteEvent,
    ticketTypes.listTicketTypes,
    ticketTypes.getTicketType,
    ticketTypes.createTicketType,
    ticketTypes.updateTicketType,
    promoCodes.listPromoCodes,
    promoCodes.getPromoCode,
    promoCodes.createPromoCode,
    promoCodes.updatePromoCode,
    questions.listQuestions,
    questions.createQuestion,
    questions.updateQuestion,
  ]),
  ...listedBy('attendees', [
    questions.remindUnanswered,
    messages.messageAttendees,
    registrations.registerAttendee,
    registrations.addAttendee,
    registrations.importAttendees,
  ]),
  ...listedBy('waiting_list', [
    waitingList.listWaitingListEntries,
    waitingList.getWaitingListEntry,
    waitingList.joinWaitingList,
    waitingList.updateWaitingListEntry,
    waitingList.acceptWaitingListOffer,
    waitingList.cancelWaitingListEntry,
  ]),
  ...listedBy('orders', [
    orders.listOrders,
    orders.getOrder,
    orders.listPayments,
    orders.updateOrder,
    orders.recordInvoicePayment,
    orders.voidPayment,
    orders.recordRefund,
    paymentReminders.sendPaymentReminder,
    paymentReminders.sendPaymentReminders,
    orders.reopenOrder,
    orders.cancelOrder,
  ]),
  ...listedBy('attendees', [
    attendees.listAttendees,
    attendees.getAttendee,
    attendees.getTicketQr,
    attendees.updateAttendee,
    attendees.cancelAttendee,
    attendees.resendTicket,
    emails.listEmails,
    emails.getEmail,
    emails.resendEmail,
    attendees.eraseAttendee,
    people.findPerson,
    people.erasePerson,
  ]),
  ...listedBy('events', [
    checkInPoints.listCheckInPoints,
    checkInPoints.getCheckInPoint,
    checkInPoints.createCheckInPoint,
    checkInPoints.updateCheckInPoint,
    checkInPoints.deleteCheckInPoint,
  ]),
  ...listedBy('door', [
    checkInPoints.getDoorList,
    checkIns.findAttendees,
    checkIns.checkIn,
    checkIns.checkInBatch,
    checkIns.undoCheckIn,
    checkIns.listCheckIns,
    checkIns.listCheckInConflicts,
  ]),
  ...listedBy('webhooks', [
    webhookEndpoints.listWebhookEndpoints,
    webhookEndpoints.getWebhookEndpoint,
    webhookEndpoints.createWebhookEndpoint,
    webhookEndpoints.updateWebhookEndpoint,
    webhookEndpoints.deleteWebhookEndpoint,
    webhookEndpoints.rotateWebhookSecret,
    notifications.testWebhookEndpoint,
    notifications.listWebhookDeliveries,
    notifications.redeliverWebhook,
    notifications.redeliverWebhooks,
    notifications.listNotifications,
  ]),
  ...listedBy('attendees', [exports.exportAttendees]),
  ...listedBy('orders', [exports.exportOrders, exports.exportPayments]),
  ...listedBy('door', [exports.exportCheckIns]),
  ...listedBy('account', [audit.listAuditEntries, requests.listRequests]),
]

/** Every write may answer warnings. */
export const operations: readonly Operation[] = declared.map((operation) =>
  isRead(operation) ? operation : { ...operation, output: operation.output.extend({ warnings }) },
)
