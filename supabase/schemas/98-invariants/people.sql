-- Invariants of erasure: nothing that identifies an erased person is left, in their row or in any copy.

-- The ids of objects in a document that are one person's and still say something of them.
create function private.says_something_of(document jsonb, person_id uuid, fields jsonb) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return exists (
    select from jsonb_path_query(
      document, 'strict $.** ? (@.type() == "object" && (@.id == $id || @.attendee_id == $id))', jsonb_build_object('id', person_id), true
    ) d (part)
    join jsonb_each(fields) f on d.part ? f.key and d.part -> f.key <> f.value
  );
end
$$;

-- What was erased of a person: their row, the subject of what notifies of it, and the fields that it no longer has in any copy.
create type private.erased_row as (id uuid, subject_id uuid, organisation_id uuid, fields jsonb);

create function private.verify_people(event_id uuid) returns setof private.disagreement
language plpgsql stable set search_path = ''
as $$
declare
  v_fields constant jsonb := (
    select jsonb_object_agg(c.field, c.erased_as) from private.personal_columns c where c.field is not null and c.table_name = 'attendees'
  );
  -- An order and an entry may be edited afterwards, but then they are called something else.
  v_contact constant jsonb := (select jsonb_object_agg(f.key, f.value) from jsonb_each(v_fields) f where f.key in ('name', 'email'));
  v_table name;
  v_type_ids uuid[] := array(select t.id from public.ticket_types t where t.event_id = verify_people.event_id);
  v_attendees public.attendees[];
  v_buyers private.erased_row[];
  v_waited private.erased_row[];
  v_erased private.erased_row[];
