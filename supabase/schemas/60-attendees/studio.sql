-- The codes of tickets, and tickets that did not arrive, for organisers. The view has the rights of whoever reads it: see
-- 20-events/studio.sql.

-- Ticket codes admit their holders, so no column of them is granted to members: viewers must not see them. Security definer: it reads what
-- members may not, and checks the role itself.
create function public.ticket_codes(event_id uuid)
returns table (
  attendee_id uuid, name text, company text, ticket_type text, status public.attendee_status, checked_in_at timestamptz, ticket_code text,
  ticket_path text
)
language plpgsql stable security definer set search_path = ''
as $$
begin
  if private.claims() ->> 'role' = 'authenticated' and not exists (
    select from public.events e
    where e.id = ticket_codes.event_id and e.organisation_id in (select private.organisations_as('{owner,manager,door}'))
  ) then
    perform private.refuse_not_found('event_id');
  end if;
  return query
  select
    a.id, a.name, a.company, t.name, a.status, a.checked_in_at, a.ticket_code,
    case when a.erased_at is null then '/t/' || a.ticket_token end
  from public.attendees a
  join public.ticket_types t on t.id = a.ticket_type_id
  where a.event_id = ticket_codes.event_id and a.status <> 'cancelled'
  order by lower(a.name), a.id;
end
$$;
comment on function public.ticket_codes is 'Expected guests of an event by name, with ticket codes and ticket-page paths. For owners, managers and the door.';
revoke all on function public.ticket_codes from public, anon, service_role;
grant execute on function public.ticket_codes to authenticated;

create view public.undelivered_tickets with (security_invoker = true) as
select
  a.name,
  a.email,
  a.ticket_email_status,
  a.ticket_email_last_error as error,
  a.ticket_email_sent_at as sent_at,
  e.name as event,
  a.event_id,
  a.id as attendee_id,
  a.organisation_id
from public.attendees a
join public.events e on e.id = a.event_id
where (a.ticket_email_status in ('bounced', 'failed') or a.ticket_email_status = 'queued' and a.ticket_email_last_error is not null)
  and a.status <> 'cancelled'
order by a.event_id, lower(a.name), a.id;
comment on view public.undelivered_tickets is 'Tickets whose e-mail did not arrive, with the reason, including those still being retried.';
comment on column public.undelivered_tickets.name is 'Name of the person.';
comment on column public.undelivered_tickets.email is 'Address the ticket was sent to.';
comment on column public.undelivered_tickets.ticket_email_status is 'bounced, failed, or queued for another attempt.';
comment on column public.undelivered_tickets.error is 'Why it failed or bounced.';
comment on column public.undelivered_tickets.sent_at is 'When it was last sent.';
comment on column public.undelivered_tickets.event is 'Name of the event.';
comment on column public.undelivered_tickets.event_id is 'The event. Filter by it.';
comment on column public.undelivered_tickets.attendee_id is 'The attendee.';
comment on column public.undelivered_tickets.organisation_id is 'The organisation it belongs to.';
select private.keep_view('public.undelivered_tickets');

revoke all on public.undelivered_tickets from anon, authenticated, service_role;
grant select on public.undelivered_tickets to authenticated;

-- The id of an attendee: see 20-events/studio.sql.
create function public.the_attendee(email text, event_slug text default null) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  return private.only_one(
    array(
      with found as (
        select a.id, a.status <> 'cancelled' as stands from public.attendees a
        where a.email_lower = lower(btrim(the_attendee.email))
          and (event_slug is null or a.event_id = public.the_event(event_slug))
      )
      -- Whoever cancelled and registered again has one ticket.
      select f.id from found f where f.stands or not exists (select from found f where f.stands) limit 2
    ),
    'There is no attendee with this e-mail address.', 'Several attendees have this e-mail address.', 'email'
  );
end
$$;
comment on function public.the_attendee is
  'The id of the attendee with this e-mail address, at the event with this slug or at any. A valid ticket comes before cancelled ones. Refuses no match and several.';
revoke all on function public.the_attendee from public, anon, service_role;
grant execute on function public.the_attendee to authenticated;
