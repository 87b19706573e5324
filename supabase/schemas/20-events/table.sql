-- Events: draft -> published -> cancelled | completed; back to draft only while there is no order, and from completed back to published
-- until the end. A draft may be deleted.

create type public.event_status as enum ('draft', 'published', 'cancelled', 'completed');
-- The current time relative to the event; worked out, never stored. A draft is upcoming, whatever its dates: nothing takes place before
-- it is published.
create type public.event_phase as enum ('upcoming', 'ongoing', 'ended');
-- The languages of guests: the same as in src/operations/locales.ts.
create type public.locale as enum ('en', 'de', 'fr', 'es', 'nl');

create table public.events (
  name text not null,
  slug text not null,
  status public.event_status not null default 'draft',
  starts_at timestamptz,
  ends_at timestamptz,
  timezone text not null default 'UTC',
  capacity integer,
  venue_name text,
  venue_address text,
  venue_city text,
  venue_postcode text,
  venue_country text,
  online_url text,
  description text,
  locale public.locale not null default 'en',
  currency text not null default 'EUR',
  payment_due_days integer,
  waiting_list_offer_hours integer not null default 24,
  published_at timestamptz,
  cancelling_since timestamptz,
  cancelled_at timestamptz,
  completed_at timestamptz,
  external_id text,
  metadata jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  version integer not null default 1,
  constraint events_pkey primary key (id),
  constraint events_id_organisation_id_key unique (id, organisation_id),
  constraint events_organisation_id_fkey foreign key (organisation_id) references public.organisations (id),
  constraint events_name_is_one_line check (private.is_one_line(name, 200)),
  constraint events_slug_is_a_slug check (slug ~ '^[a-z0-9]([a-z0-9-]{0,98}[a-z0-9])?$'),
  constraint events_description_is_bounded check (length(description) <= 20000),
  constraint events_starts_at_and_ends_at_are_finite check (
    starts_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and ends_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint events_ends_at_is_after_starts_at check (ends_at > starts_at),
  constraint events_starts_at_and_ends_at_are_set_unless_draft check (status = 'draft' or (starts_at is not null and ends_at is not null)),
  constraint events_venue_is_bounded check (
    length(venue_name) <= 200 and length(venue_address) <= 500
    and length(venue_city) <= 200 and length(venue_postcode) <= 20
  ),
  constraint events_venue_country_is_iso_3166 check (venue_country ~ '^[A-Z]{2}$'),
  constraint events_online_url_is_http check (online_url ~ '^https?://[^[:space:]]+$' and length(online_url) <= 2000),
  constraint events_capacity_is_positive check (capacity > 0),
  constraint events_waiting_list_offer_hours_are_some check (waiting_list_offer_hours between 1 and 720),
  constraint events_currency_is_iso_4217 check (currency ~ '^[A-Z]{3}$'),
  constraint events_payment_due_days_is_1_to_365 check (payment_due_days between 1 and 365),
  constraint events_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint events_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on table public.events is 'Events that people attend. A draft until it has dates and a ticket type and is published.';
comment on column public.events.name is 'Name for people.';
comment on column public.events.slug is 'Short name for addresses: up to 100 lower-case letters, digits and, inside, hyphens; made from the name when left out.';
comment on column public.events.status is 'draft, published, then cancelled or completed; a completed one may be published again until its end. A draft without orders can be deleted.';
comment on column public.events.starts_at is 'When it starts. Needed to publish.';
comment on column public.events.ends_at is 'When it ends. Needed to publish.';
comment on column public.events.timezone is 'IANA name of the zone the event is held in, such as Europe/Berlin.';
comment on column public.events.capacity is 'How many people may hold a ticket, over all ticket types. Empty: only the quantities of the ticket types limit it.';
comment on column public.events.venue_name is 'Name of the place, up to 200 characters.';
comment on column public.events.venue_address is 'Street and number, up to 500 characters.';
comment on column public.events.venue_city is 'City, up to 200 characters.';
comment on column public.events.venue_postcode is 'Postcode, up to 20 characters.';
comment on column public.events.venue_country is 'ISO 3166 code, two capital letters such as DE.';
comment on column public.events.online_url is 'Where it is to be followed on the Internet: http or https, without a user name or password.';
comment on column public.events.description is 'Text for people, up to 20000 characters.';
comment on column public.events.locale is 'Language in which guests are written to.';
comment on column public.events.currency is 'ISO 4217. All prices and orders of the event are in it. A change leaves the numbers of prices and discounts as they are: change them, too. Fixed once there is an order.';
comment on column public.events.payment_due_days is 'How many days an order that is to be paid has until it expires, 1 to 365. Empty: no deadline. Counts for orders made from then on.';
comment on column public.events.waiting_list_offer_hours is 'For how many hours a place is held for whom the waiting list offers it, 1 to 720.';
comment on column public.events.published_at is 'When it was last published. Kept by Usher.';
comment on column public.events.cancelling_since is 'Since when the API is to cancel it: a large event is cancelled a little later, as a whole. Kept by Usher.';
comment on column public.events.cancelled_at is 'When it was cancelled. Kept by Usher.';
comment on column public.events.completed_at is 'When it was completed. Kept by Usher.';
comment on column public.events.external_id is 'Your own identifier, up to 255 characters, unique within the organisation.';
comment on column public.events.metadata is 'Flat JSON object of your own, at most 50 keys.';
comment on column public.events.created_at is 'When the row was added.';
comment on column public.events.updated_at is 'When the row was last changed. Kept by Usher.';
comment on column public.events.id is 'Identifier, a UUID of version 7: it holds the time of creation.';
comment on column public.events.organisation_id is 'The organisation that it belongs to.';
comment on column public.events.version is 'Number of edits; the ETag over REST. Kept by Usher.';

-- Partial indexes, whose columns Postgres does not count as keys: an edit of slug or external_id then does not take the row
-- lock that conflicts with the foreign keys of concurrent registrations.
create unique index events_organisation_id_slug_key on public.events (organisation_id, slug) where slug <> '';
create unique index events_organisation_id_external_id_key on public.events (organisation_id, external_id)
  where external_id is not null;

-- For private.page_of_events and private.page_of_events_by_start.
create index events_organisation_id_status_id_idx on public.events (organisation_id, status, id);
create index events_organisation_id_status_starts_at_idx
  on public.events (organisation_id, status, coalesce(starts_at, 'infinity'::timestamptz), id);

create function private.refuse_transition("from" public.event_status, "to" public.event_status) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'invalid_transition', 'An event cannot go from its present status to this one.', 'status',
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
      409, 'event_not_published', 'People can be registered only while the event is published.', 'event_id',
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
create function private.free_event_slug(organisation_id uuid, name text, locale public.locale) returns text
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_slug text := coalesce(nullif(private.slug_form(name, locale), ''), 'event');
begin
  if exists (
    select from public.events e where e.organisation_id = free_event_slug.organisation_id and e.slug = v_slug
  ) then
    v_slug := v_slug || '-' || lower(private.random_code(6));
  end if;
  return v_slug;
end
$$;

-- Security definer: it counts orders and tickets, which the editing role may not be allowed to read.
create function private.tg_events__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'INSERT' then
    new.slug := coalesce(new.slug, private.free_event_slug(new.organisation_id, new.name, new.locale));
    if new.status <> 'draft' then
      perform private.refuse(
        409, 'invalid_transition', 'An event starts as a draft.', 'status',
        hint => 'Add dates and a ticket type, then publish it.', "row" => to_jsonb(new)
      );
    end if;
  else
    -- Registrations hold the event lock shared: none is in flight during the checks below.
    if (new.status, new.capacity, new.currency) is distinct from (old.status, old.capacity, old.currency) then
      perform private.lock_event_exclusive(new.id);
    end if;

    -- Status transitions.
    if new.status <> old.status and (old.status, new.status) not in (
      ('draft', 'published'), ('published', 'draft'), ('published', 'cancelled'), ('published', 'completed'), ('completed', 'published')
    ) then
      perform private.refuse_transition(old.status, new.status);
    end if;

    if old.status = 'published' and new.status = 'draft'
      and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(
        409, 'event_has_orders', 'An event with orders cannot become a draft again.', 'status',
        hint => 'To close registration set sales_end_at of its ticket types, or complete the event. Cancelling it is for good.',
        "row" => to_jsonb(new)
      );
    end if;

    if old.status <> 'published' and new.status = 'published' then
      if new.starts_at is null or new.ends_at is null then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs a start and an end before it is published.', 'starts_at',
          hint => 'Set starts_at and ends_at first.', "row" => to_jsonb(new)
        );
      end if;
      if new.ends_at <= now() then
        perform private.refuse_ended('ends_at', new.ends_at);
      end if;
      -- Of an event that is published again all may be archived, as they may be while it is published.
      if old.status = 'draft' and not exists (select from public.ticket_types t where t.event_id = new.id and t.status = 'active') then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs an active ticket type before it is published.', 'ticket_types',
          hint => 'Add a ticket type first.', "row" => to_jsonb(new)
        );
      end if;
    end if;

    -- Currency and capacity, against what is sold already.
    if new.currency <> old.currency and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(409, 'event_has_orders', 'The currency of an event with orders is fixed.', 'currency', "row" => to_jsonb(new));
    end if;

    if new.capacity is distinct from old.capacity then
      -- A raised quantity is offered to the waiting list without the event lock.
      perform private.lock_event_capacity(new.id);
      if new.capacity > 0 and new.capacity < private.places_taken(new.id) then
        perform private.refuse(
          409, 'capacity_below_sold', 'The capacity cannot be less than the tickets already issued.', 'capacity',
          jsonb_build_object('places_taken', private.places_taken(new.id)), "row" => to_jsonb(new)
        );
      end if;
    end if;
  end if;

  -- Unique values. Row level security refuses a foreign row only after this trigger, so nothing is looked up for one: the
  -- answer would reveal values of another organisation.
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else (new.slug, new.external_id) is distinct from (old.slug, old.external_id) end)
    and not private.is_foreign(new.organisation_id) then
    perform private.refuse_taken('slug', e.id, e.created_at, e.xmin)
    from public.events e
    where e.organisation_id = new.organisation_id and e.slug = new.slug and e.slug <> '' and e.id <> new.id;
    perform private.refuse_taken('external_id', e.id, e.created_at, e.xmin)
    from public.events e
    where e.organisation_id = new.organisation_id and e.external_id = new.external_id and e.id <> new.id;
  end if;

  if tg_op = 'INSERT' or new.timezone <> old.timezone then
    -- pg_timezone_names reads files, in some 20 ms, so a zone that another event has is accepted without it.
    if not exists (select from public.events e where e.timezone = new.timezone)
      and not exists (select from pg_catalog.pg_timezone_names z where z.name = new.timezone) then
      perform private.refuse(
        422, 'validation_failed', 'The time zone is not an IANA time zone.', 'timezone', hint => 'Use a name such as Europe/Berlin.',
        "row" => to_jsonb(new)
      );
    end if;
  end if;

  -- A value that stays is not checked: a currency is withdrawn, and an address may be from before the rule.
  if (tg_op = 'INSERT' or new.currency <> old.currency) and not private.is_currency(new.currency) then
    perform private.refuse_value(
      'currency', 'The currency is not an ISO 4217 currency in use.', 'Write its three capital letters, such as EUR.', "row" => to_jsonb(new)
    );
  end if;
  if (tg_op = 'INSERT' or new.online_url is distinct from old.online_url) and not private.is_web_url(new.online_url) then
    perform private.refuse_value(
      'online_url',
      'An address begins with http:// or https://, has at most 2000 characters, no user name or password, and no invisible characters.',
      'Copy the address again, and leave out what stands before an @ in the name of the server.', "row" => to_jsonb(new)
    );
  end if;

  -- The timestamps follow the status.
  new.published_at := case
    when tg_op = 'INSERT' or new.status = 'draft' then null
    when old.status = 'draft' then now()
    else old.published_at
  end;
  if new.status <> 'published' then
    new.cancelling_since := null;
  end if;
  new.cancelled_at := case when new.status = 'cancelled' then case when old.status = 'cancelled' then old.cancelled_at else now() end end;
  new.completed_at := case when new.status = 'completed' then case when old.status = 'completed' then old.completed_at else now() end end;
  return new;
