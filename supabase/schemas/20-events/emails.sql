-- What guests are told of a change of their event, when, and by whom. What queues them is security definer: no role may write e-mails.

-- What attendees are told of an event, and told again when it changes.
create function private.announced(event public.events) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select jsonb_object_agg(f.key, f.value)
    from jsonb_each(private.event_json(event)::jsonb) f
    where f.key in ('name', 'starts_at', 'ends_at', 'timezone', 'venue', 'online_url')
  );
end
$$;
grant execute on function private.announced to scope_events_write;

create table private.unannounced_changes (
  event_id uuid not null,
  previous jsonb not null,
  changed_at timestamptz not null default now(),
  mailed jsonb,
  constraint unannounced_changes_pkey primary key (event_id),
  constraint unannounced_changes_event_id_fkey foreign key (event_id) references public.events (id) on delete cascade
);
comment on table private.unannounced_changes is 'Events that changed or were cancelled since their attendees were last e-mailed, with what attendees know and the time of the last change.';
comment on column private.unannounced_changes.mailed is 'What attendees of e-mailed orders have been told since; null: nothing. All others know the value of previous.';
alter table private.unannounced_changes enable row level security;

create function private.tg_events__note_change() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into private.unannounced_changes (event_id, previous) values (new.id, private.announced(old))
  on conflict on constraint unannounced_changes_pkey do update set changed_at = now();
  return null;
end
$$;
create trigger events_500_note_change after update on public.events
  for each row when (
    -- What is edited while the event is completed is to be told once it is published again.
    old.status in ('published', 'completed')
    and (
      new.status = 'cancelled'
      or new.status in ('published', 'completed')
      and (
        new.name, new.starts_at, new.ends_at, new.timezone,
        new.venue_name, new.venue_address, new.venue_city, new.venue_postcode, new.venue_country, new.online_url
      ) is distinct from (
        old.name, old.starts_at, old.ends_at, old.timezone,
        old.venue_name, old.venue_address, old.venue_city, old.venue_postcode, old.venue_country, old.online_url
      )
    )
  )
  execute function private.tg_events__note_change();

-- Whom the cancellation of an event is told, or would be: whoever held a place, the buyers of the orders that it cancelled, and its waiting
-- list. With `changed_at`, whom this change of it is told: its attendees and its waiting list.
create function private.recipients_of_event(event public.events, notify public.notify, changed_at timestamptz default null)
returns private.recipient[]
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_attendee_ids uuid[] := array(
    select a.id
    from public.ticket_types t
    join public.attendees a on a.ticket_type_id = t.id
    where t.event_id = event.id
      and case event.status when 'cancelled' then a.cancelled_at = event.cancelled_at else a.status <> 'cancelled' end
  );
begin
  return case
    when changed_at is not null then private.recipients(v_attendee_ids, notify, changed_at, 'event_changed')
    else private.with_buyers(
      private.recipients(v_attendee_ids, notify),
      array(
        select o.id
        from public.orders o
        where o.event_id = event.id
          and case event.status when 'cancelled' then o.cancelled_at = event.cancelled_at else o.status <> 'cancelled' end
      ),
      notify
    )
  end || private.recipients_on_waiting_list(event, notify, changed_at);
end
$$;

-- The addresses for which an e-mail of a change waits, and whether it still has news: one that says what is as it was again is not sent. Locked,
-- so that no courier takes one with what the event was before this transaction. Whoever has a ticket is told as an attendee, and not of an
-- offer; one to an address that has switched off since will not be sent. What waits says the newest message.
create function private.waiting_news(recipients private.recipient[], news jsonb, message text, out pending text[], out settled text[])
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_attendee_ids uuid[] := array(select r.attendee_id from unnest(recipients) r where r.attendee_id is not null);
  v_entry_ids uuid[] := array(select r.waiting_list_entry_id from unnest(recipients) r where r.waiting_list_entry_id is not null);
