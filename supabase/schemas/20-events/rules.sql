-- The rules of events: what a row may be and become, one trigger for each. They fire in the order of their names:
--   100 a new event is a draft and has a slug; one with orders is not deleted, a draft goes with what belongs to it
--   120 the status: from where to where, what an event needs that is published, and its timestamps
--   130 currency, capacity, time zone; values that another event has (private.keep_table)
--   600 a registration page has a key
-- Status, currency and capacity change under the event lock, which registrations hold shared: none is in flight while their rules count.
-- What a value must be by itself the constraints of 20-events/table.sql say. Security definer is what counts orders and tickets, which
-- the editing role may not be allowed to read.

create function private.refuse_transition("from" public.event_status, "to" public.event_status) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'invalid_transition', 'An event cannot change from its current status to this one.', 'status',
    jsonb_build_object('from', "from", 'to', "to"),
    'Allowed: draft to published; published to draft, cancelled or completed; completed to published until its end.'
  );
end
$$;
grant execute on function private.refuse_transition to scope_events_write;

-- No ticket is issued for an event that has ended, and none is published.
create function private.refuse_ended(param text, ends_at timestamptz) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'event_ended', 'The event has ended.', param, jsonb_build_object('ends_at', private.rfc3339(ends_at)),
    'Give the event a later ends_at first.'
  );
end
$$;

-- Checked for a new order, and for each place that is taken.
create function private.assert_takes_registrations(event public.events) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if event.status <> 'published' then
    perform private.refuse(
      409, 'event_not_published', 'Guests can be registered only while the event is published.', 'event_id',
      jsonb_build_object('status', event.status), 'Publish the event first; a cancelled or completed event stays closed.'
    );
  elsif event.ends_at <= now() then
    perform private.refuse_ended('event_id', event.ends_at);
  end if;
end
$$;

-- A name in the letters of a slug: "Köln" is koeln, and "Ærø" aeroe. Where two dots only part vowels, as in Noël and reünie, they go.
create function private.slug_form(name text, locale public.locale) returns text
language plpgsql immutable set search_path = ''
as $$
declare
  v_letters text[] := '{{ø,oe},{Ø,oe}}';
  v_letter text[];
begin
  name := normalize(name, nfc);
  if locale not in ('fr', 'es', 'nl') then
    v_letters := v_letters || '{{ä,ae},{Ä,ae},{ö,oe},{Ö,oe},{ü,ue},{Ü,ue}}'::text[];
  end if;
  foreach v_letter slice 1 in array v_letters loop
    name := replace(name, v_letter[1], v_letter[2]);
  end loop;
  return trim(both '-' from left(trim(both '-' from regexp_replace(private.search_form(name), '[^a-z0-9]+', '-', 'g')), 90));
end
$$;

-- The slug of a name, with six random characters appended where another event has it.
create function private.tg_events__slug() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  new.slug := coalesce(nullif(private.slug_form(new.name, new.locale), ''), 'event');
  if exists (select from public.events e where e.organisation_id = new.organisation_id and e.slug = new.slug) then
    new.slug := new.slug || '-' || lower(private.random_code(6));
  end if;
  return new;
end
$$;
create trigger events_100_slug before insert on public.events
  for each row when (new.slug is null) execute function private.tg_events__slug();

create function private.tg_events__starts_as_a_draft() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.status <> 'draft' then
    perform private.refuse(
      409, 'invalid_transition', 'An event starts as a draft.', 'status',
      hint => 'Add dates and a ticket type, then publish it.', "row" => to_jsonb(new)
    );
  end if;
  perform private.refuse(
    409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', t.key,
    hint => 'Set the status later instead.', "row" => to_jsonb(new)
  )
  from jsonb_each(to_jsonb(new)) t
  where t.key in ('published_at', 'cancelling_since', 'cancelled_at', 'completed_at') and t.value <> 'null';
  return new;
end
$$;
create trigger events_100_starts_as_a_draft before insert on public.events
  for each row when (
    new.status <> 'draft' or num_nonnulls(new.published_at, new.cancelling_since, new.cancelled_at, new.completed_at) > 0
  )
  execute function private.tg_events__starts_as_a_draft();

-- Only a draft without orders is deleted. The row is locked, and a draft takes nobody, so no order is being made meanwhile.
create function private.tg_events__is_deletable() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- What belongs to it is gone then.
  if private.is_deleted_wholly(old.organisation_id) then
    return old;
  elsif exists (select from public.orders o where o.event_id = old.id) then
    perform private.refuse(
      409, 'in_use', 'The event is in use: it has orders.',
      hint => case
        when old.status in ('draft', 'published') then 'Cancel it instead: set its status to cancelled.'
        else 'Keep it: its orders must remain available.'
      end, "row" => to_jsonb(old)
    );
  elsif old.status <> 'draft' then
    perform private.refuse(
      409, 'in_use', 'The event is in use: only a draft can be deleted.', 'status', jsonb_build_object('status', old.status),
      case old.status
        when 'published' then 'Unpublish it first, or cancel it.'
        when 'completed' then 'Keep it. Until its end it can be published again, then unpublished.'
        else 'Keep it: a cancelled event must remain available.'
      end, "row" => to_jsonb(old)
    );
  elsif exists (select from public.check_ins c where c.event_id = old.id) then
    perform private.refuse(
      409, 'in_use', 'The event is in use: it has scans, and the door log is kept.',
      hint => 'Keep the draft, or publish and then cancel it.', "row" => to_jsonb(old)
    );
  end if;
  return old;
end
$$;
create trigger events_100_deletable before delete on public.events
  for each row execute function private.tg_events__is_deletable();

