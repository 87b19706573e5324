-- Live arrivals, exits and undone scans for members, by Supabase Realtime where it is present: messages for each statement and event, on the
-- private topic arrivals:EVENT_ID. Not realtime.broadcast_changes, which sends the whole row, and with it what was scanned.
-- Security definer: whoever scans may not write messages.

-- A message holds 100 people: some 200 kB where all have the longest names, of the 256 kB that Realtime takes.
create function private.tg_check_ins__broadcast() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_check_ins public.check_ins[];
  v_message record;
begin
  if to_regnamespace('realtime') is null or to_regprocedure('realtime.send(jsonb, text, text, boolean)') is null then
    return null;
  elsif tg_op = 'UPDATE' then
    v_check_ins := array[new];
  else
    v_check_ins := array(select row(n.*)::public.check_ins from new_rows n where n.result = 'accepted');
  end if;
  begin
    for v_message in
      select s.event_id, s.kind, jsonb_agg(s.person order by s.place) as people
      from (
        select
          k.kind, c.event_id,
          row_number() over (partition by c.event_id, k.kind order by c.id) as place,
          jsonb_build_object(
            'check_in_id', c.id, 'attendee_id', a.id, 'name', a.name, 'company', a.company, 'ticket_type_id', a.ticket_type_id,
            'check_in_point_id', c.check_in_point_id, 'direction', c.direction, 'scanned_at', private.rfc3339(c.scanned_at)
          ) as person
        from unnest(v_check_ins) c
        join public.attendees a on a.id = c.attendee_id
        cross join lateral (
          select case when c.undone_at is not null then 'undone' when c.direction = 'exit' then 'exits' else 'arrivals' end as kind
        ) k
      ) s
      group by s.event_id, s.kind, (s.place - 1) / 100
      order by s.event_id, s.kind, min(s.place)
    loop
      execute 'select realtime.send($1, $2, $3, true)'
      using
        jsonb_build_object('event_id', v_message.event_id, v_message.kind, v_message.people), v_message.kind,
        'arrivals:' || v_message.event_id;
    end loop;
  exception when others then
    -- Nobody is kept out because a screen does not move.
    raise warning 'Realtime: %', sqlerrm;
  end;
  return null;
end
$$;
create trigger check_ins_900_broadcast after insert on public.check_ins
  referencing new table as new_rows for each statement execute function private.tg_check_ins__broadcast();
create trigger check_ins_900_broadcast_undo after update on public.check_ins
  for each row when (new.undone_at is distinct from old.undone_at) execute function private.tg_check_ins__broadcast();

-- Members may listen to the events of their organisations.
create function private.may_listen(topic text) returns boolean
language plpgsql stable security definer set search_path = ''
as $$
begin
  return exists (
    select from public.events e
    where topic = 'arrivals:' || e.id
      and e.organisation_id in (select private.organisations_as('{owner,manager,door,viewer}'))
  );
end
$$;
grant execute on function private.may_listen to authenticated;

-- Lets members listen, where Realtime is there: again where a project has got it later. Returns whether they may. As postgres.
create function private.set_up_realtime() returns boolean
language plpgsql volatile set search_path = ''
as $$
begin
  if to_regclass('realtime.messages') is null then
    return false;
  end if;
  drop policy if exists usher_members_listen_to_arrivals on realtime.messages;
  create policy usher_members_listen_to_arrivals on realtime.messages for select to authenticated
    using (extension = 'broadcast' and private.may_listen((select realtime.topic())));
  return true;
end
$$;
select private.set_up_realtime();
