-- Operations on people: who stands under an e-mail address, and erasing them.

-- Security definer: it reads by the address what the caller may read in part.
create function private.find_people(organisation_id uuid, email text) returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  -- Rows of each kind that are looked at, the people of an answer, and the records of each.
  c_rows constant integer := 5000;
  c_people constant integer := 50;
  c_records constant integer := 20;
  v_address text := lower(btrim(email));
  v_rows private.personal_row[] := array(select r from private.rows_of_address(organisation_id, v_address, null, c_rows) r);
  v_people jsonb := private.people_json(v_rows, c_people, c_records);
begin
  perform private.assert_not_foreign(organisation_id, 'organisation_id');
  return json_build_object(
    'object', 'person',
    'email', v_address,
    'people', v_people -> 'people',
    'hidden', v_people -> 'hidden',
    'more', (v_people ->> 'more')::boolean or cardinality(v_rows) >= c_rows
  );
end
$$;
grant execute on function private.find_people to scope_attendees_read;

create function api.find_person(email text) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return private.find_people(private.current_organisation_id(), email);
end
$$;
comment on function api.find_person is
  'People with an e-mail address, by name, with their tickets, orders and waiting-list entries, and whether they are a member. Empty if there are none.';
grant execute on function api.find_person to scope_attendees_read;

-- What an erasure with the arguments of a confirmation erases, as private.erase_people chooses it.
create function private.rows_to_erase(organisation_id uuid, arguments jsonb) returns setof private.personal_row
language plpgsql stable set search_path = ''
as $$
declare
  c_most constant integer := 5000;
  v_address text := lower(btrim(arguments ->> 'email'));
  v_names text[] := case when jsonb_typeof(arguments -> 'names') = 'array' then array(select jsonb_array_elements_text(arguments -> 'names')) end;
begin
  return query
  select r.*
  from private.rows_of_address(
    organisation_id, v_address,
    private.forms_meant(
      array(select f from private.rows_of_address(organisation_id, v_address, null, c_most) f), v_names, (arguments ->> 'everyone')::boolean
    ),
    c_most
  ) r;
end
$$;

create function private.digest_of_people(rows private.personal_row[]) returns text
language plpgsql immutable set search_path = ''
as $$
begin
  return md5((select string_agg(concat_ws(' ', r.id, r.form), ',' order by r.id, r.form) from unnest(rows) r));
end
$$;

-- Locks what is erased, in the order of 20-events/locks.sql, until nothing is left to lock, and answers it. An offer that is accepted
-- meanwhile adds a ticket. All tickets of an order are locked at once: where its contact is erased, what is searched of each changes. Entries
-- that wait are locked last, by their update; rows of members after them.
create function private.lock_people(organisation_id uuid, address text, forms text[], most integer) returns private.erasing
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_rows private.personal_row[];
  v_ids uuid[];
  v_locked uuid[];
  v_order_ids uuid[];
  v_attendee_ids uuid[];
  v_event_ids uuid[];
  v_event_id uuid;
begin
  for v_round in 1..5 loop
    v_rows := array(select r from private.rows_of_address(organisation_id, address, forms, most) r);
    v_ids := array(select r.id from unnest(v_rows) r order by r.id);
    exit when v_ids = v_locked;
    perform private.limit_lock_waits();
    v_event_ids := array(select distinct r.event_id from unnest(v_rows) r where r.event_id is not null order by r.event_id);
    foreach v_event_id in array v_event_ids loop
      perform private.lock_event_shared(v_event_id);
    end loop;
    v_order_ids := array(select a.order_id from public.attendees a where a.id = any (v_ids));
    perform from public.orders o where o.id = any (v_ids || v_order_ids) order by o.id for no key update;
    v_attendee_ids := array(select a.id from public.attendees a where a.order_id = any (v_ids));
    perform from public.attendees a where a.id = any (v_ids || v_attendee_ids) order by a.id for no key update;
    -- They go with the last ticket of the address, in whatever order the tickets are.
    perform from public.email_opt_outs u
    where u.event_id = any (v_event_ids) and u.email_lower = address
    order by u.event_id
    for update;
    perform from public.waiting_list_entries w where w.id = any (v_ids) and w.status <> 'waiting' order by w.id for no key update;
    v_locked := v_ids;
  end loop;
  v_attendee_ids := array(select r.id from unnest(v_rows) r where r.object = 'attendee' and not r.is_former);
  return row(
    organisation_id, address, forms, v_rows, v_attendee_ids,
    array(select r.id from unnest(v_rows) r where r.object = 'order' and not r.is_former),
    array(
      select r.id from unnest(v_rows) r where r.object = 'waiting_list_entry' and not r.is_former
      union
      select a.waiting_list_entry_id from public.attendees a where a.id = any (v_attendee_ids) and a.waiting_list_entry_id is not null
    ),
    array(select r.id from unnest(v_rows) r where r.is_former and r.object <> 'member')
  )::private.erasing;