begin
  v_attendees := array(
    select a
    from public.attendees a
    where a.erased_at is not null and (verify_people.event_id is null or a.ticket_type_id = any (v_type_ids))
  );
  v_buyers := array(
    select row(o.id, o.id, o.organisation_id, v_contact)::private.erased_row
    from public.orders o
    where o.email = v_contact ->> 'email' and o.name = v_contact ->> 'name'
      and (verify_people.event_id is null or o.event_id = verify_people.event_id)
  );
  v_waited := array(
    select row(w.id, w.id, w.organisation_id, v_contact)::private.erased_row
    from public.waiting_list_entries w
    where w.email = v_contact ->> 'email' and w.name = v_contact ->> 'name'
      and (verify_people.event_id is null or w.event_id = verify_people.event_id)
  );
  v_erased := v_buyers || v_waited || array(
    select row(a.id, a.order_id, a.organisation_id, v_fields)::private.erased_row from unnest(v_attendees) a
  );

  -- Each column that is declared, of whatever is theirs.
  foreach v_table in array '{attendees,orders,waiting_list_entries,emails}'::name[] loop
    return query execute format(
      $sql$
        select 'an erased person is gone from their rows', %L, t.id, c.column_name::text, coalesce(c.erased_as #>> '{}', 'empty')
        from unnest($1) a
        join public.%I t on %s
        join private.personal_columns c on c.table_name = %1$L
        where coalesce(to_jsonb(t) -> c.column_name, 'null') <> c.erased_as
      $sql$,
      v_table, v_table,
      case v_table
        when 'attendees' then 't.id = a.id'
        -- Where they were its contact: erased with them, and not edited since.
        when 'orders' then $on$t.id = a.order_id and t.updated_at = a.erased_at and t.name = 'Erased'$on$
        when 'waiting_list_entries' then 't.id = a.waiting_list_entry_id and t.updated_at = a.erased_at'
        else 't.attendee_id = a.id'
      end
    ) using v_attendees;
  end loop;

  return query
  select 'an erased person is gone from the addresses of what was sent', 'emails', m.id, m.sent_to, 'empty'
  from (
    select m.* from unnest(v_buyers) b join public.emails m on m.order_id = b.id
    union all
    select m.* from unnest(v_waited) w join public.emails m on m.waiting_list_entry_id = w.id
  ) m
  where m.attendee_id is null and m.sent_to is not null;

  return query
  select 'an erased person is gone from notifications', 'notifications', n.id, 'their data', 'erased'
  from unnest(v_erased) a
  join public.notifications n on n.subject_id = a.subject_id
  where private.says_something_of(n.data::jsonb, a.id, a.fields);

  return query
  select 'an erased person is gone from responses to webhooks', 'webhook_deliveries', d.id, 'a response of before', 'empty'
  from unnest(v_attendees) a
  join public.notifications n on n.subject_id = a.order_id and n.data::jsonb @? format('strict $.** ? (@.id == "%s")', a.id)::jsonpath
  join public.webhook_deliveries d on d.notification_id = n.id
  where d.last_response_body is not null and d.last_attempt_at < a.erased_at;

  return query
  select 'an erased person is gone from the audit trail', 'audit_entries', e.id, f.key, '{}'
  from unnest(v_erased) a
  join public.audit_entries e on e.object_id = a.id
  cross join lateral jsonb_each(e.changes) f
  where a.fields ? f.key and f.value <> '{}';

  if v_erased <> '{}' then
    return query
    select 'an erased person is gone from answers that are replayed', 'idempotency_records', d.id, d.idempotency_key, 'erased'
    from (
      select k.id, k.fields, r.idempotency_key, r.outcome
      from (
        -- Once for each record, and not for each that somebody may be in.
        select
          i.organisation_id, i.idempotency_key, i.outcome,
          case when private.is_of_many(i.outcome) then private.people_in(i.outcome)::text[] else array[private.subject_of_outcome(i.outcome)] end
            as subjects
        from private.idempotency_records i
        offset 0
      ) r
      cross join lateral unnest(r.subjects) s (subject)
      join (
        select a.id, a.organisation_id, a.fields, a.id::text as subject from unnest(v_erased) a
        union all
        select a.id, a.organisation_id, a.fields, a.subject_id::text from unnest(v_erased) a where a.subject_id <> a.id
      ) k on k.subject = s.subject and k.organisation_id = r.organisation_id
      -- Else each record is read for each of them.
      offset 0
    ) d
    where private.says_something_of(d.outcome::jsonb, d.id, d.fields);
  end if;

  return query select * from private.verify_former_holders(event_id, v_contact);
end
$$;

-- Who had a ticket until it passed to somebody else, and was erased: the trail has nothing of them, so it tells when they had it.
create function private.verify_former_holders(event_id uuid, contact jsonb) returns setof private.disagreement
language plpgsql stable set search_path = ''
as $$
declare
  v_type_ids uuid[] := array(select t.id from public.ticket_types t where t.event_id = verify_former_holders.event_id);
begin
  return query
  select 'a former holder who was erased is gone from all sides of a change', 'audit_entries', e.id, 'some of their data', 'all or nothing'
  from public.audit_entries e
  where e.object_type = 'attendee' and e.changes ?& '{name,email}'
    and (
      (e.changes -> 'name' ? 'from') <> (e.changes -> 'email' ? 'from')
      or e.action = 'updated' and (e.changes -> 'name' ? 'to') <> (e.changes -> 'email' ? 'to')
    )
    and (
      verify_former_holders.event_id is null
      or exists (select from public.attendees a where a.id = e.object_id and a.ticket_type_id = any (v_type_ids))
    );

  return query
  with changes as (
    select
      e.object_id,
      e.created_at,
      e.changes ? 'email' and not e.changes -> 'email' ? 'from' or e.changes ? 'name' and not e.changes -> 'name' ? 'from' as was_erased,
      e.changes ? 'email' and not e.changes -> 'email' ? 'to' or e.changes ? 'name' and not e.changes -> 'name' ? 'to' as became_erased,
      lag(e.created_at) over later as before_at,
      lead(e.created_at) over later as after_at
    from public.audit_entries e
    where e.object_type = 'attendee' and e.action = 'updated' and e.changes ?| '{name,email}'
    window later as (partition by e.object_id order by e.id)
  ),
  held as (
    select c.object_id, c.before_at as since, c.created_at as until from changes c where c.was_erased
    union
    select c.object_id, c.created_at, c.after_at from changes c where c.became_erased
  )
  select 'a former holder who was erased is gone from notifications', 'notifications', d.id, 'their data', 'erased'
  from (
    select n.id, n.data, a.id as attendee_id
    from held h
    join public.attendees a on a.id = h.object_id
    join public.notifications n on n.subject_id = a.order_id
      -- A change that waited for another one has a time before it. No statement of the API takes a minute.
      and n.created_at > coalesce(h.since + interval '1 minute', '-infinity')
      and n.created_at < coalesce(h.until - interval '1 minute', 'infinity')
    where verify_former_holders.event_id is null or a.ticket_type_id = any (v_type_ids)
    -- Else every notification is read for it.
    offset 0
  ) d
  where private.says_something_of(d.data::jsonb, d.attendee_id, contact);
end
$$;
