-- People by their e-mail address. A person is a name under an address, in one organisation: an address may be that of ten guests, of whom the
-- buyer gave theirs. Names are compared as they are looked for, by private.search_form: whoever asks to be erased does not stay for an accent.

-- What stands under an address: an attendee, the contact of an order, a waiting-list entry, what was typed of a member; and what
-- did, until it passed to somebody else or the member left, by an entry of the audit trail.
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

-- Who had rows until each of their changes. An entry of the audit trail has only what it changed, so it is read from the newest back, and
-- begins with the row as it is; of a row that was deleted the entry has every field. What was erased is null. `leaves`: the address was
-- changed, or the row deleted. The row may have the address now, or be theirs now, by address and name.
create function private.former_holders(object_ids uuid[])
returns table (
  object text, object_id uuid, entry_id uuid, event_id uuid, address text, name text, form text, company text, created_at timestamptz,
  leaves boolean, has_address boolean, is_theirs boolean
)
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_entry record;
begin
  for v_entry in
    select e.object_type::text, e.object_id, e.id, e.changes, e.created_at, n.event_id, n.name, lower(n.email) as address
    from public.audit_entries e
    left join lateral (
      select a.event_id, a.name, a.email from public.attendees a where a.id = e.object_id and e.object_type = 'attendee'
      union all
      select o.event_id, o.name, o.email from public.orders o where o.id = e.object_id and e.object_type = 'order'
      union all
      select w.event_id, w.name, w.email from public.waiting_list_entries w where w.id = e.object_id and e.object_type = 'waiting_list_entry'
    ) n on true
    where e.object_id = any (object_ids) and e.changes is not null
    order by e.object_id desc, e.id desc
  loop
    if object_id is distinct from v_entry.object_id then
      event_id := coalesce(v_entry.event_id, (v_entry.changes #>> '{event_id,from}')::uuid);
      address := v_entry.address;
      name := v_entry.name;
    end if;
    object := v_entry.object_type;
    object_id := v_entry.object_id;
    entry_id := v_entry.id;
    leaves := v_entry.changes ? 'email' and lower(v_entry.changes #>> '{email,from}') is distinct from lower(v_entry.changes #>> '{email,to}');
    if v_entry.changes ? 'email' then
      address := lower(v_entry.changes #>> '{email,from}');
    end if;
    if v_entry.changes ? 'name' then
      name := v_entry.changes #>> '{name,from}';
    end if;
    form := private.search_form(name);
    company := v_entry.changes #>> '{company,from}';
    created_at := v_entry.created_at;
    has_address := coalesce(address = v_entry.address, false);
    is_theirs := has_address and form = private.search_form(v_entry.name);
    return next;
  end loop;
end
$$;

-- Of which members something was typed under an address. With `forms` those of these names, and those without one, whose form is ''. Who was
-- removed, or has another address now, is in the trail alone.
create function private.members_of_address(organisation_id uuid, address text, forms text[]) returns setof private.personal_row
language plpgsql stable set search_path = ''
as $$
begin
  return query
  select
    'member', not bool_or(f.has_address), f.user_id, null::uuid, coalesce((array_agg(f.name order by f.created_at desc))[1], ''), n.form,
    null, null, max(f.created_at)
  from (
    select m.user_id, m.name, true as has_address, m.created_at
    from public.organisation_members m
    where m.organisation_id = members_of_address.organisation_id and lower(m.email) = address
    union all
    -- Entries of members are few.
    select
      e.object_id, coalesce(m.name, e.changes #>> '{name,to}', e.changes #>> '{name,from}', l.name), false, e.created_at
    from public.audit_entries e
    left join public.organisation_members m on m.organisation_id = e.organisation_id and m.user_id = e.object_id
    -- An entry has only what it changed.
    left join lateral (
      select coalesce(o.changes #>> '{name,to}', o.changes #>> '{name,from}') as name
      from public.audit_entries o
      where o.object_id = e.object_id and o.organisation_id = e.organisation_id and o.object_type = 'member'
        and coalesce(o.changes #>> '{name,to}', o.changes #>> '{name,from}') is not null
      order by o.id desc
      limit 1
    ) l on true
    where e.organisation_id = members_of_address.organisation_id and e.object_type = 'member'
      and address in (lower(e.changes #>> '{email,from}'), lower(e.changes #>> '{email,to}'))
  ) f
  cross join lateral coalesce(private.search_form(f.name), '') n (form)
  where forms is null or n.form = '' or n.form = any (forms)
  group by f.user_id, n.form;
end
$$;

-- Of each kind the newest, at most so many; members all. With `forms` those of these names alone, and what was called so before. What left the
-- address has each name that it had there: the entry by which these are found is erased with any of them.
-- Security definer, as of every list: see 00-ground/pages.sql.
create function private.rows_of_address(organisation_id uuid, address text, forms text[], most integer) returns setof private.personal_row
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_ids constant uuid[] := array[organisation_id];
  v_attendee_ids uuid[];
  v_object_ids uuid[];
begin
  -- That of everybody who was erased.
  if address = private.erased_fields() ->> 'email' then
    return;
  end if;
  v_attendee_ids := array(
    select a.id
    from public.attendees a
    where a.organisation_id = any (v_organisation_ids) and a.email_lower = address and a.erased_at is null
      and (forms is null or private.search_form(a.name) = any (forms))
    order by a.organisation_id desc, a.id desc
    limit most
  );
  return query
  select 'attendee', false, a.id, a.event_id, a.name, private.search_form(a.name), a.company, a.status::text, a.created_at
  from public.attendees a
  where a.id = any (v_attendee_ids);

  return query
  select 'order', false, o.id, o.event_id, o.name, private.search_form(o.name), o.company, o.status::text, o.created_at
  from public.orders o
  where o.id = any (array(
    (
      select o.id
      from public.orders o
      where o.organisation_id = any (v_organisation_ids) and o.email_lower = address
        and (forms is null or private.search_form(o.name) = any (forms))
      order by o.organisation_id desc, o.id desc
      limit most
    )
    union
    -- The contact of their ticket's order, by name.
    select o.id
    from public.attendees a
    cross join lateral (select o.* from public.orders o where o.id = a.order_id offset 0) o
    where a.id = any (v_attendee_ids) and private.search_form(o.name) = private.search_form(a.name)
  ));

  return query
  select 'waiting_list_entry', false, w.id, w.event_id, w.name, private.search_form(w.name), w.company, w.status::text, w.created_at
  from public.waiting_list_entries w
  where w.organisation_id = any (v_organisation_ids) and w.email_lower = address
    and (forms is null or private.search_form(w.name) = any (forms))
  order by w.organisation_id desc, w.id desc
  limit most;

  -- What left the address; and, of names that are meant, what stayed under it and was called so before.
  if forms is null then
    v_object_ids := array(
      select e.object_id
      from public.audit_entries e
      where e.organisation_id = any (v_organisation_ids) and e.changes #>> '{email,from}' is not null
        and lower(e.changes #>> '{email,from}') = address
        and e.object_type in ('attendee', 'order', 'waiting_list_entry')
      order by e.organisation_id desc, e.id desc
      limit most
    );
  else
    v_object_ids := array(select r.id from private.rows_of_address(organisation_id, address, null, most) r where r.object <> 'member');
  end if;
  return query
  select distinct on (f.object_id, f.form)
    f.object, true, f.object_id, f.event_id, f.name, f.form, f.company, null, f.created_at
  from (
    select
      h.*,
      bool_or(h.form = any (forms)) over (partition by h.object_id) as is_meant,
      bool_or(h.leaves) over (partition by h.object_id order by h.entry_id desc) as is_over
    from private.former_holders(v_object_ids) h
    where h.address = rows_of_address.address and h.name is not null
  ) f
  where (forms is null or f.form = any (forms) or f.is_meant and f.is_over) and not f.is_theirs
  order by f.object_id, f.form, f.entry_id desc;

  return query
  select m.* from private.members_of_address(organisation_id, address, forms) m;
end
$$;

-- Who is meant by an address with names, with everyone, or with neither: the forms of their names, null for everybody. With neither it is
-- whoever alone has the address: members go with the guest of their name, and by themselves where there is no guest. `rows` are those of the
-- address.
create function private.forms_meant(rows private.personal_row[], names text[], everyone boolean) returns text[]
language plpgsql immutable set search_path = ''
as $$
begin
  return case
    when everyone then null
    when names is not null then array(select distinct private.search_form(n) from unnest(names) n)
    else array(
      select distinct r.form
      from unnest(forms_meant.rows) r
      where r.object <> 'member' or not exists (select from unnest(forms_meant.rows) g where g.object <> 'member')
    )
  end;
end
$$;

-- Whether the caller may read what the scope reads: people, or contacts of orders. Whoever comes without a key was asked for their role.
create function private.may_read(scope public.api_scope) returns boolean
language plpgsql stable set search_path = ''
as $$
declare
  v_claims jsonb := private.claims();
begin
  return not v_claims ? 'organisation_id'
    or v_claims ->> 'role' = 'scope_' || replace(scope::text, ':', '_')
    or coalesce(scope = any (private.current_scopes()), false);
end
$$;

-- The people among rows, newest first: { people, hidden, more }. `people` have what tells them apart, as far as the caller may read it;
-- of the others there is the number. Each has at most so many records, and all together about a hundred.
create function private.people_json(rows private.personal_row[], most integer, most_records integer) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_reads_orders constant boolean := private.may_read('orders:read');
  v_reads_people constant boolean := private.may_read('attendees:read');
  v_scopes constant public.api_scope[] :=
    case when private.claims() ? 'organisation_id' then private.current_scopes() else '{events:read}' end;
  v_people jsonb;
  v_visible integer;
  v_all integer;
begin
  with people as (
    select
      r.form,
      bool_or(m.may_read) as may_read,
      max(r.created_at) as last_at,
      (array_agg(r.name order by r.created_at desc, r.id) filter (where m.may_read))[1] as name,
      (array_agg(distinct r.company) filter (where m.may_read and r.company is not null))[:3] as companies,
      count(*) filter (where r.object = 'attendee' and not r.is_former) as attendees,
      count(*) filter (where r.object = 'order' and not r.is_former) as orders,
      count(*) filter (where r.object = 'waiting_list_entry' and not r.is_former) as waiting_list_entries,
      count(*) filter (where r.object = 'member' and not r.is_former) as members,
      count(*) filter (where r.is_former) as passed_on,
      array_agg(r order by r.created_at desc, r.id) filter (where m.may_read) as rows
    from unnest(people_json.rows) r
    cross join lateral (select case r.object when 'order' then v_reads_orders else v_reads_people end) m (may_read)
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
        'members', p.members,
        'passed_on', p.passed_on,
        'records', (
          select coalesce(jsonb_agg(jsonb_build_object(
            'object', r.object,
            'id', r.id,
            'passed_on', r.is_former,
            'event', case when exists (select from public.events e where e.id = r.event_id)
              then private.object_shown('event', r.event_id, v_scopes) - '{status,slug,starts_at,object}'::text[] end,
            'status', r.status,
            'created_at', private.rfc3339(r.created_at)
          ) order by r.created_at desc, r.id), '[]')
          from unnest(p.rows[:greatest(2, least(most_records, 100 / (select count(*)::integer from people)))]) r
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
