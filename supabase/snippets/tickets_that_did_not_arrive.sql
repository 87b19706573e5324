-- Correct the address of the attendee, then queue the ticket once more:
--   update attendees set email = '…', ticket_email_status = 'queued' where id = '…';
select event, name, email, ticket_email_status, error from undelivered_tickets;
