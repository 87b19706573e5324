-- Pages of a list: the cursor, and the limits in rows and in bytes.
--
-- A list with filters by status first finds the ids of its page (private.page_of_attendees and its like), then reads these rows
-- under the caller's policies. The index of such a list has every status before the id, and a page is merged from one range for
-- each combination of them, so that it costs the same whatever matches, and however little. Three things keep the planner
-- from any other way, on tables that were never analysed and in generic plans as well:
-- * The finders are security definer, and compare the organisation themselves. Equality of enums is not leakproof, so under
--   row level security no index on a status is used.
-- * They switch off sorting, and order by the first column of the index before the id. That column is compared with
--   `= any`, for after an equality the planner leaves it out of the order, and the primary key has the order of the id as well.
-- * Conditions that are optional select the query, or the list of values of a status; none is part of an index condition.

-- A cursor is the last id of a page in base64url: opaque to clients, validated here. Ids never change, so paging neither
-- skips nor repeats a row that exists throughout, whatever is edited meanwhile.
create function private.encode_cursor(id uuid) returns text
language plpgsql immutable set search_path = ''
as $$ begin return rtrim(translate(encode(uuid_send(id), 'base64'), '+/', '-_'), '='); end $$;
grant execute on function private.encode_cursor to api_key;

create function private.decode_cursor(cursor text) returns uuid
language plpgsql stable set search_path = ''
as $$
begin
  if cursor !~ '^[A-Za-z0-9_-]{22}$' then
    perform private.refuse(
      422, 'validation_failed', 'The cursor is not valid.', 'cursor',
      hint => 'Send the next_cursor of the previous page unchanged, or leave the cursor out to start again.'
    );
  end if;
  return encode(decode(translate(cursor, '-_', '+/') || '==', 'base64'), 'hex')::uuid;
end
$$;
grant execute on function private.decode_cursor to api_key;

-- Where a list that is newest first continues: its ids are less than this. Never null, for an index condition cannot be optional.
create function private.before_cursor(cursor text) returns uuid
language plpgsql stable set search_path = ''
as $$ begin return coalesce(private.decode_cursor(cursor), 'ffffffff-ffff-ffff-ffff-ffffffffffff'); end $$;
grant execute on function private.before_cursor to api_key;

create function private.page_size("limit" integer) returns integer
language plpgsql immutable set search_path = ''
as $$ begin return greatest(1, least(coalesce("limit", 50), 100)); end $$;
grant execute on function private.page_size to api_key;

-- Most bytes that the items of a page have together; a page has at least one item, however large.
create function private.page_bytes() returns integer
language plpgsql immutable set search_path = ''
as $$ begin return 1048576; end $$;
grant execute on function private.page_bytes to api_key;

-- A list that is by start has the start in its cursors as well, so that they have another form and no other list takes them. It is the
-- start that was shown: paging goes on from there, even if the event was moved or deleted meanwhile. No start is infinity.
create type private.start_position as (starts_at timestamptz, id uuid);

create function private.encode_start_cursor("position" private.start_position) returns text
language plpgsql immutable set search_path = ''
as $$
begin
  return coalesce(nullif(to_char("position".starts_at at time zone 'UTC', 'YYYYMMDD"T"HH24MISS"_"US"Z"'), ''), 'infinity')
    || replace("position".id::text, '-', '');
end
$$;
grant execute on function private.encode_start_cursor to scope_events_read;

-- Where such a list continues; before the first without a cursor. Never null, as private.before_cursor.
create function private.after_start_cursor(cursor text) returns private.start_position
language plpgsql stable set search_path = ''
as $$
begin
  if cursor is null then
    return row('-infinity'::timestamptz, '00000000-0000-0000-0000-000000000000'::uuid);
  elsif cursor !~ '^(infinity|\d{8}T\d{6}_\d{6}Z)[0-9a-f]{32}$' then
    raise data_exception;
  end if;
  return row(translate(left(cursor, -32), '_', '.')::timestamptz, right(cursor, 32)::uuid);
exception when data_exception then
  perform private.refuse(
    422, 'validation_failed', 'The cursor is not valid.', 'cursor',
    hint => 'Send next_cursor of the previous page unchanged and with the same sort, or leave the cursor out to start again.'
  );
end
$$;
grant execute on function private.after_start_cursor to scope_events_read;

-- A list operation builds one item more than the page has; where items are large (events, orders, attendees, notifications), it stops
-- at the first that is too much in bytes. The surplus item shows that there is more. Answers are json, not jsonb, throughout: the fields
-- keep the order in which they are written.
--
-- Whoever does not continue after the id of the last item gives the cursor of each item.
create function private.page(items json[], size integer, cursors text[] default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_kept integer := least(coalesce(cardinality(items), 0), size);
  v_bytes integer := private.page_bytes();
  v_sum bigint := 0;
begin
  if pg_column_size(items) > v_bytes then
    for i in 1..v_kept loop
      v_sum := v_sum + pg_column_size(items[i]);
      if v_sum > v_bytes and i > 1 then
        v_kept := i - 1;
        exit;
      end if;
    end loop;
  end if;
  return json_build_object(
    'data', coalesce(to_json(items[1:v_kept]), '[]'),
    'has_more', coalesce(cardinality(items), 0) > v_kept,
    'next_cursor', case
      when cardinality(items) > v_kept then coalesce(cursors[v_kept], private.encode_cursor((items[v_kept] ->> 'id')::uuid))
    end
  );
end
$$;
grant execute on function private.page to api_key;
