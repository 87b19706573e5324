-- The time that a statement has: statement_timeout, 8 s for the roles of the API. Work on a list ends before it, and says what remains.

-- Whether a third of it is used up: the rest is for the part in hand and the answer on a slow machine, and for whoever waits for this one's
-- locks and has a part to do after it. What nobody waits for may have a larger share. Without a time-out there is no end.
create function private.is_time_up(share double precision default 0.333) returns boolean
language plpgsql volatile set search_path = ''
as $$
declare
  v_limit interval := current_setting('statement_timeout');
begin
  return v_limit > interval '0' and clock_timestamp() > statement_timestamp() + v_limit * share;
end
$$;
grant execute on function private.is_time_up to scope_attendees_write, scope_checkin_write;

-- From now on, a wait for a lock ends while there is time for a part: called before each wait, for they add up. Whoever holds the lock goes
-- on meanwhile, so the same request may be sent again, which is no help to a statement that has too much to do.
create function private.limit_lock_waits() returns void
language plpgsql volatile set search_path = ''
as $$
declare
  v_limit interval := current_setting('statement_timeout');
  v_left interval := statement_timestamp() + v_limit * 0.6 - clock_timestamp();
begin
  if v_limit > interval '0' then
    -- Any statement may wait a moment, as for a table that another one extends.
    perform set_config('lock_timeout', ceil(greatest(date_part('epoch', v_left), 1) * 1000)::text, true);
  end if;
end
$$;
grant execute on function private.limit_lock_waits to scope_attendees_write, scope_checkin_write;
