// The payloads of Usher's webhooks: import type { UsherWebhook } from './usher-webhooks.ts'. Its `type` says what its `data` is.
// Generated from the OpenAPI document by `npm run webhook-types`.

export interface components {
    schemas: {
        UsherWebhook: {
            /** @constant */
            type: "order.created";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Order"];
        } | {
            /** @constant */
            type: "order.completed";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Order"];
        } | {
            /** @constant */
            type: "order.cancelled";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Order"];
        } | {
            /** @constant */
            type: "order.expired";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Order"];
        } | {
            /** @constant */
            type: "order.reopened";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Order"];
        } | {
            /** @constant */
            type: "attendee.checked_in";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["NotificationData"];
        } | {
            /** @constant */
            type: "attendee.checked_out";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["NotificationData"];
        } | {
            /** @constant */
            type: "attendee.check_in_undone";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["NotificationData"];
        } | {
            /** @constant */
            type: "attendee.updated";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Attendee"];
        } | {
            /** @constant */
            type: "attendee.cancelled";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Attendee"];
        } | {
            /** @constant */
            type: "attendee.erased";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Attendee"];
        } | {
            /** @constant */
            type: "event.published";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Event"];
        } | {
            /** @constant */
            type: "event.updated";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Event"];
        } | {
            /** @constant */
            type: "event.cancelled";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Event"];
        } | {
            /** @constant */
            type: "payment.recorded";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Payment"];
        } | {
            /** @constant */
            type: "payment.voided";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Payment"];
        } | {
            /** @constant */
            type: "refund.recorded";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["Refund"];
        } | {
            /** @constant */
            type: "email.bounced";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["NotificationDataEmail"];
        } | {
            /** @constant */
            type: "ticket_type.sold_out";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["TicketType"];
        } | {
            /** @constant */
            type: "waiting_list_entry.created";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["WaitingListEntry"];
        } | {
            /** @constant */
            type: "waiting_list_entry.offered";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["WaitingListEntry"];
        } | {
            /** @constant */
            type: "waiting_list_entry.accepted";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["WaitingListEntry"];
        } | {
            /** @constant */
            type: "waiting_list_entry.expired";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["WaitingListEntry"];
        } | {
            /** @constant */
            type: "waiting_list_entry.cancelled";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["WaitingListEntry"];
        } | {
            /** @constant */
            type: "webhook_endpoint.test";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description The object at that time. */
            data: components["schemas"]["WebhookEndpoint"];
        };
        Order: {
            /** @constant */
            object: "order";
            /**
             * Format: uuid
             * @description Identifier of the order.
             */
            id: string;
            /**
             * Format: uuid
             * @description Identifier of the event.
             */
            event_id: string;
            /** @description Short reference for people. */
            reference: string;
            /** @enum {string} */
            status: "pending" | "completed" | "cancelled";
            /** @enum {string} */
            payment_status: "not_required" | "awaiting_payment" | "partially_paid" | "paid" | "refund_due" | "refunded";
            name: string;
            email: string;
            company: string | null;
            /** @description ISO 4217. */
            currency: string;
            /** @description Prices of the tickets that are not cancelled, in minor units; of a cancelled order, before it was cancelled. */
            subtotal: number;
            /** @description Discounts of the same tickets, in minor units. */
            discount_total: number;
            /** @description subtotal minus discount_total. */
            total: number;
            /** @description Sum of the payments that are not voided, in minor units. */
            amount_paid: number;
            /** @description total, less amount_paid, plus amount_refunded; at least 0, and 0 once it is cancelled. */
            amount_due: number;
            /** @description Sum of the refunds, in minor units. */
            amount_refunded: number;
            /** @description What the organiser keeps of what was cancelled, in minor units. */
            amount_retained: number;
            /** @description Paid beyond what is owed, neither refunded yet nor retained, in minor units: what refund_due is about. */
            amount_refundable: number;
            /** @description How it is to be paid; null: complimentary. How each payment came is its method. */
            payment_method: ("invoice" | "bank_transfer" | "card" | "cash" | "other") | null;
            /** @description Deadline, after which it expires if nothing is paid; null: none. */
            payment_due_at: string | null;
            /** @description When the buyer was last reminded; null again once payment_due_at is another. */
            payment_reminded_at: string | null;
            promo_code: string | null;
            /** @enum {string} */
            source: "api" | "mcp" | "studio";
            attendees: components["schemas"]["Attendee"][];
            payments: components["schemas"]["Payment"][];
            refunds: components["schemas"]["Refund"][];
            completed_at: string | null;
            cancelled_at: string | null;
            /** @description Why it is cancelled; expired: not paid by payment_due_at. */
            cancellation_reason: ("requested" | "expired" | "event_cancelled") | null;
            /** @description The organiser's own identifier. */
            external_id: string | null;
            /** @description The organiser's own flat object, at most 50 keys. */
            metadata: {
                [key: string]: string | number | boolean | null;
            };
            /** @description Number of edits; over REST the ETag begins with it. */
            version: number;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            updated_at: string;
        };
        Attendee: {
            /** @constant */
            object: "attendee";
            /**
             * Format: uuid
             * @description Identifier of the attendee.
             */
            id: string;
            /**
             * Format: uuid
             * @description Identifier of the order.
             */
            order_id: string;
            /**
             * Format: uuid
             * @description Identifier of the event.
             */
            event_id: string;
            /**
             * Format: uuid
             * @description Identifier of the ticket type.
             */
            ticket_type_id: string;
            order: components["schemas"]["AttendeeOrder"];
            ticket_type: components["schemas"]["AttendeeTicketType"];
            name: string;
            email: string;
            company: string | null;
            /** @description Price when the ticket was registered, in minor units; 0 when complimentary. */
            price: number;
            /** @description Discount of the promo code, or its share of an amount off the order, in minor units. */
            discount: number;
            /** @description ISO 4217. */
            currency: string;
            /** @enum {string} */
            status: "active" | "awaiting_payment" | "cancelled";
            /** @description Content of the QR code; check_in takes it. null in answers to orders:read and orders:write. */
            ticket_code: string | null;
            /** @description Ticket page for the holder, a secret as ticket_code is. null in webhooks, and where ticket_code is null. */
            ticket_url: string | null;
            checked_in_at: string | null;
            /** @description Whether they came in and did not leave by an exit scan, on any day. */
            inside: boolean;
            ticket_email: components["schemas"]["AttendeeTicketEmail"];
            cancelled_at: string | null;
            /** @description When what identified the person was erased. */
            erased_at: string | null;
            /** @description The organiser's own identifier. */
            external_id: string | null;
            /** @description The organiser's own flat object, at most 50 keys. */
            metadata: {
                [key: string]: string | number | boolean | null;
            };
            /** @description Number of edits; over REST the ETag begins with it. */
            version: number;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            updated_at: string;
        };
        AttendeeOrder: {
            /**
             * Format: uuid
             * @description Identifier of the order.
             */
            id: string;
            /** @description Short reference for people. */
            reference: string;
        };
        AttendeeTicketType: {
            /**
             * Format: uuid
             * @description Identifier of the ticket type.
             */
            id: string;
            name: string;
        };
        AttendeeTicketEmail: {
            /** @enum {string} */
            status: "not_requested" | "waiting" | "queued" | "sent" | "delivered" | "bounced" | "failed" | "cancelled";
            sent_at: string | null;
            last_error: string | null;
        };
        Payment: {
            /** @constant */
            object: "payment";
            /**
             * Format: uuid
             * @description Identifier of the payment.
             */
            id: string;
            /**
             * Format: uuid
             * @description Identifier of the order.
             */
            order_id: string;
            /**
             * Format: uuid
             * @description Identifier of the event.
             */
            event_id: string;
            /** @enum {string} */
            method: "invoice" | "bank_transfer" | "card" | "cash" | "other";
            /** @description Minor units of the currency: cents of EUR, whole JPY, thousandths of KWD. */
            amount: number;
            /** @description ISO 4217. */
            currency: string;
            external_reference: string | null;
            /** @enum {string} */
            source: "api" | "mcp" | "studio";
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            received_at: string;
            /** @description When it was voided: it then counts for nothing. */
            voided_at: string | null;
        };
        Refund: {
            /** @constant */
            object: "refund";
            /**
             * Format: uuid
             * @description Identifier of the refund.
             */
            id: string;
            /**
             * Format: uuid
             * @description Identifier of the order.
             */
            order_id: string;
            /**
             * Format: uuid
             * @description Identifier of the event.
             */
            event_id: string;
            /** @enum {string} */
            method: "invoice" | "bank_transfer" | "card" | "cash" | "other";
            /** @description Minor units of the currency: cents of EUR, whole JPY, thousandths of KWD. */
            amount: number;
            /** @description ISO 4217. */
            currency: string;
            external_reference: string | null;
            /** @enum {string} */
            source: "api" | "mcp" | "studio";
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            refunded_at: string;
        };
        NotificationData: {
            /** @constant */
            object: "attendee";
            /**
             * Format: uuid
             * @description Identifier of the attendee.
             */
            id: string;
            /**
             * Format: uuid
             * @description Identifier of the order.
             */
            order_id: string;
            /**
             * Format: uuid
             * @description Identifier of the event.
             */
            event_id: string;
            /**
             * Format: uuid
             * @description Identifier of the ticket type.
             */
            ticket_type_id: string;
            order: components["schemas"]["AttendeeOrder"];
            ticket_type: components["schemas"]["AttendeeTicketType"];
            name: string;
            email: string;
            company: string | null;
            /** @description Price when the ticket was registered, in minor units; 0 when complimentary. */
            price: number;
            /** @description Discount of the promo code, or its share of an amount off the order, in minor units. */
            discount: number;
            /** @description ISO 4217. */
            currency: string;
            /** @enum {string} */
            status: "active" | "awaiting_payment" | "cancelled";
            /** @description Content of the QR code; check_in takes it. null in answers to orders:read and orders:write. */
            ticket_code: string | null;
            /** @description Ticket page for the holder, a secret as ticket_code is. null in webhooks, and where ticket_code is null. */
            ticket_url: string | null;
            checked_in_at: string | null;
            /** @description Whether they came in and did not leave by an exit scan, on any day. */
            inside: boolean;
            ticket_email: components["schemas"]["AttendeeTicketEmail"];
            cancelled_at: string | null;
            /** @description When what identified the person was erased. */
            erased_at: string | null;
            /** @description The organiser's own identifier. */
            external_id: string | null;
            /** @description The organiser's own flat object, at most 50 keys. */
            metadata: {
                [key: string]: string | number | boolean | null;
            };
            /** @description Number of edits; over REST the ETag begins with it. */
            version: number;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            updated_at: string;
            check_in: components["schemas"]["NotificationDataCheckIn"];
        };
        /** @description The scan. */
        NotificationDataCheckIn: {
            /**
             * Format: uuid
             * @description Identifier of the check-in.
             */
            id: string;
            /** @enum {string} */
            direction: "entry" | "exit";
            check_in_point: components["schemas"]["NotificationDataCheckInCheckInPoint"] | null;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            scanned_at: string;
            device: string | null;
        };
        NotificationDataCheckInCheckInPoint: {
            /**
             * Format: uuid
             * @description Identifier of the check-in point.
             */
            id: string;
            name: string;
        };
        Event: {
            /** @constant */
            object: "event";
            /**
             * Format: uuid
             * @description Identifier of the event.
             */
            id: string;
            name: string;
            slug: string;
            description: string | null;
            /** @enum {string} */
            status: "draft" | "published" | "cancelled" | "completed";
            /**
             * @description The current time relative to starts_at and ends_at; of a draft always upcoming.
             * @enum {string}
             */
            phase: "upcoming" | "ongoing" | "ended";
            starts_at: string | null;
            ends_at: string | null;
            /** @description IANA time zone of the event. */
            timezone: string;
            /**
             * @description Language in which guests are written to.
             * @enum {string}
             */
            locale: "en" | "de" | "fr" | "es" | "nl";
            venue: components["schemas"]["EventVenue"] | null;
            online_url: string | null;
            /** @description Places over all ticket types; null: no limit. */
            capacity: number | null;
            /** @description For how many hours a place that the waiting list offers is held. */
            waiting_list_offer_hours: number;
            /** @description ISO 4217. */
            currency: string;
            /** @description Days until an unpaid order expires; null: no deadline. */
            payment_due_days: number | null;
            published_at: string | null;
            /** @description Set while a large event is yet to be cancelled, as was asked for. */
            cancelling_since: string | null;
            cancelled_at: string | null;
            completed_at: string | null;
            /** @description The organiser's own identifier. */
            external_id: string | null;
            /** @description The organiser's own flat object, at most 50 keys. */
            metadata: {
                [key: string]: string | number | boolean | null;
            };
            /** @description Number of edits; over REST the ETag begins with it. */
            version: number;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            updated_at: string;
        };
        EventVenue: {
            name: string | null;
            address: string | null;
            city: string | null;
            postcode: string | null;
            /** @description ISO 3166-1 alpha-2. */
            country: string | null;
        };
        NotificationDataEmail: {
            /** @constant */
            object: "email";
            /**
             * @description What the e-mail was.
             * @enum {string}
             */
            kind: "ticket" | "order_confirmation" | "payment_received" | "payment_voided" | "payment_reminder" | "order_expired" | "order_cancelled" | "event_changed" | "event_cancelled" | "ticket_cancelled" | "waiting_list_offer" | "waiting_list_cancelled";
            /**
             * Format: uuid
             * @description Identifier of the event.
             */
            event_id: string;
            /** @description null: an offer of the waiting list. */
            order_id: string | null;
            /** @description null: it went to the contact of the order. */
            attendee_id: string | null;
            /** @description Of an offer of the waiting list. */
            waiting_list_entry_id: string | null;
            /** @description The address that it could not be delivered to. */
            to: string;
            /**
             * @description bounced: returned later. failed: refused when it was sent.
             * @enum {string}
             */
            status: "bounced" | "failed";
            sent_at: string | null;
            /** @description What the mail service said. */
            error: string | null;
        };
        TicketType: {
            /** @constant */
            object: "ticket_type";
            /**
             * Format: uuid
             * @description Identifier of the ticket type.
             */
            id: string;
            /**
             * Format: uuid
             * @description Identifier of the event.
             */
            event_id: string;
            name: string;
            description: string | null;
            /** @description Minor units of the currency: cents of EUR, whole JPY, thousandths of KWD. */
            price: number;
            /** @description ISO 4217. */
            currency: string;
            /** @description How many there are; null: unlimited. */
            quantity: number | null;
            quantity_sold: number;
            /** @description Places held for offers of the waiting list. */
            quantity_held: number;
            /** @description How many are left, within the event's capacity; null: unlimited. */
            quantity_available: number | null;
            min_per_order: number;
            max_per_order: number | null;
            sales_start_at: string | null;
            sales_end_at: string | null;
            /** @enum {string} */
            visibility: "public" | "hidden";
            /** @enum {string} */
            status: "active" | "archived";
            /** @enum {string} */
            sales_status: "upcoming" | "on_sale" | "sold_out" | "ended" | "archived";
            position: number;
            /** @description The organiser's own identifier. */
            external_id: string | null;
            /** @description The organiser's own flat object, at most 50 keys. */
            metadata: {
                [key: string]: string | number | boolean | null;
            };
            /** @description Number of edits; over REST the ETag begins with it. */
            version: number;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            updated_at: string;
        };
        WaitingListEntry: {
            /** @constant */
            object: "waiting_list_entry";
            /**
             * Format: uuid
             * @description Identifier of the entry of the waiting list.
             */
            id: string;
            /**
             * Format: uuid
             * @description Identifier of the event.
             */
            event_id: string;
            /**
             * Format: uuid
             * @description Identifier of the ticket type.
             */
            ticket_type_id: string;
            ticket_type: components["schemas"]["WaitingListEntryTicketType"];
            name: string;
            email: string;
            company: string | null;
            /** @enum {string} */
            status: "waiting" | "offered" | "accepted" | "expired" | "cancelled";
            /** @description Place in the line for the ticket type, from 1; null unless waiting. */
            position: number | null;
            offered_at: string | null;
            /** @description Until when the place is held. */
            offer_expires_at: string | null;
            /** @description The order of whoever accepted. */
            order_id: string | null;
            /** @description Whoever accepted. */
            attendee_id: string | null;
            /** @description The organiser's own identifier. */
            external_id: string | null;
            /** @description The organiser's own flat object, at most 50 keys. */
            metadata: {
                [key: string]: string | number | boolean | null;
            };
            /** @description Number of edits; over REST the ETag begins with it. */
            version: number;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            updated_at: string;
        };
        WaitingListEntryTicketType: {
            /**
             * Format: uuid
             * @description Identifier of the ticket type.
             */
            id: string;
            name: string;
        };
        WebhookEndpoint: {
            /** @constant */
            object: "webhook_endpoint";
            /**
             * Format: uuid
             * @description Identifier of the webhook endpoint.
             */
            id: string;
            url: string;
            description: string | null;
            /** @description Types it is subscribed to. */
            types: ("order.created" | "order.completed" | "order.cancelled" | "order.expired" | "order.reopened" | "attendee.checked_in" | "attendee.checked_out" | "attendee.check_in_undone" | "attendee.updated" | "attendee.cancelled" | "attendee.erased" | "event.published" | "event.updated" | "event.cancelled" | "payment.recorded" | "payment.voided" | "refund.recorded" | "email.bounced" | "ticket_type.sold_out" | "waiting_list_entry.created" | "waiting_list_entry.offered" | "waiting_list_entry.accepted" | "waiting_list_entry.expired" | "waiting_list_entry.cancelled" | "webhook_endpoint.test")[];
            /** @description Only what belongs to these events is sent; empty: all events. */
            event_ids: string[];
            /** @enum {string} */
            status: "enabled" | "disabled";
            /** @description Why Usher disabled it; null if a person did. */
            disabled_reason: string | null;
            /** @description Since when every delivery to it has failed; it is disabled after five days. */
            failing_since: string | null;
            /** @description Signing secret (Standard Webhooks); shown at creation and rotation only. */
            secret: string | null;
            /** @description Number of edits; over REST the ETag begins with it. */
            version: number;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description RFC 3339, UTC.
             */
            updated_at: string;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type UsherWebhook = components['schemas']['UsherWebhook'];
export type Order = components['schemas']['Order'];
export type Attendee = components['schemas']['Attendee'];
export type AttendeeOrder = components['schemas']['AttendeeOrder'];
export type AttendeeTicketType = components['schemas']['AttendeeTicketType'];
export type AttendeeTicketEmail = components['schemas']['AttendeeTicketEmail'];
export type Payment = components['schemas']['Payment'];
export type Refund = components['schemas']['Refund'];
export type NotificationData = components['schemas']['NotificationData'];
export type NotificationDataCheckIn = components['schemas']['NotificationDataCheckIn'];
export type NotificationDataCheckInCheckInPoint = components['schemas']['NotificationDataCheckInCheckInPoint'];
export type Event = components['schemas']['Event'];
export type EventVenue = components['schemas']['EventVenue'];
export type NotificationDataEmail = components['schemas']['NotificationDataEmail'];
export type TicketType = components['schemas']['TicketType'];
export type WaitingListEntry = components['schemas']['WaitingListEntry'];
export type WaitingListEntryTicketType = components['schemas']['WaitingListEntryTicketType'];
export type WebhookEndpoint = components['schemas']['WebhookEndpoint'];
