-- Rules of the domain: nobody is sold a ticket for what is over, values are refused in a sentence, what Usher keeps is not edited by
-- hand, and an object that exists already is named by its id.
-- Read supabase/schemas instead: this is what is applied, that is what is explained and kept current.

-- The constraint is narrower than the one before it, and organisations are few.
-- squawk-ignore-file constraint-missing-not-valid

set local lock_timeout = '5s';
set local statement_timeout = '60s';

-- A list of versions in place of one.
drop function api.update_event(uuid, jsonb, integer, text, text);
drop function api.update_ticket_type(uuid, jsonb, integer, text, text);
drop function api.update_promo_code(uuid, jsonb, integer, text, text);
drop function api.update_attendee(uuid, jsonb, integer, text, text);
drop function api.update_webhook_endpoint(uuid, jsonb, integer, text, text);
drop function private.require_version(integer, integer);

grant execute on function private.refuse_not_found(text) to api_key, authenticated;

-- For triggers that look further than their caller may: neither an API key nor a person who is signed in has any business
-- with rows of another organisation, and they must not learn from an error that those exist.
create or replace function private.is_foreign(organisation_id uuid) returns boolean
language plpgsql stable set search_path = ''
as $$
declare
  v_claims jsonb := private.claims();
begin
  if organisation_id is null or organisation_id <> (v_claims ->> 'organisation_id')::uuid then
    return true;
  end if;
  -- By itself: an expression with a query in it costs every registration, even where the query is not run.
  if v_claims ->> 'role' = 'authenticated' then
    return organisation_id not in (select private.member_organisation_ids());
  end if;
  return false;
end
$$;

create or replace function private.refuse_foreign(organisation_id uuid, param text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if private.is_foreign(organisation_id) then
    perform private.refuse_not_found(param);
  end if;
end
$$;

-- A value that a constraint would refuse, in a sentence: a constraint answers with the whole row. The constraint stays behind.
create or replace function private.refuse_value(param text, message text, hint text default null) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    422, 'validation_failed', message, param,
    jsonb_build_object('fields', jsonb_build_array(jsonb_build_object('param', param, 'message', message))), hint
  );
end
$$;

grant execute on function private.refuse_value(text, text, text) to api_key, authenticated;

-- Who registers, and who comes: for the guards of orders and attendees.
create or replace function private.refuse_no_contact(name text, email text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if name is null or length(btrim(name)) not between 1 and 200 or name ~ '[[:cntrl:]]' then
    perform private.refuse_value('name', 'A name is one line of 1 to 200 characters.', 'Write at least one letter, and no line breaks.');
  end if;
  if email is null or not private.is_email_address(email) then
    perform private.refuse_value('email', 'This is not an e-mail address.', 'Write it as in name@example.com.');
  end if;
end
$$;

-- Another object has the value. One that was added by the same transaction goes with the refusal, so its id is not told.
-- A new row is asked about for API keys only: by hand it may say `on conflict`, which the unique index decides.
create or replace function private.refuse_taken(param text, id uuid, created_at timestamptz) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'already_exists', format('Another object has this %s already.', param), param,
    case when created_at <> now() then jsonb_build_object('id', id) end
  );
end
$$;

grant execute on function private.refuse_taken(text, uuid, timestamptz) to api_key, authenticated;

-- The first field of a new row that is not as Usher gives it. Both are rows as JSON; the second has only the given fields.
create or replace function private.refuse_brought_along("row" jsonb, given jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'read_only_field', 'Usher gives a new row this field itself.', g.key, hint => 'Leave it out.'
  )
  from jsonb_each(given) g
  where jsonb_strip_nulls("row") -> g.key <> g.value;
end
$$;

-- What a header of an e-mail can hold without quotes or another alphabet: all that zod's z.email() takes, and a little more.
create or replace function private.is_email_address(address text) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return length(address) <= 254
    and address ~ '^[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&''*+/=?^_`{|}~-]+)*@(?:[A-Za-z0-9][A-Za-z0-9-]*\.)+[A-Za-z][A-Za-z0-9-]*[A-Za-z0-9]$';
end
$$;

grant execute on function private.is_email_address(text) to api_key, authenticated;

-- Whether a number is the same after a client has read it as a double and written it again. Whole numbers beyond 2^53 - 1
-- are not, and below the least double Postgres would refuse the cast.
create or replace function private.is_double(number numeric) returns boolean
language plpgsql immutable set search_path = '' set extra_float_digits = 1
as $$
begin
  return case
    when number = 0 then true
    when abs(number) > 9007199254740991 or abs(number) < 4e-324 then false
    else number::float8::text::numeric = number
  end;
end
$$;

grant execute on function private.is_double(numeric) to api_key, authenticated;