end
$$;

-- Of an address that has no ticket of the event any more: nothing else finds them.
create function private.erase_opt_outs(organisation_id uuid, address text) returns integer
language plpgsql volatile set search_path = ''
as $$
declare
  v_rows integer;
begin
  perform set_config('usher.switches_on', 'on', true);
  delete from public.email_opt_outs u
  where u.organisation_id = erase_opt_outs.organisation_id and u.email_lower = address
    and not exists (
      select from public.attendees a
      where a.organisation_id = u.organisation_id and a.email_lower = u.email_lower and a.event_id = u.event_id
    );
  get diagnostics v_rows = row_count;
  perform set_config('usher.switches_on', '', true);
  return v_rows;
end
$$;

-- Until all is erased or the time is up. A part has whole orders, so that the log of each is read once.
create function private.erase_in_parts(erasing private.erasing, out erased private.erased, out is_complete boolean)
language plpgsql volatile set search_path = ''
as $$
declare
  c_part constant integer := 200;
  v_order_ids constant uuid[] := array(
    select a.order_id from public.attendees a where a.id = any (erasing.attendee_ids)
    union
    select i from unnest(erasing.order_ids) i
    order by 1
  );
  v_ids uuid[];
  v_part private.erasing := erasing;
  v_parts private.erased[] := '{}';
  v_done integer := 0;
begin
  -- A part locks the endpoints of its own deliveries in the order of their ids; of several parts all are locked before.
  if cardinality(v_order_ids) > c_part then
    perform from public.webhook_endpoints w where w.organisation_id = erasing.organisation_id order by w.id for no key update;
  end if;
  loop
    v_ids := v_order_ids[v_done + 1:v_done + c_part];
    v_part.attendee_ids := array(
      select a.id from public.attendees a where a.id = any (erasing.attendee_ids) and a.order_id = any (v_ids)
    );
    v_part.order_ids := array(select i from unnest(erasing.order_ids) i where i = any (v_ids));
    v_parts := v_parts || private.erase_rows(v_part);
    v_part.entry_ids := '{}';
    v_part.former_ids := '{}';
    v_part.rows := '{}';
    v_done := v_done + c_part;
    is_complete := v_done >= cardinality(v_order_ids);
    exit when is_complete or private.is_time_up(0.5);
  end loop;
  select
    sum(p.attendees), sum(p.orders), sum(p.waiting_list_entries), sum(p.emails), sum(p.notifications), sum(p.webhook_deliveries),
    sum(p.audit_entries), sum(p.idempotency_records)
  into erased
  from unnest(v_parts) p;
end
$$;

-- Erases people of an address: of those of the names, or everybody; one, who alone has it, without either. What remains when the time is up is
-- erased by another call. Security definer: no role may write the logs.
create function private.erase_people(organisation_id uuid, email text, names text[], everyone boolean, dry_run boolean) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Rows of each kind that one call locks.
  c_most constant integer := 5000;
  v_address text := lower(btrim(email));
  v_all private.personal_row[];
  v_forms text[];
  -- Of the rows those of the names that are meant: a member without a name goes with whoever does.
  v_meant text[];
  v_shown jsonb;
  v_others integer;
  v_not_found integer;
  v_erasing private.erasing;
  v_erased record;
