-- Everything that is derived, recounted from what it is derived from. Reads only, in one snapshot: nobody waits for it.

create function private.verify_invariants(event_id uuid default null, at_most integer default 100) returns setof private.disagreement
language plpgsql stable set search_path = '' set work_mem = '128MB'
as $$
begin
  return query
  select f."check", f."table", f.id, f.stored, f.expected
  from (
    select d.*, row_number() over (partition by d."check") as place
    from (
      select * from private.verify_orders(event_id)
      union all select * from private.verify_places(event_id)
      union all select * from private.verify_check_ins(event_id)
      union all select * from private.verify_outbox(event_id)
      union all select * from private.verify_people(event_id)
    ) d
  ) f
  where f.place <= at_most
  order by f."check", f.id;
end
$$;
comment on function private.verify_invariants is
  'Rows that are not what a recount of others says, of one event or of all: at most some for each check. None, or something is wrong. usher doctor --deep runs it.';