begin
  select
    coalesce(array_agg(w.email_lower) filter (where w.previous is distinct from news), '{}'),
    coalesce(array_agg(w.email_lower) filter (where w.previous = news), '{}')
  into pending, settled
  from (
    select a.email_lower, e.previous
    from public.emails e
    join public.attendees a on a.id = e.attendee_id
    where e.attendee_id = any (v_attendee_ids) and e.kind = 'event_changed' and e.status = 'queued' and e.claim is null
      and not private.has_opted_out(a)
    for no key update of e
  ) w;
  pending := pending || array(
    select w.email_lower
    from public.emails e
    join public.waiting_list_entries w on w.id = e.waiting_list_entry_id
    where e.waiting_list_entry_id = any (v_entry_ids) and e.kind = 'waiting_list_offer' and e.status = 'queued' and e.claim is null
      and w.email_lower not in (select r.email_lower from unnest(recipients) r where r.attendee_id is not null and r.reason is null)
    for no key update of e
  );
  update public.emails e set message = waiting_news.message
  where waiting_news.message is not null and e.status = 'queued' and e.claim is null
    and (
      e.attendee_id = any (v_attendee_ids) and e.kind = 'event_changed'
      or e.waiting_list_entry_id = any (v_entry_ids) and e.kind = 'waiting_list_offer'
    );
end
$$;

-- Those of the recipients for whom there is no news, and why. Who was told since, because their order has e-mails (is_mailed, from here on),
-- knows what is `mailed`, and so does whoever shares their address, but for the money of another order. An e-mail that waits shows what is
-- when it is sent, whomever it is for.
create function private.with_news(
  recipients private.recipient[], change private.unannounced_changes, news jsonb, pending text[], settled text[]
) returns private.recipient[]
language plpgsql stable set search_path = ''
as $$
begin
  return array(
    select row(
      r.organisation_id, r.attendee_id, r.waiting_list_entry_id, r.order_id, r.email_lower,
      case
        when r.was_told and change.mailed = news then 'told_before'
        when r.email_lower in (select unnest(pending)) then nullif(r.reason, 'send_email_false')
        when not r.was_told and change.previous = news or r.email_lower in (select unnest(settled))
          then coalesce(r.reason, 'nothing_to_tell')
        else r.reason
      end,
      r.was_told, r.cancelled_at
    )::private.recipient
    from (
      select r.*, change.mailed is not null and case
        when r.order_id is not null then r.reason is null and r.is_mailed
        else bool_or(r.reason is null and r.is_mailed and (r.order_id is null or r.attendee_id is null)) over (partition by r.email_lower)
      end as was_told
      from unnest(recipients) with ordinality r
    ) r
    order by r.ordinality
  );
end
$$;

-- Tells the attendees of an event what changed since they were last told, in ten minutes, so that changes which follow one another make
-- one e-mail, with the first old and the last new, and repeats the offers of its waiting list; or that it was cancelled, once, with its buyers
-- and its waiting list. Whoever is told `mailed` first and `everybody` after tells each once. The caller has locked the event. Answers as
-- private.tell, or null where nobody is to be told.
create function private.notify_of_event(event_id uuid, notify public.notify, message text default null) returns jsonb
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_event public.events;
  v_change private.unannounced_changes;
  v_news jsonb := '"cancelled"';
  v_recipients private.recipient[];
  v_pending text[] := '{}';
  v_settled text[] := '{}';
  v_notice jsonb;