-- Metadata is a flat object of at most 50 keys, so that every system can hold it and nobody builds a database inside. It holds
-- nothing that a JSON client would change or lose: no number that is no double, and no key that JavaScript takes for another.
create or replace function private.is_metadata(value jsonb) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return case
    when jsonb_typeof(value) <> 'object' then false
    else (
      select count(*) <= 50
        and coalesce(bool_and(
          length(e.key) between 1 and 40
          and e.key <> '__proto__'
          and coalesce(length(e.value #>> '{}'), 0) <= 500
          and case jsonb_typeof(e.value)
            when 'number' then private.is_double((e.value #>> '{}')::numeric)
            else jsonb_typeof(e.value) in ('string', 'boolean', 'null')
          end
        ), true)
      from jsonb_each(value) e
    )
  end;
end
$$;

-- Fields that Usher keeps itself, named after a hint as arguments of a trigger on those very columns. Saving a row as it is
-- passes; another value would be overwritten without a word. A new row has none of them.
create or replace function private.tg__refuse_derived() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_column text;
begin
  foreach v_column in array tg_argv[1:] loop
    if to_jsonb(new) -> v_column is distinct from coalesce(to_jsonb(old) -> v_column, 'null')
      -- What SQL that keeps updated_at itself sets it to is what it becomes.
      and not (v_column = 'updated_at' and (to_jsonb(new) ->> v_column)::timestamptz is not distinct from now()) then
      perform private.refuse(
        409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', v_column, hint => tg_argv[0]
      );
    end if;
  end loop;
  return new;
end
$$;

create or replace function private.tg__require_name() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if new.name is null or length(btrim(new.name)) not between 1 and 200 or new.name ~ '[[:cntrl:]]' then
    perform private.refuse_value('name', 'A name is one line of 1 to 200 characters.', 'Write at least one letter, and no line breaks.');
  end if;
  return new;
end
$$;

-- For triggers whose `when` says which value is refused. Arguments: param, message and, if there is one, a hint.
create or replace function private.tg__refuse_value() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse_value(tg_argv[0], tg_argv[1], tg_argv[2]);
  return new;
end
$$;

-- What is in use is not deleted. Arguments: message, hint, and each `table.column` that may refer to the row. The foreign keys
-- stay behind it.
create or replace function private.tg__refuse_delete_in_use() returns trigger
language plpgsql volatile set search_path = ''
as $$
declare
  v_reference text;
  v_in_use boolean;
begin
  foreach v_reference in array tg_argv[2:] loop
    execute format(
      'select exists (select from public.%I where %I = $1)', split_part(v_reference, '.', 1), split_part(v_reference, '.', 2)
    ) into v_in_use using old.id;
    if v_in_use then
      perform private.refuse(409, 'in_use', tg_argv[0], hint => tg_argv[1]);
    end if;
  end loop;
  return old;
end
$$;

-- Null is no condition; of a list any may match.
create or replace function private.require_version(version integer, if_versions integer[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if version <> all (if_versions) then
    perform private.refuse(
      412, 'version_mismatch', 'The object was changed since you read it.', 'if_version',
      jsonb_build_object('version', version), 'Read it again, and apply your change to what it is now.'
    );
  end if;
end
$$;

grant execute on function private.require_version(integer, integer[]) to api_key;

-- An address that no mail server takes loses nothing by being left out: every ticket would fail with it.
update public.organisations set reply_to_email = null where not private.is_email_address(reply_to_email);
alter table public.organisations drop constraint organisations_reply_to_email_is_an_address;
alter table public.organisations add constraint organisations_reply_to_email_is_an_address
  check (private.is_email_address(reply_to_email));

create trigger organisations_050_derived before update of created_at, updated_at on public.organisations
  for each row execute function private.tg__refuse_derived('Leave it as it is.', 'created_at', 'updated_at');

create trigger organisations_100_in_use before delete on public.organisations
  for each row execute function private.tg__refuse_delete_in_use(
    'The organisation is in use: it has events.', 'Revoke its API keys and remove its members instead.', 'events.organisation_id'
  );

create trigger organisations_300_name before insert or update of name on public.organisations
  for each row execute function private.tg__require_name();

create trigger organisations_300_reply_to_email before insert or update of reply_to_email on public.organisations
  for each row when (not private.is_email_address(new.reply_to_email))
  execute function private.tg__refuse_value(
    'reply_to_email', 'This is not an e-mail address that people can reply to.', 'Write it as in name@example.com, or leave it empty.'
  );

create trigger api_keys_050_derived before update of created_at, updated_at on public.api_keys
  for each row execute function private.tg__refuse_derived('Leave it as it is.', 'created_at', 'updated_at');

create trigger api_keys_300_name before insert or update of name on public.api_keys
  for each row execute function private.tg__require_name();

-- Nobody is sold a ticket for what is over.
create or replace function private.refuse_ended(param text, ends_at timestamptz) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'event_ended', 'The event has ended.', param, jsonb_build_object('ends_at', private.rfc3339(ends_at)),
    'Give the event a later ends_at first.'
  );
end
$$;

-- Security definer: it counts orders and tickets that the editing role may not be allowed to read.
create or replace function private.tg_events__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'INSERT' then
    new.slug := coalesce(new.slug, private.free_event_slug(new.organisation_id, new.name));
    if new.status <> 'draft' then
      perform private.refuse(
        409, 'invalid_transition', 'An event starts as a draft.', 'status',
        hint => 'Add dates and a ticket type, then publish it.'
      );
    end if;
  else
    if (new.status, new.capacity, new.currency) is distinct from (old.status, old.capacity, old.currency) then
      perform private.close_gate(new.id);
    end if;

    if new.status <> old.status and (old.status, new.status) not in (
      ('draft', 'published'), ('published', 'draft'), ('published', 'cancelled'), ('published', 'completed')
    ) then
      perform private.refuse_transition(old.status, new.status);
    end if;

    if old.status = 'published' and new.status = 'draft'
      and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(
        409, 'event_has_orders', 'An event with orders cannot become a draft again.', 'status', hint => 'Cancel the event instead.'
      );
    end if;

    if old.status = 'draft' and new.status = 'published' then
      if new.starts_at is null or new.ends_at is null then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs a start and an end before it is published.', 'starts_at',
          hint => 'Set starts_at and ends_at first.'
        );
      end if;
      if new.ends_at <= now() then
        perform private.refuse_ended('ends_at', new.ends_at);
      end if;
      if not exists (select from public.ticket_types t where t.event_id = new.id and t.status = 'active') then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs an active ticket type before it is published.', 'ticket_types',
          hint => 'Add a ticket type first.'
        );
      end if;
    end if;

    if new.currency <> old.currency and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(409, 'event_has_orders', 'The currency of an event with orders is fixed.', 'currency');
    end if;

    if new.capacity is distinct from old.capacity and new.capacity > 0 and new.capacity < private.places_taken(new.id) then
      perform private.refuse(
        409, 'capacity_below_sold', 'The capacity cannot be less than the tickets already issued.', 'capacity',
        jsonb_build_object('places_taken', private.places_taken(new.id))
      );
    end if;
  end if;

  -- Row level security refuses a foreign row only after this: until then, nothing is told of it.
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else (new.slug, new.external_id) is distinct from (old.slug, old.external_id) end)
    and not private.is_foreign(new.organisation_id) then
    perform private.refuse_taken('slug', e.id, e.created_at)
    from public.events e
    where e.organisation_id = new.organisation_id and e.slug = new.slug and e.slug <> '' and e.id <> new.id;
    perform private.refuse_taken('external_id', e.id, e.created_at)
    from public.events e
    where e.organisation_id = new.organisation_id and e.external_id = new.external_id and e.id <> new.id;
  end if;

  if tg_op = 'INSERT' or new.timezone <> old.timezone then
    -- The list of zones is read from files, in some 20 ms: a zone that an event is in already is one.
    if not exists (select from public.events e where e.timezone = new.timezone)
      and not exists (select from pg_catalog.pg_timezone_names z where z.name = new.timezone) then
      perform private.refuse(
        422, 'validation_failed', 'The time zone is not an IANA time zone.', 'timezone', hint => 'Use a name such as Europe/Berlin.'
      );
    end if;
  end if;

  -- The moments belong to the status; nobody sets them by hand.
  new.published_at := case
    when tg_op = 'INSERT' or new.status = 'draft' then null
    when old.status = 'draft' then now()
    else old.published_at
  end;
  new.cancelled_at := case when new.status = 'cancelled' then case when old.status = 'cancelled' then old.cancelled_at else now() end end;
  new.completed_at := case when new.status = 'completed' then case when old.status = 'completed' then old.completed_at else now() end end;
  return new;
end
$$;

create trigger events_050_derived_insert before insert on public.events
  for each row when (num_nonnulls(new.published_at, new.cancelled_at, new.completed_at) > 0)
  execute function private.tg__refuse_derived('Set the status later instead.', 'published_at', 'cancelled_at', 'completed_at');

create trigger events_050_derived_update
  before update of published_at, cancelled_at, completed_at, version, created_at, updated_at on public.events
  for each row execute function private.tg__refuse_derived(
    'Leave it as it is; the moments of an event go with its status.',
    'published_at', 'cancelled_at', 'completed_at', 'version', 'created_at', 'updated_at'
  );

create trigger events_100_in_use before delete on public.events
  for each row execute function private.tg__refuse_delete_in_use(
    'The event is in use: it has ticket types, promo codes, orders or check-ins.',
    'Cancel it instead: set its status to cancelled. A draft can be deleted after its ticket types and promo codes.',
    'orders.event_id', 'check_ins.event_id', 'ticket_types.event_id', 'promo_codes.event_id'
  );

create trigger events_300_name before insert or update of name on public.events
  for each row execute function private.tg__require_name();

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

-- The columns that a venue sets, by RFC 7396: a member that its object leaves out stays as it is, null clears one, and no
-- object at all clears them all.
create or replace function private.venue_columns(venue jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
begin
  if jsonb_typeof(venue) = 'object' then
    return (select coalesce(jsonb_object_agg('venue_' || m.key, m.value), '{}') from jsonb_each(venue) m);
  end if;
  return '{"venue_name": null, "venue_address": null, "venue_city": null, "venue_postcode": null, "venue_country": null}';
end
$$;

create or replace function api.update_event(
  event_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_event public.events;
  v_new public.events;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select e.* into v_event from public.events e where e.id = update_event.event_id for no key update;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  perform private.require_version(v_event.version, if_version);

  -- An absent key leaves its field, null clears it; so do the members of the venue.
  v_new := jsonb_populate_record(
    v_event,
    changes || case when changes ? 'venue' then private.venue_columns(changes -> 'venue') else '{}' end
  );
  update public.events e set
    name = v_new.name,
    slug = v_new.slug,
    description = v_new.description,
    starts_at = v_new.starts_at,
    ends_at = v_new.ends_at,
    timezone = v_new.timezone,
    venue_name = v_new.venue_name,
    venue_address = v_new.venue_address,
    venue_city = v_new.venue_city,
    venue_postcode = v_new.venue_postcode,
    venue_country = v_new.venue_country,
    online_url = v_new.online_url,
    capacity = v_new.capacity,
    currency = v_new.currency,
    external_id = v_new.external_id,
    metadata = v_new.metadata
  where e.id = v_event.id
  returning * into v_event;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.event_json(v_event))
  );
end
$$;

comment on function api.update_event(uuid, jsonb, integer[], text, text) is
  'Changes fields of an event; absent ones stay, null clears: 200. 404 not_found; 409 capacity_below_sold, event_has_orders, already_exists; 412 version_mismatch; 422 validation_failed.';

grant execute on function api.update_event(uuid, jsonb, integer[], text, text) to scope_events_write;

comment on function api.publish_event(uuid, text, text) is
  'Opens a draft event for registrations: 200. 404 not_found; 409 invalid_transition, event_not_publishable, event_ended.';

create or replace function private.tg_ticket_types__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  -- Depth 1 is a statement of a person or an API; the count itself comes from the trigger on attendees, one deeper.
  if pg_trigger_depth() = 1
    and new.quantity_sold is distinct from (case when tg_op = 'INSERT' then 0 else old.quantity_sold end) then
    perform private.refuse(
      409, 'read_only_field', 'quantity_sold is counted from the attendees and cannot be edited.', 'quantity_sold',
      hint => 'Add or cancel attendees instead.'
    );
  end if;
  if tg_op = 'UPDATE' and new.quantity is distinct from old.quantity and new.quantity >= 0 and new.quantity < new.quantity_sold then
    perform private.refuse(
      409, 'quantity_below_sold', 'The quantity cannot be less than the tickets already issued.', 'quantity',
      jsonb_build_object('quantity_sold', new.quantity_sold)
    );
  end if;
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else new.external_id is distinct from old.external_id end) then
    perform private.refuse_taken('external_id', t.id, t.created_at)
    from public.ticket_types t
    where t.organisation_id = new.organisation_id and t.external_id = new.external_id and t.id <> new.id;
  end if;
  return new;
end
$$;

create trigger ticket_types_050_derived before update of version, created_at, updated_at on public.ticket_types
  for each row execute function private.tg__refuse_derived('Leave it as it is.', 'version', 'created_at', 'updated_at');

create trigger ticket_types_100_in_use before delete on public.ticket_types
  for each row execute function private.tg__refuse_delete_in_use(
    'The ticket type is in use: there are attendees with it.', 'Archive it instead: set its status to archived.',
    'attendees.ticket_type_id'
  );

create trigger ticket_types_300_name before insert or update of name on public.ticket_types
  for each row execute function private.tg__require_name();

create trigger ticket_types_300_price before insert or update of price on public.ticket_types
  for each row when (new.price not between 0 and 100000000000)
  execute function private.tg__refuse_value(
    'price', 'A price is from 0 to 100000000000.', 'It is in minor units: 4900 is 49.00. 0 is free.'
  );

create trigger ticket_types_300_quantity before insert or update of quantity on public.ticket_types
  for each row when (new.quantity < 0)
  execute function private.tg__refuse_value('quantity', 'A quantity is at least 0.', 'Leave it empty for no limit.');

create trigger ticket_types_300_per_order before insert or update of min_per_order, max_per_order on public.ticket_types
  for each row when (new.min_per_order < 1 or new.max_per_order < new.min_per_order)
  execute function private.tg__refuse_value(
    'max_per_order', 'An order has from min_per_order, which is at least 1, to max_per_order tickets of a type.',
    'Leave max_per_order empty for no limit.'
  );

create trigger ticket_types_300_sales_end_at before insert or update of sales_start_at, sales_end_at on public.ticket_types
  for each row when (new.sales_end_at <= new.sales_start_at)
  execute function private.tg__refuse_value(
    'sales_end_at', 'A sale ends after it starts.', 'Change sales_start_at and sales_end_at together.'
  );

-- places_left: what the event's own capacity still allows, or null.
create or replace function private.ticket_type_json(ticket_type public.ticket_types, currency text, places_left bigint)
returns json
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'object', 'ticket_type',
      'id', ticket_type.id,
      'event_id', ticket_type.event_id,
      'name', ticket_type.name,
      'description', ticket_type.description,
      'price', ticket_type.price,
      'currency', currency,
      'quantity', ticket_type.quantity,
      'quantity_sold', ticket_type.quantity_sold,
      'quantity_available', a.available,
      'min_per_order', ticket_type.min_per_order,
      'max_per_order', ticket_type.max_per_order,
      'sales_start_at', private.rfc3339(ticket_type.sales_start_at),
      'sales_end_at', private.rfc3339(ticket_type.sales_end_at),
      'visibility', ticket_type.visibility,
      'status', ticket_type.status,
      'sales_status', case
        when ticket_type.status = 'archived' then 'archived'
        when now() >= (select e.ends_at from public.events e where e.id = ticket_type.event_id) then 'ended'
        when now() < ticket_type.sales_start_at then 'upcoming'
        when now() >= ticket_type.sales_end_at then 'ended'
        when a.available = 0 then 'sold_out'
        else 'on_sale'
      end,
      'position', ticket_type.position,
      'external_id', ticket_type.external_id,
      'metadata', ticket_type.metadata,
      'version', ticket_type.version,
      'created_at', private.rfc3339(ticket_type.created_at),
      'updated_at', private.rfc3339(ticket_type.updated_at)
    )
    from (
      -- The lesser of what there is; null, which least passes over, is no limit. greatest would pass it over, too.
      select least(
        ticket_type.quantity - ticket_type.quantity_sold,
        case when places_left < 0 then 0 else places_left end
      ) as available
    ) a
  );
