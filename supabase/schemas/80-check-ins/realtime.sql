-- Live arrivals for members, by Supabase Realtime where it is present: one message for each statement and event, on the private topic
-- arrivals:EVENT_ID. Not realtime.broadcast_changes, which sends the whole row, and with it what was scanned.
-- Security definer: whoever scans may not write messages.

create function private.tg_check_ins__broadcast() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_arrivals record;
begin
  if to_regnamespace('realtime') is null or to_regprocedure('realtime.send(jsonb, text, text, boolean)') is null then
    return null;
  end if;
  begin
    for v_arrivals in
      select n.event_id, jsonb_agg(jsonb_build_object(
        'check_in_id', n.id, 'attendee_id', a.id, 'name', a.name, 'company', a.company, 'ticket_type_id', a.ticket_type_id,
        'scanned_at', private.rfc3339(n.scanned_at)
      ) order by n.id) as people
      from new_rows n
      join public.attendees a on a.id = n.attendee_id
      where n.result = 'accepted' and n.direction = 'entry'
      group by n.event_id
    loop
      execute 'select realtime.send($1, $2, $3, true)'
      using
        jsonb_build_object('event_id', v_arrivals.event_id, 'arrivals', v_arrivals.people), 'arrivals', 'arrivals:' || v_arrivals.event_id;
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

do $$
begin
  if to_regclass('realtime.messages') is not null then
    create policy usher_members_listen_to_arrivals on realtime.messages for select to authenticated
      using (private.may_listen((select realtime.topic())));
  end if;
end
$$;
