-- Whose ticket bounced or failed, or is queued and tried again, and why: to send one at once, resend_a_ticket.
select event, name, email, ticket_email_status, error from undelivered_tickets;