end
$$;

create or replace function api.update_ticket_type(
  ticket_type_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_ticket_type public.ticket_types;
  v_new public.ticket_types;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select t.* into v_ticket_type from public.ticket_types t where t.id = update_ticket_type.ticket_type_id for no key update;
  if not found then
    perform private.refuse_not_found('ticket_type_id');
  end if;
  perform private.require_version(v_ticket_type.version, if_version);

  v_new := jsonb_populate_record(v_ticket_type, changes);
  update public.ticket_types t set
    name = v_new.name,
    description = v_new.description,
    price = v_new.price,
    quantity = v_new.quantity,
    min_per_order = v_new.min_per_order,
    max_per_order = v_new.max_per_order,
    sales_start_at = v_new.sales_start_at,
    sales_end_at = v_new.sales_end_at,
    visibility = v_new.visibility,
    status = v_new.status,
    position = v_new.position,
    external_id = v_new.external_id,
    metadata = v_new.metadata
  where t.id = v_ticket_type.id
  returning * into v_ticket_type;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.ticket_type_json(v_ticket_type))
  );
end
$$;

comment on function api.update_ticket_type(uuid, jsonb, integer[], text, text) is
  'Changes fields of a ticket type (status archived stops it being issued): 200. 404 not_found; 409 quantity_below_sold, already_exists; 412 version_mismatch; 422 validation_failed.';

