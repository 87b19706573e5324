-- Who has switched off the news of an event, its changes and messages: an address at an event, so that the next event begins anew. What is needed to
-- come, to pay or to stay away is sent all the same. The link of an e-mail switches off and does nothing else; the ticket page does both.

-- The kinds that whoever gets them can switch off.
create function private.can_be_switched_off(kind public.email_kind) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return kind in ('event_changed', 'organiser_message');
end
$$;

create table public.email_opt_outs (
  email text not null,
  event_id uuid not null,
  created_at timestamptz not null default now(),
  organisation_id uuid not null,
  email_lower text not null generated always as (lower(email)) stored,
  constraint email_opt_outs_pkey primary key (event_id, email_lower),
  constraint email_opt_outs_event_id_fkey foreign key (event_id) references public.events (id) on delete cascade,
  constraint email_opt_outs_organisation_id_fkey foreign key (organisation_id) references public.organisations (id) on delete cascade,
  constraint email_opt_outs_email_is_an_address check (private.is_email_address(email))
);
comment on table public.email_opt_outs is 'Addresses that opted out of news of an event: changes and messages. Only the recipient can opt in again, on the ticket page.';
comment on column public.email_opt_outs.email is 'The address.';
comment on column public.email_opt_outs.event_id is 'The event.';
comment on column public.email_opt_outs.created_at is 'When the e-mails were switched off.';
comment on column public.email_opt_outs.organisation_id is 'The organisation of the event. Kept by Usher.';
comment on column public.email_opt_outs.email_lower is 'Internal: the address in lower case, for look-ups. Generated.';
create index email_opt_outs_organisation_id_email_lower_idx on public.email_opt_outs (organisation_id, email_lower);

-- The row goes with the last ticket that has the address: see private.tg_attendees__forget_opt_out.
insert into private.personal_columns (table_name, column_name, erased_as, field)
values ('email_opt_outs', 'email', '"erased@erased.invalid"', null);

select private.keep_table('public.email_opt_outs', required => '{event_id,email}', derived => null);

-- A row goes with the last ticket of its address, so there is none without: an erasure would leave it. `for share` waits for one.
create function private.tg_email_opt_outs__assert_ticket() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  new.organisation_id := (select e.organisation_id from public.events e where e.id = new.event_id);
  if new.organisation_id is null then
    perform private.refuse_not_found('event_id');
  end if;
  perform from public.attendees a
  where a.organisation_id = new.organisation_id and a.email_lower = lower(new.email) and a.event_id = new.event_id
  order by a.id
  limit 1
  for share;
  if not found then
    perform private.refuse_value('email', 'No ticket of this event has this address.', 'Copy the address from attendees.');
  end if;
  return new;
end
$$;
create trigger email_opt_outs_100_ticket before insert on public.email_opt_outs
  for each row execute function private.tg_email_opt_outs__assert_ticket();

-- In Studio an organiser may note what a guest says on the telephone, and not take it back: that is for the guest to say.
create function private.tg_email_opt_outs__refuse_switch_on() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'read_only_field', 'Only the recipient can switch these e-mails on again.', 'email',
    hint => 'They can do so on their ticket page.'
  );
end
$$;
create trigger email_opt_outs_100_switch_on before update or delete on public.email_opt_outs
  for each row when (private.is_typed() and current_setting('usher.switches_on', true) is distinct from 'on')
  execute function private.tg_email_opt_outs__refuse_switch_on();

create policy email_opt_outs_select_membership on public.email_opt_outs for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.email_opt_outs to authenticated;

create function private.has_opted_out(attendee public.attendees) returns boolean
language plpgsql stable set search_path = ''
as $$
begin
  return exists (
    select from public.email_opt_outs u where u.event_id = attendee.event_id and u.email_lower = attendee.email_lower
  );
end
$$;

-- The ticket by which an address is meant. A new ticket code leaves the link as it is; another address or an erasure ends it.
create function private.opt_out_token(attendee public.attendees) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return private.link_token(attendee.id, attendee.id::text, attendee.email_lower);
end
$$;

create function private.attendee_of_opt_out(token text) returns public.attendees
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee from public.attendees a where a.id = private.id_of_link(token) and a.erased_at is null;
  return case when private.opt_out_token(v_attendee) = token then v_attendee end;
end
$$;

-- Security definer, these three: the gateway may read no table.
create function api.get_opt_out(token text) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'organisation', private.look_of(g),
      'event', private.event_json(e),
      'emails', not private.has_opted_out(a)
    )
    from private.attendee_of_opt_out(token) a
    join public.events e on e.id = a.event_id
    join public.organisations g on g.id = e.organisation_id
  );
end
$$;
comment on function api.get_opt_out is
  'Content of the opt-out page of a link: { organisation, event, emails }. null if the link is not valid. For the gateway.';
grant execute on function api.get_opt_out to gateway;

create function api.opt_out(token text) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_attendee public.attendees := private.attendee_of_opt_out(token);
begin
  if v_attendee.id is not null then
    insert into public.email_opt_outs (event_id, email) values (v_attendee.event_id, v_attendee.email) on conflict do nothing;
  end if;
  return api.get_opt_out(token);
end
$$;
comment on function api.opt_out is 'Switches off news of an event by an opt-out link. Answers as api.get_opt_out. For the gateway.';
grant execute on function api.opt_out to gateway;

-- By the page of a ticket its holder switches the news off, and on again. False where no ticket has the token.
create function api.switch_ticket_emails(token text, emails boolean) returns boolean
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee from public.attendees a where a.ticket_token = switch_ticket_emails.token and a.erased_at is null;
  if v_attendee.id is null then
    return false;
  elsif emails then
    delete from public.email_opt_outs u where u.event_id = v_attendee.event_id and u.email_lower = v_attendee.email_lower;
  else
    insert into public.email_opt_outs (event_id, email) values (v_attendee.event_id, v_attendee.email) on conflict do nothing;
  end if;
  return true;
end
$$;
comment on function api.switch_ticket_emails is
  'Switches news of the event for the address of a ticket off or on. Returns whether there is such a ticket. For the gateway.';
grant execute on function api.switch_ticket_emails to gateway;
