-- Whose ticket bounced or failed, and why: to send one again, resend_a_ticket.
select event, name, email, ticket_email_status, error from undelivered_tickets;