grant execute on function api.update_ticket_type(uuid, jsonb, integer[], text, text) to scope_events_write;

-- With the rights of whoever edits: row level security hides another organisation's event, so it is one that does not exist.
create or replace function private.tg_promo_codes__guard() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  -- Depth 1 is a statement of a person or an API; the count itself comes from a trigger, one deeper.
  if pg_trigger_depth() = 1
    and new.times_redeemed is distinct from (case when tg_op = 'INSERT' then 0 else old.times_redeemed end) then
    perform private.refuse(
      409, 'read_only_field', 'times_redeemed is counted from the attendees and cannot be edited.', 'times_redeemed'
    );
  end if;
  -- Before the unique index, which would tell who has the code.
  if tg_op = 'INSERT' and not exists (
    select from public.events e where e.id = new.event_id and e.organisation_id = new.organisation_id
  ) then
    perform private.refuse_not_found('event_id');
  end if;
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else lower(new.code) <> lower(old.code) end) then
    perform private.refuse_taken('code', c.id, c.created_at)
    from public.promo_codes c
    where c.event_id = new.event_id and lower(c.code) = lower(new.code) and c.id <> new.id;
  end if;
  -- Only when the list is set: a ticket type that is deleted later leaves a code that can still be disabled.
  if tg_op = 'INSERT' or new.ticket_type_ids <> old.ticket_type_ids then
    new.ticket_type_ids := array(select distinct i.id from unnest(new.ticket_type_ids) i (id) order by i.id);
    if exists (
      select from unnest(new.ticket_type_ids) i (id)
      where not exists (
        select from public.ticket_types t
        where t.id = i.id and t.event_id = new.event_id and t.organisation_id = new.organisation_id
      )
    ) then
      perform private.refuse(
        422, 'validation_failed', 'A ticket type of the list is not one of the event.', 'ticket_type_ids',
        hint => 'List the ticket types of the event to find their identifiers.'
      );
    end if;
  end if;
  if tg_op = 'UPDATE' and new.max_redemptions < new.times_redeemed and new.max_redemptions is distinct from old.max_redemptions then
    perform private.refuse(
      409, 'limit_below_redeemed', 'The limit cannot be less than the uses already made.', 'max_redemptions',
      jsonb_build_object('times_redeemed', new.times_redeemed)
    );
  end if;
  return new;
end
$$;

create trigger promo_codes_050_derived before update of version, created_at, updated_at on public.promo_codes
  for each row execute function private.tg__refuse_derived('Leave it as it is.', 'version', 'created_at', 'updated_at');

create trigger promo_codes_100_in_use before delete on public.promo_codes
  for each row execute function private.tg__refuse_delete_in_use(
    'The promo code is in use: there are orders with it.', 'Disable it instead: set its status to disabled.',
    'orders.promo_code_id', 'attendees.promo_code_id'
  );

