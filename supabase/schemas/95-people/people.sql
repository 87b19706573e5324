-- People by their e-mail address. A person is a name under an address, in one organisation: an address may be that of ten guests, of whom the
-- buyer gave theirs. Names are compared as private.person_form has them.

-- What stands under an address: an attendee, the contact of an order, an entry of the waiting list; and what did, until it passed to
-- somebody else, by an entry of the audit trail.
create type private.personal_row as (
  object text,
  is_former boolean,
  id uuid,
  event_id uuid,
  name text,
  form text,
  company text,
  status text,
  created_at timestamptz
);

-- Of each kind the newest, at most so many. With `forms` those of these names alone, and what was called so before its name was changed.
-- Security definer, as of every list: see 00-ground/pages.sql.
create function private.rows_of_address(organisation_id uuid, address text, forms text[], most integer) returns setof private.personal_row
language plpgsql stable security definer
set search_path = '' set enable_seqscan = off set enable_sort = off set enable_incremental_sort = off set jit = off
as $$
declare
  v_organisation_ids constant uuid[] := array[organisation_id];
  v_attendee_ids uuid[];
begin
  -- That of everybody who was erased.
  if address = private.erased_fields() ->> 'email' then
    return;
  end if;
  v_attendee_ids := array(
    select a.id
    from public.attendees a
    where a.organisation_id = any (v_organisation_ids) and a.email_lower = address and a.erased_at is null
      and (forms is null or private.person_form(a.name) = any (forms))
    order by a.organisation_id desc, a.id desc
    limit most
  );
  return query
  select 'attendee', false, a.id, a.event_id, a.name, private.person_form(a.name), a.company, a.status::text, a.created_at
  from public.attendees a
  where a.id = any (v_attendee_ids);

  return query
  select 'order', false, o.id, o.event_id, o.name, o.form, o.company, o.status::text, o.created_at
  from (
    select o.*, private.person_form(o.name) as form
    from public.orders o
    where o.id = any (array(
      select o.id
      from public.orders o
      where o.organisation_id = any (v_organisation_ids) and o.email_lower = address
        and (forms is null or private.person_form(o.name) = any (forms))
      order by o.organisation_id desc, o.id desc
      limit most
    ))
    union
    -- The contact of their ticket's order, by name.
    select o.*, private.person_form(o.name)
    from public.attendees a
    cross join lateral (select o.* from public.orders o where o.id = a.order_id offset 0) o
    where a.id = any (v_attendee_ids) and private.person_form(o.name) = private.person_form(a.name)
  ) o;

  return query
  select 'waiting_list_entry', false, w.id, w.event_id, w.name, private.person_form(w.name), w.company, w.status::text, w.created_at
  from public.waiting_list_entries w
  where w.id = any (array(
    select w.id
    from public.waiting_list_entries w
    where w.organisation_id = any (v_organisation_ids) and w.email_lower = address
      and (forms is null or private.person_form(w.name) = any (forms))
    order by w.organisation_id desc, w.id desc
    limit most
  ));

  return query
  with passed as (
    (
      select e.object_type::text as object, e.object_id, e.changes, e.created_at
      from public.audit_entries e
      where e.organisation_id = any (v_organisation_ids) and e.changes #>> '{email,from}' is not null
        and lower(e.changes #>> '{email,from}') = address
        and e.object_type in ('attendee', 'order', 'waiting_list_entry')
      order by e.organisation_id desc, e.id desc
      limit most
    )
    union all
    -- The address stayed, the name did not.
    select r.object, r.id, e.changes, e.created_at
    from (
      select r.object, r.id from private.rows_of_address(organisation_id, address, null, most) r where forms is not null and not r.is_former
    ) r
    cross join lateral (
      select e.changes, e.created_at from public.audit_entries e
      where e.object_id = r.id and e.changes #>> '{name,from}' is not null and e.changes #>> '{email,from}' is null
      offset 0
    ) e
  ),
  named as (
    -- Of what was deleted the entry has every field.
    select
      p.*, coalesce(n.event_id, (p.changes #>> '{event_id,from}')::uuid) as event_id, coalesce(p.changes #>> '{name,from}', n.name) as name
    from passed p
    left join lateral (
      select a.event_id, a.name from public.attendees a where a.id = p.object_id and p.object = 'attendee'
      union all
      select o.event_id, o.name from public.orders o where o.id = p.object_id and p.object = 'order'
      union all
      select w.event_id, w.name from public.waiting_list_entries w where w.id = p.object_id and p.object = 'waiting_list_entry'
    ) n on true
  )
  select distinct on (n.object_id, private.person_form(n.name))
    n.object, true, n.object_id, n.event_id, n.name, private.person_form(n.name), n.changes #>> '{company,from}', null, n.created_at
  from named n
  where n.name is not null and (forms is null or private.person_form(n.name) = any (forms));
end
$$;

-- Whether the caller may read people, and contacts of orders. Whoever comes without a key was asked for their role.
create function private.may_read_rows(object text) returns boolean
language plpgsql stable set search_path = ''
as $$
declare
  v_claims jsonb := private.claims();
begin
  return not v_claims ? 'organisation_id'
    or v_claims ->> 'role' = case object when 'order' then 'scope_orders_read' else 'scope_attendees_read' end
    or coalesce(
      case object when 'order' then 'orders:read' else 'attendees:read' end::public.api_scope = any (private.current_scopes()), false
    );
end
$$;

-- The people among rows, newest first: { people, hidden, more }. `people` have what tells them apart, as far as the caller may read it;
-- of the others there is the number. Each has at most so many records, and all together about a hundred.
create function private.people_json(rows private.personal_row[], most integer, most_records integer) returns jsonb
language plpgsql stable set search_path = '' set enable_seqscan = off
as $$
declare
  v_reads_orders constant boolean := private.may_read_rows('order');
  v_reads_people constant boolean := private.may_read_rows('attendee');
  v_scopes constant public.api_scope[] :=
    case when private.claims() ? 'organisation_id' then private.current_scopes() else '{events:read}' end;
  v_people jsonb;
  v_visible integer;
  v_all integer;
begin
  with people as (
    select
      r.form,
      bool_or(r.may_read) as may_read,
      max(r.created_at) as last_at,
      (array_agg(r.name order by r.created_at desc, r.id) filter (where r.may_read))[1] as name,
      (array_agg(distinct r.company) filter (where r.may_read and r.company is not null))[:3] as companies,
      count(*) filter (where r.object = 'attendee' and not r.is_former) as attendees,
      count(*) filter (where r.object = 'order' and not r.is_former) as orders,
      count(*) filter (where r.object = 'waiting_list_entry' and not r.is_former) as waiting_list_entries,
      count(*) filter (where r.is_former) as passed_on,
      array_agg(row(r.object, r.is_former, r.id, r.event_id, r.name, r.form, r.company, r.status, r.created_at)::private.personal_row
        order by r.created_at desc, r.id) filter (where r.may_read) as rows
    from (
      select r.*, case r.object when 'order' then v_reads_orders else v_reads_people end as may_read
      from unnest(people_json.rows) r
    ) r
    group by r.form
  )
  select
    count(*), count(*) filter (where p.may_read),
    jsonb_agg(
      jsonb_build_object(
        'name', p.name,
        'companies', coalesce(to_jsonb(p.companies), '[]'),
        'attendees', p.attendees,
        'orders', p.orders,
        'waiting_list_entries', p.waiting_list_entries,
        'passed_on', p.passed_on,
        'records', (
          select coalesce(jsonb_agg(jsonb_build_object(
            'object', r.object,
            'id', r.id,
            'passed_on', r.is_former,
            'event', case when exists (select from public.events e where e.id = r.event_id)
              then private.event_shown(r.event_id, v_scopes) - '{status,slug,starts_at,object}'::text[] end,
            'status', r.status,
            'created_at', private.rfc3339(r.created_at)
          ) order by r.place), '[]')
          from unnest(p.rows[:greatest(2, least(most_records, 100 / (select count(*)::integer from people)))])
            with ordinality r (object, is_former, id, event_id, name, form, company, status, created_at, place)
        )
      )
      order by p.last_at desc, p.form
    ) filter (where p.may_read and p.place <= most)
  into v_all, v_visible, v_people
  from (select p.*, row_number() over (order by p.may_read desc, p.last_at desc, p.form) as place from people p) p;
  return jsonb_build_object(
    'people', coalesce(v_people, '[]'), 'hidden', v_all - v_visible, 'more', v_visible > most
  );
end
$$;

-- What an erasure leaves besides, of an account and of the organisation, and of other people under the address.
create function private.kept_besides(organisation_id uuid, address text, others integer) returns jsonb
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object('what', k.what, 'count', k.count, 'why', k.why, 'order_references', '[]'::jsonb) order by k.place), '[]')
    from (
      values
        (1, 'other_people', others::bigint, 'Others have this e-mail address: what is theirs stays, the address included.'),
        (
          2, 'members',
          case when private.may_read_rows('attendee') then (
            select count(*)
            from public.organisation_members m
            where m.organisation_id = kept_besides.organisation_id
              and (exists (select from auth.users u where u.id = m.user_id and lower(u.email) = address) or lower(m.email) = address)
          ) else 0 end,
          'A member of the organisation has this address. An account, its keys and what it did stay: remove the member, or the user in Supabase.'
        ),
        (
          3, 'settings',
          (select count(*) from public.organisations o where o.id = kept_besides.organisation_id and lower(o.reply_to_email) = address),
          'Guests answer to this address: it is reply_to_email of the organisation.'
        ),
        (4, 'sent', null, 'What e-mails, webhooks and backups have carried elsewhere is out of reach.')
    ) k (place, what, count, why)
    where k.count is null or k.count > 0
  );
end
$$;