end
$$;

-- Deletes a draft with all that was set up for it. The row is locked, and a draft takes nobody, so no order is being made meanwhile.
-- Security definer: whoever deletes an event may not read orders, nor delete what belongs to it.
create function private.tg_events__delete() returns trigger
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
        else 'Leave it: its orders stay for those who look them up.'
      end, "row" => to_jsonb(old)
    );
  elsif old.status <> 'draft' then
    perform private.refuse(
      409, 'in_use', 'The event is in use: only a draft can be deleted.', 'status', jsonb_build_object('status', old.status),
      case old.status
        when 'published' then 'Take it back to draft first, or cancel it.'
        when 'completed' then 'Leave it; until its end it can be published again, and taken back to draft.'
        else 'Leave it: a cancelled event stays for those who look it up.'
      end, "row" => to_jsonb(old)
    );
  elsif exists (select from public.check_ins c where c.event_id = old.id) then
    perform private.refuse(
      409, 'in_use', 'The event is in use: tickets were scanned at it, and the log of the door is kept.',
      hint => 'Leave it a draft, or publish and cancel it.', "row" => to_jsonb(old)
    );
  end if;
  -- People who wait are taken off the list first, as anybody is.
  update public.waiting_list_entries w set status = 'cancelled' where w.event_id = old.id and w.status in ('waiting', 'offered');
  -- The audit trail forgets them, as when an entry is purged.
  update public.audit_entries e set changes = e.changes - array(select jsonb_object_keys(private.erased_fields()))
  from public.waiting_list_entries w
  where w.event_id = old.id and e.object_id = w.id and e.changes is not null;
  delete from public.waiting_list_entries w where w.event_id = old.id;
  delete from public.check_in_points p where p.event_id = old.id;
  delete from public.promo_codes c where c.event_id = old.id;
  delete from public.ticket_types t where t.event_id = old.id;
  return old;