create trigger promo_codes_300_percent_off before insert or update of percent_off on public.promo_codes
  for each row when (new.percent_off <= 0 or new.percent_off > 100)
  execute function private.tg__refuse_value('percent_off', 'A discount is above 0 and at most 100 percent.', '25 takes a quarter off.');

create trigger promo_codes_300_valid_until before insert or update of valid_from, valid_until on public.promo_codes
  for each row when (new.valid_until <= new.valid_from)
  execute function private.tg__refuse_value(
    'valid_until', 'A promo code ends after it starts.', 'Change valid_from and valid_until together.'
  );

create trigger promo_codes_300_max_redemptions before insert or update of max_redemptions on public.promo_codes
  for each row when (new.max_redemptions <= 0)
  execute function private.tg__refuse_value(
    'max_redemptions', 'A promo code has at least 1 use.', 'Leave it empty for no limit, or disable the code.'
  );

create or replace function api.update_promo_code(
  promo_code_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_promo_code public.promo_codes;
  v_new public.promo_codes;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select c.* into v_promo_code from public.promo_codes c where c.id = update_promo_code.promo_code_id for no key update;
  if not found then
    perform private.refuse_not_found('promo_code_id');
  end if;
  perform private.require_version(v_promo_code.version, if_version);

  v_new := jsonb_populate_record(v_promo_code, changes);
  update public.promo_codes c set
    code = v_new.code,
    percent_off = v_new.percent_off,
    valid_from = v_new.valid_from,
    valid_until = v_new.valid_until,
    max_redemptions = v_new.max_redemptions,
    ticket_type_ids = v_new.ticket_type_ids,
    status = v_new.status
  where c.id = v_promo_code.id
  returning * into v_promo_code;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.promo_code_json(v_promo_code))
  );
end
$$;

comment on function api.update_promo_code(uuid, jsonb, integer[], text, text) is
  'Changes fields of a promo code (status disabled refuses it): 200. 404 not_found; 409 limit_below_redeemed, already_exists; 412 version_mismatch; 422 validation_failed.';

grant execute on function api.update_promo_code(uuid, jsonb, integer[], text, text) to scope_events_write;

