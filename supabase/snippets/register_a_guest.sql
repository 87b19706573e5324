-- Registers a guest: an order with its ticket, which is e-mailed. With payment_method 'invoice' it has its price, and is to be paid.
insert into registrations (event_id, ticket_type_id, name, email, company, payment_method)
values (
  the_event('my-event'), the_ticket_type('my-event', 'My ticket type'), 'Mary Jackson', 'mary@example.com', null, null
)
returning reference, attendee_id;
