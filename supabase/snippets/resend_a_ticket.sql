-- Sends a ticket once more. Where the address was wrong, correct it in the same statement: email = '…'.
update attendees set ticket_email_status = 'queued' where id = the_attendee('who@example.com', 'my-event')
returning name, email, ticket_email_status;
