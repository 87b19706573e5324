-- Warnings: what was done, and probably not meant. They refuse nothing, and stand in the outcome beside the object. The rules are in the file
-- warnings.sql of each room, each a function that answers a warning or null.

create function private.warning(code text, message text) returns jsonb
language plpgsql immutable set search_path = ''
as $$ begin return jsonb_build_object('code', code, 'message', message); end $$;
grant execute on function private.warning to api_key;

-- The outcome with those that are not null.
create function private.with_warnings(outcome json, variadic warnings jsonb[]) returns json
language plpgsql immutable set search_path = ''
as $$
begin
  if num_nonnulls(variadic warnings) = 0 then
    return outcome;
  end if;
  -- Built as text, so that the fields keep their order.
  return (left(outcome::text, -1) || ', "warnings": ' || to_json(array_remove(warnings, null)) || '}')::json;
end
$$;
grant execute on function private.with_warnings to api_key;
