-- Idempotency: the first outcome of a write is stored in the same transaction as its effect, and replayed when the request
-- is repeated. An error rolls back effect and record alike, so repeating the request tries again.

create table private.idempotency_records (
  organisation_id uuid not null,
  family_id uuid not null,
  idempotency_key text not null,
  request_fingerprint text not null,
  outcome json not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '24 hours',
  constraint idempotency_records_pkey primary key (family_id, idempotency_key),
  constraint idempotency_records_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint idempotency_records_key_is_bounded check (length(idempotency_key) between 1 and 255)
);
comment on table private.idempotency_records is 'First outcomes of writes, for 24 hours. An idempotency key belongs to a family of API keys: it survives a rotation, and another integration cannot collide with it.';

-- What an outcome is found by when a person is erased: the order or entry that it tells of, the attendee who was scanned, the delivery whose
-- response it has. Null: it tells of no person, or of many.
create function private.subject_of_outcome(outcome json) returns text
language plpgsql immutable set search_path = ''
as $$
declare
  v_object text := outcome #>> '{data,object}';
begin
  return case
    when v_object in ('order', 'waiting_list_entry', 'webhook_delivery') then outcome #>> '{data,id}'
    when v_object = 'attendee' then outcome #>> '{data,order_id}'
    when v_object = 'check_in' then outcome #>> '{data,attendee,id}'
    when v_object is null then outcome #>> '{error,details,check_in,attendee,id}'
  end;
end
$$;

-- The attendees of an outcome that tells of many. Null: it tells of one, or of no person.
create function private.people_in(outcome json) returns uuid[]
language plpgsql immutable set search_path = ''
as $$
begin
  if outcome #>> '{data,object}' in ('attendee_import', 'check_in_batch') then
    return array(
      select coalesce(r ->> 'attendee_id', r #>> '{error,details,id}', r #>> '{check_in,attendee,id}')::uuid
      from json_array_elements(outcome #> '{data,results}') r
    );
  end if;
  return null;
end
$$;

-- For private.erase_outcomes.
create index idempotency_records_organisation_id_subject_idx
  on private.idempotency_records (organisation_id, private.subject_of_outcome(outcome));
create index idempotency_records_people_idx on private.idempotency_records using gin (private.people_in(outcome))
  where private.people_in(outcome) is not null;
create index idempotency_records_expires_at_idx on private.idempotency_records (expires_at);

alter table private.idempotency_records enable row level security;

-- Until the end of the transaction. Nothing to lock without a key of the API.
create function private.lock_idempotency_key(idempotency_key text) returns void
language plpgsql volatile set search_path = ''
as $$ begin perform pg_advisory_xact_lock(hashtextextended(private.claims() ->> 'family_id' || ' ' || idempotency_key, 0)); end $$;
grant execute on function private.lock_idempotency_key to api_key;

-- The outcome to replay, or null to go ahead. A concurrent request with the same key waits here until the first ends, and
-- then finds its record.
-- Security definer, as record_outcome is: records are read and written only through these two.
create function private.replay_outcome(idempotency_key text, request_fingerprint text) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_family_id uuid;
  v_record private.idempotency_records;
begin
  if idempotency_key is null then
    return null;
  end if;
  v_family_id := (private.claims() ->> 'family_id')::uuid;
  if v_family_id is null then
    return null;
  end if;

  perform private.lock_idempotency_key(idempotency_key);
  select r.* into v_record
  from private.idempotency_records r
  where r.family_id = v_family_id
    and r.idempotency_key = replay_outcome.idempotency_key
    and r.expires_at > now();
  if not found then
    return null;
  end if;

  -- The role is part of it: an outcome is never replayed to another scope, whatever fingerprint comes with the key.
  if v_record.request_fingerprint is distinct from concat_ws(' ', private.claims() ->> 'role', replay_outcome.request_fingerprint) then
    perform private.refuse(
      422, 'idempotency_key_reused', 'This idempotency key was used for a different request.', 'idempotency_key',
      hint => 'Repeat the first request unchanged, or send a new key.'
    );
  end if;
  -- Built as text, so that the fields keep their order.
  return ('{"replayed": true, ' || substr(v_record.outcome::text, 2))::json;
end
$$;
grant execute on function private.replay_outcome to api_key;

-- Stores the outcome under the key and returns it. An expired record that is not purged yet is overwritten. A dry run has no
-- effect and stores nothing.
create function private.record_outcome(
  idempotency_key text,
  request_fingerprint text,
  outcome json,
  dry_run boolean default null
) returns json
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if idempotency_key is not null and dry_run is not true and private.claims() ? 'family_id' then
    insert into private.idempotency_records as r
      (organisation_id, family_id, idempotency_key, request_fingerprint, outcome)
    values (
      private.current_organisation_id(),
      (private.claims() ->> 'family_id')::uuid,
      record_outcome.idempotency_key,
      concat_ws(' ', private.claims() ->> 'role', record_outcome.request_fingerprint),
      record_outcome.outcome
    )
    on conflict on constraint idempotency_records_pkey do update
      set request_fingerprint = excluded.request_fingerprint,
        outcome = excluded.outcome,
        created_at = excluded.created_at,
        expires_at = excluded.expires_at;
  end if;
  return outcome;
end
$$;
grant execute on function private.record_outcome to api_key;

-- Last step of a dry run: raises UD001, which the operation itself catches, so that all its effects are rolled back.
create function private.undo_if_dry_run(dry_run boolean) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if dry_run then
    raise exception using errcode = 'UD001', message = 'Dry run.';
  end if;
end
$$;
grant execute on function private.undo_if_dry_run to api_key;

-- What a write does besides its object. `affected` has orders, attendees, refund_due and currency; `notice` is what private.tell answers, or
-- why nobody is told.
create function private.effect_json(dry_run boolean, affected jsonb, notice jsonb default null) returns json
language plpgsql immutable set search_path = ''
as $$
begin
  return json_build_object(
    'dry_run', coalesce(dry_run, false),
    'orders', affected -> 'orders',
    'attendees', affected -> 'attendees',
    'waiting_list', coalesce(affected -> 'waiting_list', '0'),
    'emails', coalesce((notice ->> 'emails')::integer, 0) + coalesce((affected ->> 'offers')::integer, 0),
    'told', coalesce((notice ->> 'told')::integer, 0) + coalesce((affected ->> 'offers')::integer, 0),
    'not_told', coalesce(notice -> 'not_told', case (affected ->> 'attendees')::integer when 0 then '[]' else jsonb_build_array(
      jsonb_build_object('reason', coalesce(notice ->> 'nobody_because', 'notify_nobody'), 'count', affected -> 'attendees')
    ) end),
    'refund_due', affected -> 'refund_due',
    'currency', affected -> 'currency'
  );
end
$$;
grant execute on function private.effect_json to api_key;