end
$$;

create trigger events_010_blank_is_empty before insert or update on public.events
  for each row when (private.is_typed())
  execute function private.tg__take_blank_as_empty('name');
create trigger events_800_explain before insert or update on public.events
  for each row when (private.is_typed())
  execute function private.tg__explain_mistakes();
create trigger events_050_fill_organisation before insert on public.events
  for each row execute function private.tg__fill_organisation();
create trigger events_050_fixed before update of organisation_id on public.events
  for each row execute function private.tg__assert_unchanged('organisation_id');
create trigger events_050_derived_insert before insert on public.events
  for each row when (num_nonnulls(new.published_at, new.cancelled_at, new.completed_at) > 0)
  execute function private.tg__assert_derived_untouched('Set the status later instead.', 'published_at', 'cancelled_at', 'completed_at');
create trigger events_050_derived_update
  before update of published_at, cancelled_at, completed_at, version, created_at, updated_at on public.events
  for each row execute function private.tg__assert_derived_untouched(
    'Leave it as it is; the timestamps of an event follow its status.',
    'published_at', 'cancelled_at', 'completed_at', 'version', 'created_at', 'updated_at'
  );
create trigger events_050_cancelling before insert or update of cancelling_since on public.events
  for each row when (private.is_by_hand())
  execute function private.tg__assert_derived_untouched('To cancel the event set its status to cancelled.', 'cancelling_since');
