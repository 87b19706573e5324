-- Raising errors. private.refuse_* always raises; private.assert_* raises unless the condition in its name holds.

-- Every error that a caller reads is raised here. The message is a constant ASCII sentence that an organiser in Studio
-- understands: PostgREST puts it into the HTTP reason phrase, so it never contains user input. Programs read `code` and
-- `param` in the detail; `row` there is for people, whose statement may write many: a trigger gives the one that it refuses.
-- SQLSTATE PT409 makes the Data API answer 409. The transaction is rolled back.
create function private.refuse(
  status integer,
  code text,
  message text,
  param text default null,
  details jsonb default null,
  hint text default null,
  "row" jsonb default null
) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  -- The grid shows the message alone, so of a row the message names the column.
  if pg_trigger_depth() > 0 and private.is_by_hand() and message !~* ('\m' || param || '\M') then
    message := format('In %s: %s', param, message);
  end if;
  raise exception using
    errcode = 'PT' || status,
    message = message,
    detail = jsonb_strip_nulls(jsonb_build_object(
      'code', code, 'param', param,
      -- The details of a value are filled in.
      'details', case details when '{}' then jsonb_build_object('fields', jsonb_build_array(jsonb_build_object('param', param, 'message', message)))
        else details end,
      'row', case when "row" is not null and private.is_by_hand() then
        jsonb_build_object('id', "row" -> 'id', 'name', "row" -> 'name', 'reference', "row" -> 'reference')
      end
    )),
    hint = coalesce(hint, '');
end
$$;
grant execute on function private.refuse to api_key, authenticated;

-- One answer for an object that does not exist and for one of another organisation: the error does not reveal which.
create function private.refuse_not_found(param text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if private.is_by_hand() then
    perform private.refuse(
      404, 'not_found', format('There is no such %s. Look in %s.', replace(regexp_replace(param, '_ids?$', ''), '_', ' '), param), param,
      hint => case when param ~ '_ids?$' then 'Copy the id from the row you mean.' else 'Check the spelling in the row you mean.' end
    );
  end if;
  perform private.refuse(
    404, 'not_found', 'There is no such object in your organisation.', param,
    hint => 'Check the identifier, and that the key belongs to the organisation that owns the object.'
  );
end
$$;
grant execute on function private.refuse_not_found to api_key, authenticated;

-- A readable error for a value that a check constraint would reject too: the constraint's own error contains the whole row.
create function private.refuse_value(param text, message text, hint text default null, "row" jsonb default null) returns void
language plpgsql volatile set search_path = ''
as $$ begin perform private.refuse(422, 'validation_failed', message, param, '{}', hint, "row"); end $$;
grant execute on function private.refuse_value to api_key, authenticated;

-- A value that another object already has. An object added by the same transaction is rolled back with the error, so its id
-- is left out. On insert, the guards check for API keys only; what people add is checked by private.assert_not_taken, unless
-- its SQL says what happens on conflict.
create function private.refuse_taken(param text, id uuid, created_at timestamptz, row_xmin xid default null) returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_is_older boolean := created_at <> now();
begin
  -- Of requests that are sent together, one pair of transactions in a hundred begins in the same microsecond.
  if not v_is_older and row_xmin is not null then
    v_is_older := pg_xact_status(
      -- The row is new, so its transaction counts from the same multiple of 2^32 as the present one.
      ((pg_current_xact_id()::text::bigint >> 32 << 32) + row_xmin::text::bigint)::text::xid8
    ) = 'committed';
  end if;
  perform private.refuse(
    409, 'already_exists', format('Another object has this %s already.', param), param,
    case when v_is_older then jsonb_build_object('id', id) end
  );
end
$$;
grant execute on function private.refuse_taken to api_key, authenticated;

-- For security definer triggers, which see more than their caller. A row of another organisation counts as missing, for API
-- keys and signed-in members alike, so that no error reveals that it exists.
create function private.is_foreign(organisation_id uuid) returns boolean
language plpgsql stable set search_path = ''
as $$
declare
  v_checked constant text := current_setting('usher.checked', true);
  v_claims jsonb;
begin
  if length(v_checked) = 36 then
    return organisation_id is distinct from v_checked::uuid;
  end if;
  v_claims := private.claims();
  if organisation_id is null or organisation_id <> (v_claims ->> 'organisation_id')::uuid then
    return true;
  end if;
  -- A statement of its own: an expression that contains a query costs every registration, even where the query is not run.
  if v_claims ->> 'role' = 'authenticated' then
    return organisation_id not in (select private.member_organisation_ids());
  end if;
  return false;
end
$$;
-- The guard of webhook endpoints asks as whoever adds one.
grant execute on function private.is_foreign to scope_events_write, authenticated;

create function private.assert_not_foreign(organisation_id uuid, param text) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if private.is_foreign(organisation_id) then
    perform private.refuse_not_found(param);
  end if;
end
$$;

-- Refuses a new row in which a field that Usher sets is neither null nor as given. Both arguments are rows as JSON; `given`
-- has only the fields to check.
create function private.assert_as_given("row" jsonb, given jsonb) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'read_only_field', 'Usher sets this field when it adds the row.', g.key, hint => 'Leave it out.', "row" => "row"
  )
  from jsonb_each(given) g
  where jsonb_strip_nulls("row") -> g.key <> g.value;
end
$$;

-- Null means no condition; otherwise one of the listed versions must match.
create function private.assert_version(version integer, if_versions integer[]) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if version <> all (if_versions) then
    perform private.refuse(
      412, 'version_mismatch', 'The object was changed since you read it.', 'if_version',
      jsonb_build_object('version', version), 'Read it again, and apply your change to the current version.'
    );
  end if;
end
$$;
grant execute on function private.assert_version to api_key;

-- The one row that is meant by a name, for a statement that would otherwise change nothing and not say so.
create function private.only_one(ids uuid[], if_none text, if_several text, param text) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  if cardinality(ids) = 0 then
    perform private.refuse(404, 'not_found', if_none, param, hint => 'Check the spelling, and that it belongs to your organisation.');
  elsif cardinality(ids) > 1 then
    perform private.refuse(422, 'ambiguous_name', if_several, param, hint => 'Use the id that the table shows.');
  end if;
  return ids[1];
end
$$;
grant execute on function private.only_one to authenticated;