begin
  perform private.assert_not_foreign(organisation_id, 'organisation_id');
  if names is not null and everyone then
    perform private.refuse_value('everyone', 'Send either names or everyone, not both.', 'everyone erases all who have the address.');
  elsif cardinality(names) not between 1 and 100 or array_position(names, null) is not null then
    perform private.refuse_value('names', 'names has 1 to 100 names.', 'Leave it out if the address has one name.');
  end if;
  v_all := array(select r from private.rows_of_address(organisation_id, v_address, null, c_most) r);
  v_forms := private.forms_meant(v_all, names, everyone);
  perform private.limit_lock_waits();
  if private.erase_opt_outs(organisation_id, v_address) = 0 and v_all = '{}' then
    perform private.refuse(
      404, 'not_found', 'Nobody in your organisation has this e-mail address.', 'email',
      hint => 'Erased people cannot be found again. Look for the person by name: they may have another address.'
    );
  elsif names is null and cardinality(v_forms) > 1 then
    v_shown := private.people_json(v_all, 20, 3);
    perform private.refuse(
      409, 'several_people', 'Several people have this e-mail address.', 'names',
      case when v_shown -> 'people' = '[]' then '{}' else v_shown end
        || jsonb_build_object('count', (select count(distinct r.form) from unnest(v_all) r)),
      'Ask which of them is meant and send names, or send everyone: true for all.'
    );
  end if;

  v_erasing := private.lock_people(organisation_id, v_address, v_forms, c_most);
  v_meant := array(
    select distinct r.form from unnest(v_erasing.rows) r where v_forms is null or r.object <> 'member' or r.form = any (v_forms)
  );
  if v_meant = '{}' and v_all <> '{}' then
    perform private.refuse(
      404, 'not_found', 'Nobody with these names has this e-mail address.', 'names', private.people_json(v_all, 20, 3),
      'Send the names as find_person answers them.'
    );
  end if;
  v_others := (
    select count(distinct r.form)
    from unnest(v_all) r
    where r.object <> 'member' and r.form <> all (v_forms)
      and not exists (select from unnest(v_erasing.rows) w where (w.id, w.form) = (r.id, r.form))
  );
  v_not_found := (select count(*) from unnest(v_forms) f where names is not null and f <> all (v_meant));

  v_erased := private.erase_in_parts(v_erasing);
  return to_jsonb(v_erased.erased) || jsonb_build_object(
    'object', 'person_erasure',
    'erased_at', case when dry_run is not true then private.rfc3339(now()) end,
    'people', cardinality(v_meant),
    'remaining', case when v_erased.is_complete and cardinality(v_erasing.rows) < c_most then 0
      else (select count(*) from private.rows_of_address(organisation_id, v_address, v_forms, c_most)) end,
    'kept', private.kept_of(v_erasing, v_others, v_not_found),
    'digest', private.digest_of_people(v_erasing.rows),
    'currency', coalesce(
      (select e.currency from public.events e where e.id = any (array(select r.event_id from unnest(v_erasing.rows) r)) limit 1), 'EUR'
    )
  );
end
$$;
grant execute on function private.erase_people to scope_attendees_write;

create function api.erase_person(
  email text,
  names text[] default null,
  everyone boolean default null,
  dry_run boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_receipt jsonb;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    v_receipt := private.erase_people(private.current_organisation_id(), email, names, everyone, dry_run);
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(
        dry_run,
        jsonb_build_object(
          'orders', v_receipt -> 'orders', 'attendees', v_receipt -> 'attendees', 'refund_due', 0, 'currency', v_receipt -> 'currency'
        ),
        '{"not_told": []}'
      ),
      'data', v_receipt - '{digest,currency}'::text[]
    );
    perform private.undo_if_dry_run(dry_run);
    perform private.assert_confirmed(
      'erase_person',
      jsonb_build_object('email', email, 'names', names, 'everyone', everyone, 'digest', v_receipt -> 'digest'), v_outcome -> 'effect'
    );
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.erase_person is
  'Erases the personal data of everyone with an e-mail address, here and in every copy, or reports the effect: 200 with a receipt. 404 not_found; 409 several_people; 422 validation_failed.';
grant execute on function api.erase_person to scope_attendees_write;