begin
  message := private.sound_message(message, notify);
  select e.* into v_event from public.events e where e.id = notify_of_event.event_id;
  perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
  if coalesce(notify, 'nobody') = 'nobody' then
    return null;
  elsif v_event.status not in ('published', 'cancelled') then
    return '{"nobody_because": "event_not_published"}';
  end if;
  select c.* into v_change from private.unannounced_changes c where c.event_id = v_event.id;
  if not found then
    return '{"nobody_because": "nothing_to_tell"}';
  end if;

  v_recipients := private.recipients_of_event(v_event, notify, case v_event.status when 'published' then v_change.changed_at end);
  if v_event.status = 'published' then
    v_news := private.announced(v_event);
    select w.* into v_pending, v_settled from private.waiting_news(v_recipients, v_news, message) w;
  end if;
  v_recipients := private.with_news(v_recipients, v_change, v_news, v_pending, v_settled);
  v_notice := private.tell(
    case v_event.status when 'cancelled' then 'event_cancelled' else 'event_changed' end::public.email_kind,
    v_recipients, message, v_change.previous, v_change.mailed,
    now() + case v_event.status when 'cancelled' then interval '0' else interval '10 minutes' end,
    v_pending
  );

  if exists (select from unnest(v_recipients) r where r.reason = 'send_email_false') then
    update private.unannounced_changes c set mailed = v_news where c.event_id = v_event.id;
  else
    delete from private.unannounced_changes c where c.event_id = v_event.id;
  end if;
  return v_notice || jsonb_build_object('previous', v_change.previous);
end
$$;
grant execute on function private.notify_of_event to scope_events_write;

-- What a call has guests read, as { field: [before, now] }, and how many: by its notice, or by those of an earlier call that wait to be
-- sent, for they say what the event is then. `was` is the event before the call. Security definer: no role may read e-mails.
create function private.news_of_event(was public.events, event public.events, notice jsonb) returns jsonb
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_before jsonb := private.announced(was);
  v_now jsonb := private.announced(event);
  v_told integer := coalesce((notice ->> 'told')::integer, 0);
begin
  if v_now <> v_before then
    v_told := greatest(v_told, (
      select count(*)
      from public.emails e
      where e.organisation_id = event.organisation_id and e.status = 'queued'
        and e.previous is distinct from v_now
        and (
          e.kind in ('event_changed', 'event_cancelled', 'ticket_cancelled', 'order_cancelled', 'waiting_list_cancelled')
          -- An offer that was repeated; the first is a notice of nothing.
          or e.kind = 'waiting_list_offer'
            and e.created_at > (select w.offered_at from public.waiting_list_entries w where w.id = e.waiting_list_entry_id)
        )
        and event.id = coalesce(
          (select a.event_id from public.attendees a where a.id = e.attendee_id),
          (select o.event_id from public.orders o where o.id = e.order_id),
          (select w.event_id from public.waiting_list_entries w where w.id = e.waiting_list_entry_id)
        )
    ));
  end if;
  v_before := coalesce(notice -> 'previous', v_before);
  if event.status = 'cancelled' then
    v_before := v_before || '{"status": "published"}';
    v_now := v_now || '{"status": "cancelled"}';
  end if;
  return jsonb_build_object('told', v_told, 'news', (
    select coalesce(jsonb_object_agg(n.key, jsonb_build_array(v_before -> n.key, n.value)), '{}')
    from jsonb_each(v_now) n
    where n.value is distinct from v_before -> n.key
  ));
end
$$;
grant execute on function private.news_of_event to scope_events_write;

-- For owners and managers who are signed in, and for the SQL editor.
create function public.notify_attendees(event_id uuid, notify public.notify default 'mailed', message text default null) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform from public.events e
  where e.id = notify_attendees.event_id and private.is_managed(e.organisation_id)
  for no key update;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;
  return coalesce((private.notify_of_event(event_id, notify, message) ->> 'emails')::integer, 0);
end
$$;
comment on function public.notify_attendees is
  'E-mails the attendees of an event what changed since the last e-mail, ten minutes later, and repeats its waiting-list offers. For a cancelled event it also e-mails buyers and the waiting list. mailed: only orders with e-mails; everybody: all. Opt-outs from changes are respected. message: your own words. Returns the number of e-mails.';
revoke all on function public.notify_attendees from public, anon, service_role;
grant execute on function public.notify_attendees to authenticated;
