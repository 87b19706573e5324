-- Events: draft -> published -> cancelled | completed; back to draft only while there is no order, and from completed back to published
-- until the end. A draft may be deleted.

create type public.event_status as enum ('draft', 'published', 'cancelled', 'completed');
-- The current time relative to the event; worked out, never stored. A draft is upcoming, whatever its dates: nothing takes place before
-- it is published.
create type public.event_phase as enum ('upcoming', 'ongoing', 'ended');
-- What guests may do on the page of their ticket: 60-attendees/guest-page.sql.
create type public.guest_act as enum ('correct', 'answer', 'give_back', 'pass_on');
-- Where the registration page of an event can be found: 60-attendees/event-page.sql.
create type public.registration_page as enum ('off', 'by_link', 'public');
-- The languages of guests: the same as in src/operations/locales.ts.
create type public.locale as enum ('en', 'de', 'fr', 'es', 'nl');

-- Text for guests by language: { en: "Bring **ID**." }, of which something is seen.
create function private.are_notes(notes jsonb) returns boolean
language plpgsql immutable strict set search_path = ''
as $$
begin
  return jsonb_typeof(notes) = 'object' and notes - enum_range(null::public.locale)::text[] = '{}' and coalesce((
    select bool_and(
      jsonb_typeof(n.value) = 'string' and length(n.value #>> '{}') <= 5000 and private.person_form(n.value #>> '{}') <> ''
    )
    from jsonb_each(notes) n
  ), true);
end
$$;
grant execute on function private.are_notes to api_key, authenticated;

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
  guest_notes jsonb not null default '{}',
  locale public.locale not null default 'en',
  currency text not null default 'EUR',
  payment_due_days integer,
  waiting_list_offer_hours integer not null default 24,
  guests_may public.guest_act[] not null default '{}',
  guests_may_until timestamptz,
  registration_page public.registration_page not null default 'off',
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
  constraint events_guest_notes_are_texts_by_language check (guest_notes = '{}' or private.are_notes(guest_notes)),
  constraint events_starts_at_and_ends_at_are_finite check (
    starts_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and ends_at between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint events_ends_at_is_after_starts_at check (ends_at > starts_at),
  constraint events_starts_at_is_set_unless_draft check (status = 'draft' or starts_at is not null),
  constraint events_ends_at_is_set_unless_draft check (status = 'draft' or ends_at is not null),
  constraint events_venue_is_bounded check (
    length(venue_name) <= 200 and length(venue_address) <= 500
    and length(venue_city) <= 200 and length(venue_postcode) <= 20
  ),
  constraint events_venue_country_is_iso_3166 check (venue_country ~ '^[A-Z]{2}$'),
  constraint events_online_url_is_http check (private.is_web_url(online_url)),
  constraint events_capacity_is_positive check (capacity > 0),
  constraint events_waiting_list_offer_hours_are_some check (waiting_list_offer_hours between 1 and 720),
  constraint events_guests_may_names_each_once check (
    array_position(guests_may, null) is null and cardinality(guests_may) = ('correct' = any (guests_may))::integer
      + ('answer' = any (guests_may))::integer + ('give_back' = any (guests_may))::integer + ('pass_on' = any (guests_may))::integer
  ),
  constraint events_guests_may_until_is_finite check (guests_may_until between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'),
  constraint events_currency_is_iso_4217 check (currency ~ '^[A-Z]{3}$'),
  constraint events_payment_due_days_is_1_to_365 check (payment_due_days between 1 and 365),
  constraint events_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint events_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata))
);
comment on constraint events_name_is_one_line on public.events is
  'A name is one line of 1 to 200 characters. Write at least one letter, and no line breaks.';
comment on constraint events_guest_notes_are_texts_by_language on public.events is
  'guest_notes are texts of 1 to 5000 characters by language. Write an object such as {"en": "Bring **ID**."}, with en, de, fr, es or nl.';
comment on constraint events_starts_at_is_set_unless_draft on public.events is
  'Only a draft can have no start. Set another start instead.';
comment on constraint events_ends_at_is_set_unless_draft on public.events is 'Only a draft can have no end. Set another end instead.';
comment on constraint events_ends_at_is_after_starts_at on public.events is
  'An event must end after it starts. Change starts_at and ends_at together.';
comment on constraint events_online_url_is_http on public.events is
  'An address begins with http:// or https://, has at most 2000 characters, no user name or password, and no invisible characters. Copy the address again, without the part before an @ in the server name.';
comment on constraint events_capacity_is_positive on public.events is 'A capacity must be at least 1. Leave it empty for no limit.';
comment on constraint events_waiting_list_offer_hours_are_some on public.events is
  'A waiting-list offer is held for 1 to 720 hours.';
comment on constraint events_guests_may_names_each_once on public.events is
  'guests_may names each act once. Write any of correct, answer, give_back and pass_on.';
comment on constraint events_payment_due_days_is_1_to_365 on public.events is
  'A payment deadline must be 1 to 365 days. Leave it empty for no deadline.';
