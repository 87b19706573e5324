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
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Order"];
        } | {
            /** @constant */
            type: "order.updated";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Order"];
        } | {
            /** @constant */
            type: "order.completed";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Order"];
        } | {
            /** @constant */
            type: "order.cancelled";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Order"];
        } | {
            /** @constant */
            type: "order.expired";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Order"];
        } | {
            /** @constant */
            type: "order.reopened";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Order"];
        } | {
            /** @constant */
            type: "attendee.created";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Attendee"];
        } | {
            /** @constant */
            type: "attendee.checked_in";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["NotificationData"];
        } | {
            /** @constant */
            type: "attendee.checked_out";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["NotificationData"];
        } | {
            /** @constant */
            type: "attendee.check_in_undone";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["NotificationData"];
        } | {
            /** @constant */
            type: "attendee.updated";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Attendee"];
        } | {
            /** @constant */
            type: "attendee.cancelled";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Attendee"];
        } | {
            /** @constant */
            type: "attendee.erased";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Attendee"];
        } | {
            /** @constant */
            type: "event.published";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Event"];
        } | {
            /** @constant */
            type: "event.updated";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Event"];
        } | {
            /** @constant */
            type: "event.cancelled";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Event"];
        } | {
            /** @constant */
            type: "payment.recorded";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Payment"];
        } | {
            /** @constant */
            type: "payment.voided";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Payment"];
        } | {
            /** @constant */
            type: "refund.recorded";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["Refund"];
        } | {
            /** @constant */
            type: "email.bounced";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["NotificationDataEmail"];
        } | {
            /** @constant */
            type: "ticket_type.sold_out";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["TicketType"];
        } | {
            /** @constant */
            type: "waiting_list_entry.created";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["WaitingListEntry"];
        } | {
            /** @constant */
            type: "waiting_list_entry.offered";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["WaitingListEntry"];
        } | {
            /** @constant */
            type: "waiting_list_entry.accepted";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["WaitingListEntry"];
        } | {
            /** @constant */
            type: "waiting_list_entry.expired";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["WaitingListEntry"];
        } | {
            /** @constant */
            type: "waiting_list_entry.cancelled";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
            data: components["schemas"]["WaitingListEntry"];
        } | {
            /** @constant */
            type: "webhook_endpoint.test";
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description false: of a test organisation. */
            livemode: boolean;
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
            /** @description Prices of its valid tickets, in minor units; for a cancelled order, before cancellation. */
            subtotal: number;
            /** @description Discounts of the same tickets, in minor units. */
            discount_total: number;
            /** @description subtotal minus discount_total. */
            total: number;
            /** @description Sum of the payments that are not voided, in minor units. */
            amount_paid: number;
            /** @description total - amount_paid + amount_refunded; at least 0, and 0 for a cancelled order. */
            amount_due: number;
            /** @description Sum of the refunds, in minor units. */
            amount_refunded: number;
            /** @description Amount retained after cancellations, in minor units. */
            amount_retained: number;
            /** @description Paid beyond the total, neither refunded nor retained, in minor units. */
            amount_refundable: number;
            /** @description Payment method of the order; null: complimentary. Each payment has its own method. */
            payment_method: ("invoice" | "bank_transfer" | "card" | "cash" | "other") | null;
            /** @description Deadline after which an unpaid order expires; null: none. */
            payment_due_at: string | null;
            /** @description When the buyer was last reminded; null again after payment_due_at changes. */
            payment_reminded_at: string | null;
            promo_code: string | null;
            /** @enum {string} */
            source: "api" | "mcp" | "studio" | "page";
            attendees: components["schemas"]["Attendee"][];
            payments: components["schemas"]["Payment"][];
            refunds: components["schemas"]["Refund"][];
            completed_at: string | null;
            cancelled_at: string | null;
            /** @description Reason of the cancellation; expired: not paid by payment_due_at. */
            cancellation_reason: ("requested" | "expired" | "event_cancelled") | null;
            /** @description Your own identifier. */
            external_id: string | null;
            /** @description Your own flat JSON object, at most 50 keys. */
            metadata: {
                [key: string]: string | number | boolean | null;
            };
            /** @description Number of edits; the ETag over REST begins with it. */
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
            /** @description Content of the QR code, for check_in. null in answers to orders:read and orders:write. */
            ticket_code: string | null;
            /** @description Ticket page for the holder, a secret as ticket_code is. null in webhooks, and where ticket_code is null. */
            ticket_url: string | null;
            checked_in_at: string | null;
            /** @description Checked in without a later exit scan, on any day. */
            inside: boolean;
            ticket_email: components["schemas"]["AttendeeTicketEmail"];
            cancelled_at: string | null;
            /** @description When the personal data was erased. */
            erased_at: string | null;
            /** @description Your own identifier. */
            external_id: string | null;
            /** @description Your own flat JSON object, at most 50 keys. */
            metadata: {
                [key: string]: string | number | boolean | null;
            };
            /** @description By key of the question. Those of sensitive questions only in list_attendees and get_attendee. */
            answers: {
                [key: string]: unknown;
            };
            /** @description Keys of required questions without an answer. */
            unanswered: string[];
            /** @description Number of edits; the ETag over REST begins with it. */
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
            source: "api" | "mcp" | "studio" | "page";
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
            /** @description When it was voided. A voided payment does not count. */
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
            source: "api" | "mcp" | "studio" | "page";
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
            /** @description Content of the QR code, for check_in. null in answers to orders:read and orders:write. */
            ticket_code: string | null;
            /** @description Ticket page for the holder, a secret as ticket_code is. null in webhooks, and where ticket_code is null. */
            ticket_url: string | null;
            checked_in_at: string | null;
            /** @description Checked in without a later exit scan, on any day. */
            inside: boolean;
            ticket_email: components["schemas"]["AttendeeTicketEmail"];
            cancelled_at: string | null;
            /** @description When the personal data was erased. */
            erased_at: string | null;
            /** @description Your own identifier. */
            external_id: string | null;
            /** @description Your own flat JSON object, at most 50 keys. */
            metadata: {
                [key: string]: string | number | boolean | null;
            };
            /** @description By key of the question. Those of sensitive questions only in list_attendees and get_attendee. */
            answers: {
                [key: string]: unknown;
            };
            /** @description Keys of required questions without an answer. */
            unanswered: string[];
            /** @description Number of edits; the ETag over REST begins with it. */
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
            /** @description The organiser's own words for guests by language, in Markdown, in ticket e-mails and on their pages. */
            guest_notes: {
                [key: string]: string;
            };
            /** @enum {string} */
            status: "draft" | "published" | "cancelled" | "completed";
            /**
             * @description The current time relative to starts_at and ends_at; always upcoming for a draft.
             * @enum {string}
             */
            phase: "upcoming" | "ongoing" | "ended";
            starts_at: string | null;
            ends_at: string | null;
            /** @description IANA time zone of the event. */
            timezone: string;
            /**
             * @description Language of e-mails and pages for guests.
             * @enum {string}
             */
            locale: "en" | "de" | "fr" | "es" | "nl";
            venue: components["schemas"]["EventVenue"] | null;
            online_url: string | null;
            /** @description Places over all ticket types; null: no limit. */
            capacity: number | null;
            /** @description Hours for which a waiting-list offer holds a place. */
            waiting_list_offer_hours: number;
            /** @description What guests may do by the link in their e-mails: correct (name, company), answer (change answers), give_back, pass_on. */
            guests_may: ("correct" | "answer" | "give_back" | "pass_on")[];
            /** @description When that ends; null: give_back and pass_on at starts_at, the others at ends_at. */
            guests_may_until: string | null;
            /**
             * @description Page where guests register themselves; by_link: not listed by search engines.
             * @enum {string}
             */
            registration_page: "off" | "by_link" | "public";
            /** @description Its address; null: off. */
            registration_url: string | null;
            /** @description ISO 4217. */
            currency: string;
            /** @description Days until an unpaid order expires; null: no deadline. */
            payment_due_days: number | null;
            published_at: string | null;
            /** @description Set while the requested cancellation of a large event is pending. */
            cancelling_since: string | null;
            cancelled_at: string | null;
            completed_at: string | null;
            /** @description Your own identifier. */
            external_id: string | null;
            /** @description Your own flat JSON object, at most 50 keys. */
            metadata: {
                [key: string]: string | number | boolean | null;
            };
            /** @description Number of edits; the ETag over REST begins with it. */
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
             * @description Kind of e-mail.
             * @enum {string}
             */
            kind: "ticket" | "order_confirmation" | "payment_received" | "payment_voided" | "payment_reminder" | "order_expired" | "order_cancelled" | "event_changed" | "event_cancelled" | "ticket_cancelled" | "ticket_passed_on" | "waiting_list_offer" | "waiting_list_cancelled" | "answers_reminder" | "organiser_message";
            /**
             * Format: uuid
             * @description Identifier of the event.
             */
            event_id: string;
            /** @description null: a waiting-list offer. */
            order_id: string | null;
            /** @description null: to the buyer. */
            attendee_id: string | null;
            /** @description For a waiting-list offer. */
            waiting_list_entry_id: string | null;
            /** @description The undeliverable address. */
            to: string;
            /**
             * @description bounced: returned later. failed: refused when it was sent.
             * @enum {string}
             */
            status: "bounced" | "failed";
            sent_at: string | null;
            /** @description Report of the mail service. */
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
            /** @description Number of tickets; null: unlimited. */
            quantity: number | null;
            quantity_sold: number;
            /** @description Places held for waiting-list offers. */
            quantity_held: number;
            /** @description Tickets left, within the event's capacity; null: unlimited. */
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
            /** @description Your own identifier. */
            external_id: string | null;
            /** @description Your own flat JSON object, at most 50 keys. */
            metadata: {
                [key: string]: string | number | boolean | null;
            };
            /** @description Number of edits; the ETag over REST begins with it. */
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
            /** @description Position on the waiting list of the ticket type, from 1; null unless waiting. */
            position: number | null;
            offered_at: string | null;
            /** @description Deadline of the offer. */
            offer_expires_at: string | null;
            /** @description The order of the accepted offer. */
            order_id: string | null;
            /** @description The attendee of the accepted offer. */
            attendee_id: string | null;
            /** @description Your own identifier. */
            external_id: string | null;
            /** @description Your own flat JSON object, at most 50 keys. */
            metadata: {
                [key: string]: string | number | boolean | null;
            };
            /** @description Number of edits; the ETag over REST begins with it. */
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
            /** @description Types it is subscribed to; *: every type. */
            types: ("*" | "order.created" | "order.updated" | "order.completed" | "order.cancelled" | "order.expired" | "order.reopened" | "attendee.created" | "attendee.checked_in" | "attendee.checked_out" | "attendee.check_in_undone" | "attendee.updated" | "attendee.cancelled" | "attendee.erased" | "event.published" | "event.updated" | "event.cancelled" | "payment.recorded" | "payment.voided" | "refund.recorded" | "email.bounced" | "ticket_type.sold_out" | "waiting_list_entry.created" | "waiting_list_entry.offered" | "waiting_list_entry.accepted" | "waiting_list_entry.expired" | "waiting_list_entry.cancelled")[];
            /** @description Send only notifications of these events; empty: all events. */
            event_ids: string[];
            /** @enum {string} */
            status: "enabled" | "disabled";
            /** @description Why Usher disabled it; null if a person did. */
            disabled_reason: string | null;
            /** @description Start of continuous failure; after five days the endpoint is disabled. */
            failing_since: string | null;
            /** @description Signing secret (Standard Webhooks); shown at creation and rotation only. */
            secret: string | null;
            /** @description Number of edits; the ETag over REST begins with it. */
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