create trigger events_100_delete before delete on public.events
  for each row execute function private.tg_events__delete();
create trigger events_100_guard before insert or update on public.events
  for each row execute function private.tg_events__guard();
create trigger events_300_name before insert or update of name on public.events
  for each row execute function private.tg__assert_name();
create trigger events_300_starts_at before update of starts_at on public.events
  for each row when (new.status <> 'draft' and new.starts_at is null)
  execute function private.tg__refuse_value('starts_at', 'Only a draft can be without a start.', 'Set another start instead.');
create trigger events_300_ends_at before update of ends_at on public.events
  for each row when (new.status <> 'draft' and new.ends_at is null)
  execute function private.tg__refuse_value('ends_at', 'Only a draft can be without an end.', 'Set another end instead.');
create trigger events_300_ends_at_is_after_starts_at before insert or update of starts_at, ends_at on public.events
  for each row when (new.ends_at <= new.starts_at)
  execute function private.tg__refuse_value('ends_at', 'An event ends after it starts.', 'Change starts_at and ends_at together.');
create trigger events_300_capacity before insert or update of capacity on public.events
  for each row when (new.capacity <= 0)
  execute function private.tg__refuse_value('capacity', 'A capacity is at least 1.', 'Leave it empty for no limit.');
create trigger events_300_waiting_list_offer_hours before insert or update of waiting_list_offer_hours on public.events
  for each row when (new.waiting_list_offer_hours not between 1 and 720)
  execute function private.tg__refuse_value('waiting_list_offer_hours', 'An offer of the waiting list is held for 1 to 720 hours.');
create trigger events_300_payment_due_days before insert or update of payment_due_days on public.events
  for each row when (new.payment_due_days not between 1 and 365)
  execute function private.tg__refuse_value('payment_due_days', 'A payment deadline is 1 to 365 days.', 'Leave it empty for no deadline.');
create trigger events_900_updated_at before update on public.events
  for each row when (new.* is distinct from old.*) execute function private.tg__set_updated_at();
