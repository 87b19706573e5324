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

create function private.verify_people(event_id uuid) returns setof private.disagreement
language plpgsql stable set search_path = '' set plan_cache_mode = force_custom_plan set jit = off
as $$
declare
  v_fields constant jsonb := (
    select jsonb_object_agg(c.field, c.erased_as) from private.personal_columns c where c.field is not null and c.table_name = 'attendees'
  );
  v_table name;
  v_type_ids uuid[] := array(select t.id from public.ticket_types t where t.event_id = verify_people.event_id);
  v_erased public.attendees[];
begin
  v_erased := array(
    select a
    from public.attendees a
    where a.erased_at is not null and (verify_people.event_id is null or a.ticket_type_id = any (v_type_ids))
  );
  if v_erased = '{}' then
    return;
  end if;

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
    ) using v_erased;
  end loop;

  return query
  select 'an erased person is gone from notifications', 'notifications', n.id, 'their data', 'erased'
  from unnest(v_erased) a
  join public.notifications n on n.subject_id = a.order_id
  where private.says_something_of(n.data::jsonb, a.id, v_fields);

  return query
  select 'an erased person is gone from responses to webhooks', 'webhook_deliveries', d.id, 'a response of before', 'empty'
  from unnest(v_erased) a
  join public.notifications n on n.subject_id = a.order_id and n.data::jsonb @? format('strict $.** ? (@.id == "%s")', a.id)::jsonpath
  join public.webhook_deliveries d on d.notification_id = n.id
  where d.last_response_body is not null and d.last_attempt_at < a.erased_at;

  return query
  select 'an erased person is gone from the audit trail', 'audit_entries', e.id, f.key, '{}'
  from unnest(v_erased) a
  join public.audit_entries e on e.object_id = a.id
  cross join lateral jsonb_each(e.changes) f
  where v_fields ? f.key and f.value <> '{}';

  return query
  select 'an erased person is gone from answers that are replayed', 'idempotency_records', a.id, r.idempotency_key, 'erased'
  from unnest(v_erased) a
  join private.idempotency_records r
    on r.organisation_id = a.organisation_id and private.subject_of_outcome(r.outcome) in (a.order_id::text, a.id::text)
  where private.says_something_of(r.outcome::jsonb, a.id, v_fields);
end
$$;
