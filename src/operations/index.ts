// The list of operations, from which REST, MCP and the OpenAPI document are made. A new operation must be added here.

import { getApiKey } from './api-keys.ts'
import { applyEvent } from './apply-event.ts'
import {
  cancelAttendee,
  eraseAttendee,
  getAttendee,
  getTicketQr,
  listAttendees,
  resendTicket,
  updateAttendee,
} from './attendees.ts'
import { listAuditEntries } from './audit.ts'
import { warnings } from './changes.ts'
import {
  createCheckInPoint,
  deleteCheckInPoint,
  getCheckInPoint,
  getDoorList,
  listCheckInPoints,
  updateCheckInPoint,
} from './check-in-points.ts'
import { checkIn, checkInBatch, findAttendees, listCheckInConflicts, listCheckIns, undoCheckIn } from './check-ins.ts'
import { listEmails, resendEmail } from './emails.ts'
import {
  cancelEvent,
  completeEvent,
  createEvent,
  deleteEvent,
  getEvent,
  getEventSummary,
  listEvents,
  publishEvent,
  unpublishEvent,
  updateEvent,
} from './events.ts'
import { exportAttendees, exportCheckIns, exportOrders, exportPayments } from './exports.ts'
import {
  listNotifications,
  listWebhookDeliveries,
  redeliverWebhook,
  redeliverWebhooks,
  testWebhookEndpoint,
} from './notifications.ts'
import { isRead, type Operation } from './operation.ts'
import {
  cancelOrder,
  getOrder,
  listOrders,
  recordInvoicePayment,
  recordRefund,
  reopenOrder,
  updateOrder,
  voidPayment,
} from './orders.ts'
import { sendPaymentReminder, sendPaymentReminders } from './payment-reminders.ts'
import { erasePerson, findPerson } from './people.ts'
import { createPromoCode, getPromoCode, listPromoCodes, updatePromoCode } from './promo-codes.ts'
import { importAttendees, registerAttendee } from './registrations.ts'
import { createTicketType, getTicketType, listTicketTypes, updateTicketType } from './ticket-types.ts'
import {
  acceptWaitingListOffer,
  cancelWaitingListEntry,
  getWaitingListEntry,
  joinWaitingList,
  listWaitingListEntries,
  updateWaitingListEntry,
} from './waiting-list.ts'
import {
  createWebhookEndpoint,
  deleteWebhookEndpoint,
  getWebhookEndpoint,
  listWebhookEndpoints,
  rotateWebhookSecret,
  updateWebhookEndpoint,
} from './webhook-endpoints.ts'

const declared: readonly Operation[] = [
  getApiKey,
  listEvents,
  getEvent,
  getEventSummary,
  applyEvent,
  createEvent,
  updateEvent,
  publishEvent,
  unpublishEvent,
  cancelEvent,
  completeEvent,
  deleteEvent,
  listTicketTypes,
  getTicketType,
  createTicketType,
  updateTicketType,
  listPromoCodes,
  getPromoCode,
  createPromoCode,
  updatePromoCode,
  registerAttendee,
  importAttendees,
  listWaitingListEntries,
  getWaitingListEntry,
  joinWaitingList,
  updateWaitingListEntry,
  acceptWaitingListOffer,
  cancelWaitingListEntry,
  listOrders,
  getOrder,
  updateOrder,
  recordInvoicePayment,
  voidPayment,
  recordRefund,
  sendPaymentReminder,
  sendPaymentReminders,
  reopenOrder,
  cancelOrder,
  listAttendees,
  getAttendee,
  getTicketQr,
  updateAttendee,
  cancelAttendee,
  resendTicket,
  listEmails,
  resendEmail,
  eraseAttendee,
  findPerson,
  erasePerson,
  listCheckInPoints,
  getCheckInPoint,
  createCheckInPoint,
  updateCheckInPoint,
  deleteCheckInPoint,
  getDoorList,
  findAttendees,
  checkIn,
  checkInBatch,
  undoCheckIn,
  listCheckIns,
  listCheckInConflicts,
  listWebhookEndpoints,
  getWebhookEndpoint,
  createWebhookEndpoint,
  updateWebhookEndpoint,
  deleteWebhookEndpoint,
  rotateWebhookSecret,
  testWebhookEndpoint,
  listWebhookDeliveries,
  redeliverWebhook,
  redeliverWebhooks,
  listNotifications,
  exportAttendees,
  exportOrders,
  exportPayments,
  exportCheckIns,
  listAuditEntries,
]

/** Every write may answer warnings. */
export const operations: readonly Operation[] = declared.map((operation) =>
  isRead(operation) ? operation : { ...operation, output: operation.output.extend({ warnings }) },
)