create trigger events_900_version before update on public.events
  for each row when (
    new.name is distinct from old.name or new.slug is distinct from old.slug
    or new.description is distinct from old.description or new.status is distinct from old.status
    or new.starts_at is distinct from old.starts_at or new.ends_at is distinct from old.ends_at
    or new.timezone is distinct from old.timezone or new.locale is distinct from old.locale
    or new.venue_name is distinct from old.venue_name or new.venue_address is distinct from old.venue_address
    or new.venue_city is distinct from old.venue_city or new.venue_postcode is distinct from old.venue_postcode
    or new.venue_country is distinct from old.venue_country or new.online_url is distinct from old.online_url
    or new.capacity is distinct from old.capacity
    or new.waiting_list_offer_hours is distinct from old.waiting_list_offer_hours
    or new.currency is distinct from old.currency or new.payment_due_days is distinct from old.payment_due_days
    or new.external_id is distinct from old.external_id or new.metadata is distinct from old.metadata
  )
  execute function private.tg__count_version();

revoke all on public.events from anon, authenticated, service_role;

alter table public.events enable row level security;
-- Registration and check-in read the event, too; the column grants limit what they see of it.
create policy events_select_own on public.events for select
  to scope_events_read, scope_events_write, scope_attendees_read, scope_attendees_write, scope_checkin_write, scope_orders_read, scope_orders_write
  using (organisation_id = (select private.current_organisation_id()));
create policy events_insert_own on public.events for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy events_update_own on public.events for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy events_delete_own on public.events for delete to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy events_select_membership on public.events for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,door,viewer}')));
create policy events_insert_membership on public.events for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy events_update_membership on public.events for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.events to scope_events_read, scope_events_write, authenticated;
-- A file of attendees or orders says what their events are called.
grant select (id, organisation_id, name, timezone) on public.events to scope_attendees_read, scope_orders_read;
grant select (id, organisation_id, currency) on public.events to scope_attendees_write, scope_orders_write;
grant select (id, organisation_id, name, status, starts_at) on public.events to scope_checkin_write;
grant insert (
  organisation_id, name, slug, description, starts_at, ends_at, timezone, locale, venue_name, venue_address, venue_city,
  venue_postcode, venue_country, online_url, capacity, waiting_list_offer_hours, currency, payment_due_days, external_id, metadata
) on public.events to scope_events_write, authenticated;
grant update (
  name, slug, description, status, starts_at, ends_at, timezone, locale, venue_name, venue_address, venue_city,
  venue_postcode, venue_country, online_url, capacity, waiting_list_offer_hours, currency, payment_due_days, external_id, metadata
) on public.events to scope_events_write, authenticated;
grant delete on public.events to scope_events_write;

create function private.event_phase(event public.events) returns public.event_phase
language plpgsql stable set search_path = ''
as $$
begin
  return case
    when event.status = 'draft' or now() < event.starts_at then 'upcoming'
    when now() < event.ends_at then 'ongoing'
    else 'ended'
  end::public.event_phase;
end
$$;
grant execute on function private.event_phase to scope_events_read, scope_events_write;

create function private.event_json(event public.events) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'event',
    'id', event.id,
    'name', event.name,
    'slug', event.slug,
    'description', event.description,
    'status', event.status,
    'phase', private.event_phase(event),
    'starts_at', private.rfc3339(event.starts_at),
    'ends_at', private.rfc3339(event.ends_at),
    'timezone', event.timezone,
    'locale', event.locale,
    'venue', case
      when num_nonnulls(
        event.venue_name, event.venue_address, event.venue_city, event.venue_postcode, event.venue_country
      ) > 0 then json_build_object(
        'name', event.venue_name,
        'address', event.venue_address,
        'city', event.venue_city,
        'postcode', event.venue_postcode,
        'country', event.venue_country
      )
    end,
    'online_url', event.online_url,
    'capacity', event.capacity,
    'waiting_list_offer_hours', event.waiting_list_offer_hours,
    'currency', event.currency,
    'payment_due_days', event.payment_due_days,
    'published_at', private.rfc3339(event.published_at),
    'cancelling_since', private.rfc3339(event.cancelling_since),
    'cancelled_at', private.rfc3339(event.cancelled_at),
    'completed_at', private.rfc3339(event.completed_at),
    'external_id', event.external_id,
    'metadata', event.metadata,
    'version', event.version,
    'created_at', private.rfc3339(event.created_at),
    'updated_at', private.rfc3339(event.updated_at)
  );
end
$$;
grant execute on function private.event_json to scope_events_read, scope_events_write;
