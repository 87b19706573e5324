-- What is sold and left of each ticket type, what it comes to, and who is in.
select event, ticket_type, price, sold, available, checked_in, ordered from event_sales;