-- A draft is deleted with all that was set up for it.
create function private.tg_events__delete_belongings() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  -- People who wait are taken off the list first, as anybody is.
  update public.waiting_list_entries w set status = 'cancelled' where w.event_id = old.id and w.status in ('waiting', 'offered');
  -- The audit trail forgets them, as when an entry is purged.
  update public.audit_entries e set changes = e.changes - array(select jsonb_object_keys(private.erased_fields()))
  from public.waiting_list_entries w
  where w.event_id = old.id and e.object_id = w.id and e.changes is not null;
  delete from public.waiting_list_entries w where w.event_id = old.id;
  delete from public.questions q where q.event_id = old.id;
  delete from public.check_in_points p where p.event_id = old.id;
  delete from public.promo_codes c where c.event_id = old.id;
  delete from public.ticket_types t where t.event_id = old.id;
  return old;
end
$$;
create trigger events_110_delete_belongings before delete on public.events
  for each row execute function private.tg_events__delete_belongings();

create function private.tg_events__transition() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.lock_event_exclusive(new.id);
  if (old.status, new.status) not in (
    ('draft', 'published'), ('published', 'draft'), ('published', 'cancelled'), ('published', 'completed'), ('completed', 'published')
  ) then
    perform private.refuse_transition(old.status, new.status);
  elsif new.status = 'draft' and exists (select from public.orders o where o.event_id = new.id) then
    perform private.refuse(
      409, 'event_has_orders', 'An event with orders cannot become a draft again.', 'status',
      hint => 'To close registration, set sales_end_at of its ticket types, or complete the event. Cancelling is permanent.',
      "row" => to_jsonb(new)
    );
  elsif new.status = 'published' and num_nonnulls(new.starts_at, new.ends_at) < 2 then
    perform private.refuse(
      409, 'event_not_publishable', 'An event needs a start and an end before it is published.', 'starts_at',
      hint => 'Set starts_at and ends_at first.', "row" => to_jsonb(new)
    );
  elsif new.status = 'published' and new.ends_at <= now() then
    perform private.refuse_ended('ends_at', new.ends_at);
  -- Of an event that is published again all may be archived, as they may be while it is published.
  elsif old.status = 'draft' and not exists (select from public.ticket_types t where t.event_id = new.id and t.status = 'active') then
    perform private.refuse(
      409, 'event_not_publishable', 'An event needs an active ticket type before it is published.', 'ticket_types',
      hint => 'Add a ticket type first.', "row" => to_jsonb(new)
    );
  end if;
  new.published_at := case when new.status = 'draft' then null when old.status = 'draft' then now() else old.published_at end;
  new.cancelling_since := case when new.status = 'published' then old.cancelling_since end;
  new.cancelled_at := case when new.status = 'cancelled' then now() end;
  new.completed_at := case when new.status = 'completed' then now() end;
  return new;
end
$$;
create trigger events_120_transition before update on public.events
  for each row when (new.status <> old.status) execute function private.tg_events__transition();

-- One that stays is not checked: currencies are withdrawn.
create function private.tg_events__currency() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if new.currency is not distinct from old.currency then
    return new;
  elsif tg_op = 'UPDATE' then
    perform private.lock_event_exclusive(new.id);
    if exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(409, 'event_has_orders', 'The currency of an event with orders is fixed.', 'currency', "row" => to_jsonb(new));
    end if;
  end if;
  if not private.is_currency(new.currency) then
    perform private.refuse_value(
      'currency', 'This is not a current ISO 4217 currency.', 'Write its three capital letters, such as EUR.', "row" => to_jsonb(new)
    );
  end if;
  return new;
end
$$;
create trigger events_130_currency before insert or update of currency on public.events
  for each row execute function private.tg_events__currency();

-- One that stays is not checked: it may be from before the rule.

create function private.tg_events__capacity() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.lock_event_exclusive(new.id);
  -- A raised quantity is offered to the waiting list without the event lock.
  perform private.lock_event_capacity(new.id);
  if new.capacity > 0 and new.capacity < private.places_taken(new.id) then
    perform private.refuse(
      409, 'capacity_below_sold', 'The capacity cannot be less than the tickets already issued.', 'capacity',
      jsonb_build_object('places_taken', private.places_taken(new.id)), "row" => to_jsonb(new)
    );
  end if;
  return new;
end
$$;
create trigger events_130_capacity before update on public.events
  for each row when (new.capacity is distinct from old.capacity) execute function private.tg_events__capacity();

-- pg_timezone_names reads files, in some 20 ms, so a zone that another event has is accepted without it.
create function private.tg_events__timezone() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if new.timezone is distinct from old.timezone
    and not exists (select from public.events e where e.timezone = new.timezone)
    and not exists (select from pg_catalog.pg_timezone_names z where z.name = new.timezone) then
    perform private.refuse(
      422, 'validation_failed', 'The time zone is not an IANA time zone.', 'timezone', hint => 'Use a name such as Europe/Berlin.',
      "row" => to_jsonb(new)
    );
  end if;
  return new;
end
$$;
create trigger events_130_timezone before insert or update of timezone on public.events
  for each row execute function private.tg_events__timezone();

-- The key behind the registration page of an event, made when the page is switched on. One that was revoked stays so while the page is on: to open
-- the page again, switch it off and on.
create function private.tg_events__make_page_key() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'INSERT' or old.registration_page = 'off' then
    insert into public.api_keys (organisation_id, event_id, kind, name, prefix, scopes)
    values (new.organisation_id, new.id, 'page', 'Registration page', 'usher_page_' || lower(private.random_code(12)), '{attendees:write}')
    on conflict (event_id) where event_id is not null and revoked_at is null do nothing;
  end if;
  return null;
end
$$;
create trigger events_600_page_key after insert or update of registration_page on public.events
  for each row when (new.registration_page <> 'off') execute function private.tg_events__make_page_key();
