-- Who is expected, with ticket codes: keep it among the people at the door.
select name, company, ticket_type, status, checked_in_at, ticket_code
from ticket_codes(the_event('my-event'));
