-- Erases name, e-mail address and all other personal fields, here and in every log. Figures, money and the ticket stay.
select erase_attendee((select id from attendees where email = 'who@example.com' limit 1));