comment on table public.events is 'Events that people attend. An event is a draft until you publish it, which needs dates and a ticket type.';
comment on column public.events.name is 'Name for people.';
comment on column public.events.slug is 'Short name for addresses: up to 100 lower-case letters, digits and, inside, hyphens; made from the name when left out.';
comment on column public.events.status is 'draft, published, then cancelled or completed; a completed one may be published again until its end. A draft without orders can be deleted.';
comment on column public.events.starts_at is 'When it starts. Needed to publish.';
comment on column public.events.ends_at is 'When it ends. Needed to publish.';
comment on column public.events.timezone is 'IANA time zone of the event, such as Europe/Berlin.';
comment on column public.events.capacity is 'Maximum number of tickets over all ticket types. Empty: limited only by the quantities of the ticket types.';
comment on column public.events.venue_name is 'Name of the place, up to 200 characters.';
comment on column public.events.venue_address is 'Street and number, up to 500 characters.';
comment on column public.events.venue_city is 'City, up to 200 characters.';
comment on column public.events.venue_postcode is 'Postcode, up to 20 characters.';
comment on column public.events.venue_country is 'ISO 3166 code, two capital letters such as DE.';
comment on column public.events.online_url is 'Address for online attendance: http or https, without a user name or password.';
comment on column public.events.description is 'Text for people, up to 20000 characters.';
comment on column public.events.guest_notes is 'Your own words for guests by language, in ticket e-mails and on their pages: {"en": "Bring **ID**."}. Markdown with bold, italic, lists and links, up to 5000 characters each.';
comment on column public.events.locale is 'Language of e-mails and pages for guests.';
comment on column public.events.currency is 'ISO 4217 code for all prices and orders of the event. Changing it does not convert prices and discounts. Fixed once there is an order.';
comment on column public.events.payment_due_days is 'Days until an unpaid order expires, 1 to 365. Empty: no deadline. Applies to new orders.';
comment on column public.events.waiting_list_offer_hours is 'Hours for which a waiting-list offer holds a place, 1 to 720.';
comment on column public.events.guests_may is 'What guests may do themselves, by the link in their e-mails: correct (name, company), answer (change answers), give_back, pass_on. Empty: nothing.';
comment on column public.events.guests_may_until is 'When that ends. Empty: correct and answer with the end of the event, give_back and pass_on with its start.';
comment on column public.events.registration_page is 'Page to register on, at /e/ORGANISATION/EVENT: off, by_link (search engines do not list it) or public.';
comment on column public.events.published_at is 'When it was last published. Kept by Usher.';
comment on column public.events.cancelling_since is 'When cancellation was requested: a large event is cancelled a little later, as a whole. Kept by Usher.';
comment on column public.events.cancelled_at is 'When it was cancelled. Kept by Usher.';
comment on column public.events.completed_at is 'When it was completed. Kept by Usher.';
comment on column public.events.external_id is 'Your own identifier, up to 255 characters, unique within the organisation.';
comment on column public.events.metadata is 'Flat JSON object of your own, at most 50 keys.';

-- Partial indexes, whose columns Postgres does not count as keys: an edit of slug or external_id then does not take the row
-- lock that conflicts with the foreign keys of concurrent registrations.
create unique index events_organisation_id_slug_key on public.events (organisation_id, slug) where slug <> '';
create unique index events_organisation_id_external_id_key on public.events (organisation_id, external_id)
  where external_id is not null;

-- For private.page_of_events and private.page_of_events_by_start.
create index events_organisation_id_status_id_idx on public.events (organisation_id, status, id);
create index events_organisation_id_status_starts_at_idx
  on public.events (organisation_id, status, coalesce(starts_at, 'infinity'::timestamptz), id);

alter table public.api_keys add constraint api_keys_event_id_fkey foreign key (event_id, organisation_id)
  references public.events (id, organisation_id) on delete cascade;

select private.keep_table('public.events', filled => '{organisation_id,slug}', fixed => '{organisation_id}', versioned => true,
  derived => '{
    "published_at": "Leave it: the timestamps of an event follow its status.",
    "cancelled_at": "Leave it: the timestamps of an event follow its status.",
    "completed_at": "Leave it: the timestamps of an event follow its status.",
    "cancelling_since": "To cancel the event set its status to cancelled."
  }', of_event => false, not_taken => '{slug,external_id}');

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
  organisation_id, name, slug, description, guest_notes, starts_at, ends_at, timezone, locale, venue_name, venue_address, venue_city,
  venue_postcode, venue_country, online_url, capacity, waiting_list_offer_hours, guests_may, guests_may_until, registration_page, currency, payment_due_days, external_id, metadata
) on public.events to scope_events_write, authenticated;
grant update (
  name, slug, description, guest_notes, status, starts_at, ends_at, timezone, locale, venue_name, venue_address, venue_city,
  venue_postcode, venue_country, online_url, capacity, waiting_list_offer_hours, guests_may, guests_may_until, registration_page, currency, payment_due_days, external_id, metadata
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
    'guest_notes', event.guest_notes,
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
    'guests_may', event.guests_may,
    'guests_may_until', private.rfc3339(event.guests_may_until),
    'registration_page', event.registration_page,
    'registration_url', case when event.registration_page <> 'off' then private.link_url(
      'e', (select o.slug from public.organisations o where o.id = event.organisation_id) || '/' || event.slug
    ) end,
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