-- Security definer: it reads event, promo code and references beyond what a registering key may see.
create or replace function private.tg_orders__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
begin
  if tg_op = 'INSERT' then
    v_event := private.pass_gate(new.event_id);
    perform private.refuse_foreign(v_event.organisation_id, 'event_id');
    if v_event.status <> 'published' then
      perform private.refuse_unpublished(v_event.status);
    elsif v_event.ends_at <= now() then
      perform private.refuse_ended('event_id', v_event.ends_at);
    end if;
    if new.external_id is not null and private.current_api_key_id() is not null then
      perform private.refuse_taken('external_id', o.id, o.created_at)
      from public.orders o
      where o.organisation_id = v_event.organisation_id and o.external_id = new.external_id;
    end if;
    if new.status <> 'pending' or new.payment_status <> 'not_required'
      or (new.subtotal, new.discount_total, new.amount_paid) <> (0, 0, 0)
      or new.currency <> v_event.currency
      or num_nonnulls(new.reference, new.promo_code_id, new.completed_at, new.cancelled_at) > 0 then
      perform private.refuse_brought_along(to_jsonb(new), jsonb_build_object(
        'status', 'pending', 'payment_status', 'not_required', 'subtotal', 0, 'discount_total', 0, 'amount_paid', 0,
        'currency', v_event.currency, 'reference', null, 'promo_code_id', null, 'completed_at', null, 'cancelled_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    new.currency := v_event.currency;

    if new.promo_code is not null then
      -- As the organiser writes it. Whether it is valid is asked when a ticket takes a use of it.
      select c.id, c.code into new.promo_code_id, new.promo_code
      from public.promo_codes c
      where c.event_id = new.event_id and lower(c.code) = lower(new.promo_code);
      if not found then
        perform private.refuse_not_found('promo_code');
      end if;
    end if;

    loop
      new.reference := private.random_code(8);
      exit when not exists (
        select from public.orders o where o.organisation_id = new.organisation_id and o.reference = new.reference
      );
    end loop;
  else
    -- Depth 1 is a statement of a person or an API; the sums themselves come from triggers, one deeper.
    if pg_trigger_depth() = 1 then
      if new.amount_paid <> old.amount_paid then
        perform private.refuse(
          409, 'read_only_field', 'amount_paid is added up from the payments and cannot be edited.', 'amount_paid',
          hint => 'Add a payment instead.'
        );
      elsif (new.subtotal, new.discount_total) <> (old.subtotal, old.discount_total) then
        perform private.refuse(
          409, 'read_only_field', 'The totals are added up from the tickets and cannot be edited.', 'subtotal',
          hint => 'Add or cancel attendees instead.'
        );
      elsif (new.payment_method is null) <> (old.payment_method is null) then
        perform private.refuse(
          409, 'read_only_field', 'Whether an order is to be paid is fixed: its tickets have their prices by it.', 'payment_method',
          hint => 'Make a new order.'
        );
      end if;
    end if;
    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', o.id, o.created_at)
      from public.orders o
      where o.organisation_id = new.organisation_id and o.external_id = new.external_id and o.id <> new.id;
    end if;
    if new.status <> old.status and (old.status, new.status) not in (
      ('pending', 'completed'), ('pending', 'cancelled'), ('completed', 'cancelled')
    ) then
      perform private.refuse(
        409, 'invalid_transition', 'An order cannot go from its present status to this one.', 'status',
        jsonb_build_object('from', old.status, 'to', new.status),
        'Allowed: pending to completed or cancelled; completed to cancelled.'
      );
    end if;
    if old.status = 'pending' and new.status = 'completed' and not private.is_settled(new) then
      perform private.refuse(
        409, 'payment_due', 'An order completes with its tickets, when nothing is due.', 'status',
        hint => 'Record the payment instead.'
      );
    end if;
  end if;

  if tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email) then
    perform private.refuse_no_contact(new.name, new.email);
  end if;

  if new.status = 'pending' and private.is_settled(new) then
    new.status := 'completed';
  end if;

  new.payment_status := case
    when new.status = 'pending' and new.amount_paid = 0 then 'awaiting_payment'
    when new.status = 'pending' then 'partially_paid'
    when new.status = 'cancelled' and new.amount_paid > 0 then 'refund_due'
    when new.status = 'cancelled' then 'not_required'
    when new.amount_paid > new.subtotal - new.discount_total then 'refund_due'
    when new.amount_paid > 0 then 'paid'
    else 'not_required'
  end::public.payment_status;

  new.completed_at := case
    when tg_op = 'UPDATE' and old.completed_at is not null then old.completed_at
    when new.status = 'completed' then now()
  end;
  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  return new;
end
$$;

create trigger orders_050_derived
  before update of payment_status, completed_at, cancelled_at, version, created_at, updated_at on public.orders
  for each row execute function private.tg__refuse_derived(
    'Record a payment, or set status to cancelled, instead.',
    'payment_status', 'completed_at', 'cancelled_at', 'version', 'created_at', 'updated_at'
  );

create trigger orders_100_in_use before delete on public.orders
  for each row execute function private.tg__refuse_delete_in_use(
    'The order is in use: it has attendees or payments.', 'Cancel it instead: set its status to cancelled.',
    'attendees.order_id', 'payments.order_id'
  );

-- Security definer: it reads order and ticket type beyond what a registering key may see.
create or replace function private.tg_attendees__guard() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_order public.orders;
begin
  if tg_op = 'INSERT' then
    -- The gate before the order, as everywhere; then the order, so that it is not cancelled or completed past a ticket it
    -- does not know of, and its totals are added up by one at a time.
    perform private.pass_gate(o.event_id) from public.orders o where o.id = new.order_id;
    select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
    perform private.refuse_foreign(v_order.organisation_id, 'order_id');
    if v_order.status = 'cancelled' then
      perform private.refuse(409, 'order_cancelled', 'A cancelled order takes no more attendees.', 'order_id');
    end if;
    if new.external_id is not null and private.current_api_key_id() is not null then
      perform private.refuse_taken('external_id', a.id, a.created_at)
      from public.attendees a
      where a.organisation_id = v_order.organisation_id and a.external_id = new.external_id;
    end if;
    if new.status = 'cancelled' or new.ticket_email_status <> 'queued' or (new.price, new.discount) <> (0, 0)
      or new.currency <> v_order.currency
      or num_nonnulls(new.promo_code_id, new.ticket_code, new.checked_in_at, new.cancelled_at) > 0 then
      perform private.refuse_brought_along(to_jsonb(new), jsonb_build_object(
        'status', 'active', 'ticket_email_status', 'queued', 'price', 0, 'discount', 0, 'currency', v_order.currency,
        'promo_code_id', null, 'ticket_code', null, 'checked_in_at', null, 'cancelled_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_order.organisation_id);
    new.event_id := coalesce(new.event_id, v_order.event_id);
    new := private.price_attendee(new, v_order);
    if v_order.status = 'completed' and new.price > new.discount then
      perform private.refuse(
        409, 'order_completed', 'A completed order takes no more tickets that are to be paid.', 'order_id',
        hint => 'Make a new order.'
      );
    end if;
    new.status := case when v_order.status = 'completed' then 'active' else 'awaiting_payment' end::public.attendee_status;
    new.ticket_code := private.random_code(16);
    new.ticket_email_status := case
      when not v_order.send_email then 'not_requested'
      when new.status = 'active' then 'queued'
      else 'waiting'
    end::public.ticket_email_status;
  else
    if new.checked_in_at is distinct from old.checked_in_at and pg_trigger_depth() = 1 then
      perform private.refuse(
        409, 'read_only_field', 'checked_in_at is kept by the check-ins and cannot be edited.', 'checked_in_at',
        hint => 'Add a check-in, or set undone_at of the accepted one.'
      );
    end if;

    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', a.id, a.created_at)
      from public.attendees a
      where a.organisation_id = new.organisation_id and a.external_id = new.external_id and a.id <> new.id;
    end if;

    if new.ticket_code is null then
      -- A ticket is re-issued: the new code goes to whoever holds it now.
      if new.checked_in_at is not null or new.status = 'cancelled' then
        perform private.refuse(
          409, 'ticket_not_reissuable', 'A ticket that was used or cancelled cannot be issued anew.', 'ticket_code',
          hint => 'Undo the check-in first, or register the person anew.'
        );
      end if;
      new.ticket_code := private.random_code(16);
      new.ticket_email_status := case
        when old.ticket_email_status = 'not_requested' then 'not_requested'
        when new.status = 'active' then 'queued'
        else 'waiting'
      end::public.ticket_email_status;
    elsif new.ticket_code <> old.ticket_code then
      perform private.refuse(
        409, 'read_only_field', 'Ticket codes are given, not chosen.', 'ticket_code', hint => 'Clear it to have a new one given.'
      );
    end if;

    if new.status <> old.status then
      if old.status = 'cancelled' or (old.status, new.status) = ('active', 'awaiting_payment') then
        perform private.refuse(
          409, 'invalid_transition', 'An attendee cannot go from its present status to this one.', 'status',
          jsonb_build_object('from', old.status, 'to', new.status),
          'Allowed: awaiting_payment to active or cancelled; active to cancelled.'
        );
      end if;
      if new.status = 'active' then
        select o.* into v_order from public.orders o where o.id = new.order_id for share;
        if v_order.status <> 'completed' then
          perform private.refuse(
            409, 'payment_due', 'The ticket is good once its order is completed.', 'status', hint => 'Record the payment instead.'
          );
        end if;
      end if;
    end if;

    if new.ticket_email_status = 'queued' and old.ticket_email_status <> 'queued' and new.status <> 'active' then
      perform private.refuse_inactive_ticket(new.status);
    end if;
    if new.status = 'active' and new.ticket_email_status = 'waiting' then
      new.ticket_email_status := case when v_order.send_email then 'queued' else 'not_requested' end::public.ticket_email_status;
    elsif new.status = 'cancelled' and new.ticket_email_status in ('waiting', 'queued') then
      new.ticket_email_status := 'cancelled';
    end if;
  end if;

  if tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email) then
    perform private.refuse_no_contact(new.name, new.email);
  end if;

  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  return new;
end
$$;

create trigger attendees_050_derived before update of cancelled_at, version, created_at, updated_at on public.attendees
  for each row execute function private.tg__refuse_derived(
    'Set status to cancelled to cancel the ticket.', 'cancelled_at', 'version', 'created_at', 'updated_at'
  );

create trigger attendees_100_in_use before delete on public.attendees
  for each row execute function private.tg__refuse_delete_in_use(
    'The attendee is in use: there are check-ins with their ticket.', 'Cancel the ticket instead: set status to cancelled.',
    'check_ins.attendee_id'
  );

-- Totals: what a ticket costs, and what follows from the tickets of an order: how many there may be, its sums, and the uses of
-- its promo code. Kept by triggers on attendees, from wherever a row is changed.

-- The price of a ticket, and what the promo code of its order takes off it: half up, on each ticket, so that an order is
-- always the sum of its lines. A code is used by the tickets it makes cheaper, and by no others.
create or replace function private.price_attendee(attendee public.attendees, "order" public.orders) returns public.attendees
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_percent_off numeric;
begin
  attendee.currency := "order".currency;
  attendee.price := 0;
  attendee.discount := 0;
  attendee.promo_code_id := null;
  if "order".payment_method is null then
    return attendee;
  end if;

  -- Of this event only: the price of another organisation's ticket type is not to be told by what follows from it.
  attendee.price := coalesce((
    select t.price from public.ticket_types t where t.id = attendee.ticket_type_id and t.event_id = "order".event_id
  ), 0);
  if "order".promo_code_id is not null and attendee.price > 0 then
    select c.percent_off into v_percent_off
    from public.promo_codes c
    where c.id = "order".promo_code_id
      and (c.ticket_type_ids = '{}' or attendee.ticket_type_id = any (c.ticket_type_ids));
    if found then
      attendee.promo_code_id := "order".promo_code_id;
      attendee.discount := round(attendee.price * v_percent_off / 100);
    end if;
  end if;
  return attendee;
end
$$;

-- Once a statement, not once a row: cancelling an event of ten thousand is one update of each ticket type. All gates
-- before all ticket types, in the order of their ids.
create or replace function private.tg_attendees__count_places() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_moves private.place_move[] := '{}';
  v_event_id uuid;
  v_event public.events;
  v_limited public.events[] := '{}';
  v_move record;
begin
  if tg_op in ('UPDATE', 'DELETE') then
    v_moves := v_moves || array(
      select row(o.event_id, o.ticket_type_id, -1)::private.place_move from old_rows o where o.status <> 'cancelled'
    );
  end if;
  if tg_op in ('INSERT', 'UPDATE') then
    v_moves := v_moves || array(
      select row(n.event_id, n.ticket_type_id, 1)::private.place_move from new_rows n where n.status <> 'cancelled'
    );
  end if;
  v_moves := array(
    select row(m.event_id, m.ticket_type_id, sum(m.places)::integer)::private.place_move
    from unnest(v_moves) m
    group by m.event_id, m.ticket_type_id
    having sum(m.places) <> 0
  );

  for v_event_id in select distinct m.event_id from unnest(v_moves) m where m.places > 0 order by m.event_id loop
    v_event := private.pass_gate(v_event_id);
    if v_event.status <> 'published' then
      perform private.refuse_unpublished(v_event.status);
    elsif v_event.ends_at <= now() then
      perform private.refuse_ended('event_id', v_event.ends_at);
    end if;
    if v_event.capacity is not null then
      perform private.pass_gate_one_by_one(v_event_id);
      v_limited := v_limited || v_event;
    end if;
  end loop;

  for v_move in select m.* from unnest(v_moves) m order by m.ticket_type_id loop
    perform private.move_places(v_move.ticket_type_id, v_move.places);
  end loop;

  foreach v_event in array v_limited loop
    if private.places_taken(v_event.id) > v_event.capacity then
      perform private.refuse(409, 'sold_out', 'The event is full.', 'event_id', hint => 'Raise the capacity of the event.');
    end if;
  end loop;
  return null;
end
$$;

create or replace function api.update_attendee(
  attendee_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
  v_new public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select a.* into v_attendee from public.attendees a where a.id = update_attendee.attendee_id for no key update;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  perform private.require_version(v_attendee.version, if_version);

  v_new := jsonb_populate_record(v_attendee, changes);
  update public.attendees a set
    name = v_new.name,
    email = v_new.email,
    company = v_new.company,
    external_id = v_new.external_id,
    metadata = v_new.metadata,
    ticket_code = case when (changes ->> 'reissue_ticket')::boolean then null else a.ticket_code end
  where a.id = v_attendee.id
  returning * into v_attendee;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.attendee_json(v_attendee))
  );
end
$$;

comment on function api.update_attendee(uuid, jsonb, integer[], text, text) is
  'Corrects an attendee, or transfers the ticket (reissue_ticket gives a new code): 200. 404 not_found; 409 ticket_not_reissuable, already_exists; 412 version_mismatch; 422 validation_failed.';

grant execute on function api.update_attendee(uuid, jsonb, integer[], text, text) to scope_attendees_write;

-- Registering guests: one order with its attendees, complimentary and completed at once, or to be paid and pending until it
-- is. Everything that must hold (event published, places left, sale open, promo code valid) is held by the triggers of
-- orders and attendees, so that a row added in Studio meets the same rules.

-- The external_ids of a registration, in one order for everybody: two groups that name the same ones crosswise would each wait
-- for an index entry of the other. Before every other lock of a registration, and so the second finds what the first has added.
create or replace function private.lock_external_ids(organisation_id uuid, order_external_id text, guests jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_external_id record;
begin
  for v_external_id in
    select hashtext(concat_ws(' ', organisation_id, i.kind, i.external_id)) as key, count(*) as times
    from (
      select 'order' as kind, order_external_id as external_id
      union all
      select 'attendee', g.guest ->> 'external_id' from jsonb_array_elements(guests) g (guest)
    ) i
    where i.external_id is not null
    group by i.kind, i.external_id
    order by 1
  loop
    if v_external_id.times > 1 then
      perform private.refuse(
        409, 'already_exists', 'Two attendees of the group have the same external_id.', 'external_id', hint => 'Send each of them once.'
      );
    end if;
    perform pg_advisory_xact_lock(6, v_external_id.key);
  end loop;
end
$$;

grant execute on function private.lock_external_ids(uuid, text, jsonb) to scope_attendees_write;

-- One guest, named by the fields of their own, or up to 50 in `attendees`, all or none: [{ ticket_type_id, name, email,
-- company, external_id, metadata }]. What a guest of a group leaves out, the ticket type, comes from beside the list; name,
-- e-mail address and company there are the buyer's, who is the first guest unless they are given.
create or replace function api.register_attendee(
  event_id uuid,
  ticket_type_id uuid default null,
  name text default null,
  email text default null,
  company text default null,
  attendees jsonb default null,
  payment_method public.payment_method default null,
  promo_code text default null,
  send_email boolean default null,
  external_id text default null,
  metadata jsonb default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_guests jsonb := coalesce(attendees, jsonb_build_array(jsonb_build_object(
    'name', name, 'email', email, 'company', company, 'external_id', external_id, 'metadata', metadata
  )));
  v_organisation_id uuid;
  v_foreign record;
  v_order public.orders;
  v_attendees json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if jsonb_array_length(v_guests) not between 1 and 50 then
    perform private.refuse(422, 'validation_failed', 'A group is of 1 to 50 attendees.', 'attendees');
  end if;
  select e.organisation_id into v_organisation_id from public.events e where e.id = register_attendee.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  select g.place - 1 as index, g.guest ? 'ticket_type_id' as names_its_own into v_foreign
  from jsonb_array_elements(v_guests) with ordinality g (guest, place)
  where not exists (
    select from public.ticket_types t
    where t.id = coalesce((g.guest ->> 'ticket_type_id')::uuid, register_attendee.ticket_type_id)
      and t.event_id = register_attendee.event_id
  )
  limit 1;
  if found then
    perform private.refuse_not_found(
      case when v_foreign.names_its_own then format('attendees.%s.', v_foreign.index) else '' end || 'ticket_type_id'
    );
  end if;

  if external_id is not null or attendees is not null then
    perform private.lock_external_ids(v_organisation_id, external_id, v_guests);
  end if;

  insert into public.orders (
    organisation_id, event_id, name, email, company, send_email, payment_method, promo_code, external_id, metadata
  )
  values (
    v_organisation_id,
    register_attendee.event_id,
    coalesce(register_attendee.name, v_guests #>> '{0,name}'),
    coalesce(register_attendee.email, v_guests #>> '{0,email}'),
    case
      when coalesce(register_attendee.name, register_attendee.email, register_attendee.company) is null
        then v_guests #>> '{0,company}'
      else register_attendee.company
    end,
    coalesce(register_attendee.send_email, true),
    register_attendee.payment_method,
    register_attendee.promo_code,
    register_attendee.external_id,
    coalesce(register_attendee.metadata, '{}')
  )
  returning * into v_order;

  insert into public.attendees (
    organisation_id, event_id, order_id, ticket_type_id, name, email, company, external_id, metadata
  )
  select
    v_organisation_id, v_order.event_id, v_order.id, coalesce(g.ticket_type_id, register_attendee.ticket_type_id),
    g.name, g.email, g.company, g.external_id, coalesce(g.metadata, '{}')
  from jsonb_to_recordset(v_guests) g (
    ticket_type_id uuid, name text, email text, company text, external_id text, metadata jsonb
  );

  -- The tickets decide what there is to pay, and with it whether they are good already.
  if v_order.payment_method is not null then
    select o.* into v_order from public.orders o where o.id = v_order.id;
  end if;
  select json_agg(private.attendee_json(a) order by a.id) into v_attendees
  from public.attendees a
  where a.order_id = v_order.id;

  return private.record_outcome(
    idempotency_key,
    request_fingerprint,
    json_build_object('status', 201, 'data', private.order_json(v_order, v_attendees, '[]'))
  );
end
$$;

comment on function api.register_attendee(uuid, uuid, text, text, text, jsonb, public.payment_method, text, boolean, text, jsonb, text, text) is
  'Registers a guest, or a group of up to 50: 201 with the order and its attendees, complimentary, or to be paid where there is a payment method. 404 not_found; 409 event_not_published, event_ended, sold_out, quantity_not_allowed, ticket_type_archived, sales_not_started, sales_ended, promo_code_disabled, promo_code_not_started, promo_code_expired, promo_code_used_up, promo_code_not_applicable, already_exists (external_id); 422 validation_failed, idempotency_key_reused.';

create trigger webhook_endpoints_050_derived before update of version, created_at, updated_at on public.webhook_endpoints
  for each row execute function private.tg__refuse_derived('Leave it as it is.', 'version', 'created_at', 'updated_at');

create trigger webhook_endpoints_300_url before insert or update of url on public.webhook_endpoints
  for each row when (
    length(new.url) > 2000
    or new.url !~ '^(https://([^][/?#@:[:space:][:cntrl:]]+|\[[0-9A-Fa-f:.]+\])|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?([/?#][^[:space:][:cntrl:]]*)?$'
  )
  execute function private.tg__refuse_value(
    'url', 'The URL of a webhook endpoint is an https address without a password.', 'http is for this machine only.'
  );

create or replace function api.update_webhook_endpoint(
  webhook_endpoint_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_webhook_endpoint public.webhook_endpoints;
  v_new public.webhook_endpoints;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select w.* into v_webhook_endpoint
  from public.webhook_endpoints w
  where w.id = update_webhook_endpoint.webhook_endpoint_id
  for no key update;
  if not found then
    perform private.refuse_not_found('webhook_endpoint_id');
  end if;
  perform private.require_version(v_webhook_endpoint.version, if_version);

  v_new := jsonb_populate_record(v_webhook_endpoint, changes);
  update public.webhook_endpoints w set
    url = v_new.url,
    description = v_new.description,
    types = v_new.types,
    status = v_new.status
  where w.id = v_webhook_endpoint.id
  returning * into v_webhook_endpoint;

  return private.record_outcome(
    idempotency_key, request_fingerprint,
    json_build_object('status', 200, 'data', private.webhook_endpoint_json(v_webhook_endpoint))
  );
end
$$;

comment on function api.update_webhook_endpoint(uuid, jsonb, integer[], text, text) is
  'Changes fields of a webhook endpoint (status enabled or disabled): 200. 403 missing_scope; 404 not_found; 412 version_mismatch; 422 validation_failed.';

grant execute on function api.update_webhook_endpoint(uuid, jsonb, integer[], text, text) to scope_events_write;

-- Metadata that the new rule would refuse, and with it any edit of its row: a number that is no double becomes text.
do $$
declare
  v_table text;
begin
  foreach v_table in array array['events', 'ticket_types', 'orders', 'attendees'] loop
    execute format(
      $update$
        update public.%I t
        set metadata = (
          select coalesce(jsonb_object_agg(e.key, case
            when jsonb_typeof(e.value) = 'number' and not private.is_double((e.value #>> '{}')::numeric) then to_jsonb(e.value #>> '{}')
            else e.value
          end), '{}')
          from jsonb_each(t.metadata) e
          where e.key <> '__proto__'
        )
        where t.metadata <> '{}' and not private.is_metadata(t.metadata)
      $update$,
      v_table
    );
  end loop;
end
$$;
