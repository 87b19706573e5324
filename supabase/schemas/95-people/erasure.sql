-- Erasing people: what identifies them is replaced wherever it stands, the copies in logs included. Figures, money and the tickets stay.
-- One pass over the logs, however many rows are theirs; rows are found by the ids of what they are about, so that no log of the
-- organisation is read, whatever the statistics say.

-- Whose an object of a document is: 'theirs', 'passed on' where it is of what they had once, or null. `whose` is one object, for look-ups: the
-- ids of attendees and of entries of the waiting list as "person", of orders whose contact they are as "order", and as "former" of what passed
-- from them to somebody else, which is theirs where `whose` has that they had it: "held" by address and name, "name" for what has no address,
-- "address" for e-mails.
create function private.whose_document(document jsonb, whose jsonb) returns text
language plpgsql immutable set search_path = ''
as $$
declare
  v_is_of constant text := whose ->> (document ->> 'id');
  v_of_attendee constant text := whose ->> (document ->> 'attendee_id');
  v_former_id constant text := case when v_is_of = 'former' then document ->> 'id' when v_of_attendee = 'former' then document ->> 'attendee_id' end;
  v_is_theirs boolean := v_is_of in ('person', 'order') or v_of_attendee = 'person' or whose ->> (document ->> 'waiting_list_entry_id') = 'person';
begin
  if v_is_theirs then
    return 'theirs';
  elsif document ->> 'object' = 'email' then
    v_is_theirs := document ->> 'attendee_id' is null and whose ->> (document ->> 'order_id') is not distinct from 'order'
      or whose ? concat_ws(
        ' ', 'address', coalesce(document ->> 'attendee_id', document ->> 'order_id', document ->> 'waiting_list_entry_id'), lower(document ->> 'to')
      );
  elsif v_former_id is null then
    -- A guest whom an import refused.
    v_is_theirs := document ? 'result' and document ->> 'attendee_id' is null and whose ? ('external_id ' || (document ->> 'external_id'));
  elsif document ->> 'email' is null then
    v_is_theirs := whose ? concat_ws(' ', 'name', v_former_id, private.search_form(document ->> 'name'));
  else
    v_is_theirs := whose ? concat_ws(' ', 'held', v_former_id, lower(document ->> 'email'), private.search_form(document ->> 'name'))
      or whose ? 'everyone' and lower(document ->> 'email') = whose ->> 'address';
  end if;
  return case when v_is_theirs then 'theirs' when v_former_id is not null then 'passed on' end;
end
$$;

-- A document in which people are erased. `fields`: what replaces each field, as private.erased_fields() has it.
create function private.without_people(document jsonb, whose jsonb, fields jsonb) returns jsonb
language plpgsql immutable set search_path = ''
as $$
declare
  v_whose text;
begin
  if jsonb_typeof(document) = 'array' then
    return (
      select coalesce(jsonb_agg(private.without_people(e.value, whose, fields) order by e.place), '[]')
      from jsonb_array_elements(document) with ordinality e (value, place)
    );
  elsif jsonb_typeof(document) <> 'object' then
    return document;
  end if;
  v_whose := private.whose_document(document, whose);
  return (
    select coalesce(jsonb_object_agg(
      f.key,
      case
        when v_whose = 'theirs' and fields ? f.key then fields -> f.key
        -- Of an e-mail that could not be delivered.
        when v_whose = 'theirs' and f.key = 'to' then fields -> 'email'
        when v_whose = 'theirs' and f.key in ('last_error', 'error') and jsonb_typeof(f.value) = 'string' then 'null'
        when f.key = 'ticket_email'
          and (v_whose = 'theirs' or v_whose = 'passed on' and strpos(lower(f.value ->> 'last_error'), whose ->> 'address') > 0)
          then f.value || '{"last_error": null}'
        when jsonb_typeof(f.value) in ('object', 'array') and f.value not in ('{}', '[]')
          then private.without_people(f.value, whose, fields)
        else f.value
      end
    ), '{}')
    from jsonb_each(document) f
  );
end
$$;

-- What is erased: rows of people, and what passed from them to somebody else and is theirs only in logs. `former_names` has its ids, each with
-- the form of a name by which it was theirs; for `everyone` who had the address, whatever they were called: `forms` is null then.
create type private.erasing as (
  organisation_id uuid,
  attendee_ids uuid[],
  order_ids uuid[],
  entry_ids uuid[],
  former_ids uuid[],
  address text,
  forms text[],
  former_names text[],
  everyone boolean
);

-- How many rows of each kind were erased.
create type private.erased as (
  attendees integer,
  orders integer,
  waiting_list_entries integer,
  emails integer,
  notifications integer,
  webhook_deliveries integer,
  audit_entries integer,
  idempotency_records integer
);

-- Whose documents are, for private.whose_document. Of what passed on each of their addresses, for with their names these are erased from the
-- trail, and nobody is found by them any more. Where whoever has the row now has the address as well, its e-mails are theirs.
create function private.whose_copies(erasing private.erasing, external_ids text[]) returns jsonb
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select jsonb_object_agg(w.key, w.value)
    from (
      select i::text as key, 'former' as value
      from unnest(erasing.former_ids) i
      where i <> all (erasing.attendee_ids || erasing.entry_ids || erasing.order_ids)
      union all select i::text, 'person' from unnest(erasing.attendee_ids || erasing.entry_ids) i
      union all select i::text, 'order' from unnest(erasing.order_ids) i
      union all select 'external_id ' || i, '' from unnest(external_ids) i
      union all select 'name ' || i, '' from unnest(erasing.former_names) i
      union all select 'address', erasing.address where erasing.former_ids <> '{}'
      union all select 'everyone', '' where erasing.everyone
      union all
      select k.key, ''
      from private.former_holders(erasing.former_ids) h
      cross join lateral (
        select concat_ws(' ', 'held', h.object_id, h.address, h.form) as key
        union all
        select concat_ws(' ', 'address', h.object_id, h.address) where not h.has_address
      ) k
      where h.object_id || ' ' || h.form = any (erasing.former_names) and not h.is_theirs
    ) w
  );
end
$$;

-- Answers the ids of those that are of people who are erased.
create function private.erase_notifications(subject_ids uuid[], whose jsonb) returns uuid[]
language plpgsql volatile set search_path = ''
as $$
declare
  v_fields constant jsonb := private.erased_fields();
  v_ids uuid[];
begin
  with theirs as materialized (
    select n.id, n.data::jsonb as data, private.without_people(n.data::jsonb, whose, v_fields) as erased
    from public.notifications n
    where n.subject_id = any (subject_ids) and n.type <> 'attendee.erased'
  ),
  written as (
    update public.notifications n set data = t.erased::json from theirs t where n.id = t.id and t.erased <> t.data
  )
  select array_agg(t.id) into v_ids
  from theirs t
  -- Of them without their name, as a payment is: the response may have it all the same.
  where t.erased <> t.data or whose ->> (t.data ->> 'id') in ('person', 'order') or whose ->> (t.data ->> 'order_id') = 'order';
  return coalesce(v_ids, '{}');
end
$$;

-- A response may repeat what was sent. What is in flight is sent once more, and its response of now is not recorded. What is pending is
-- locked, so that it is not claimed with the data of before; endpoints before their deliveries, as everywhere.
create function private.erase_responses(notification_ids uuid[]) returns integer
language plpgsql volatile set search_path = ''
as $$
declare
  v_endpoint_ids constant uuid[] := array(
    select d.webhook_endpoint_id
    from public.webhook_deliveries d
    where d.notification_id = any (notification_ids) and (d.status = 'pending' or d.claim is not null)
  );
  v_rows integer;
begin
  perform from public.webhook_endpoints w where w.id = any (v_endpoint_ids) order by w.id for no key update;
  perform from public.webhook_deliveries d
  where d.notification_id = any (notification_ids) and d.status = 'pending'
  order by d.id for no key update;
  execute format(
    'update public.webhook_deliveries d set %s, claim = null
     where d.notification_id = any ($1) and (d.last_response_body is not null or d.claim is not null)',
    private.erasing_assignments('webhook_deliveries')
  ) using notification_ids;
  get diagnostics v_rows = row_count;
  return v_rows;
end
$$;

-- What is in flight is cancelled as well, so that its result, which may have the address in it, is not recorded.
create function private.erase_emails(erasing private.erasing, whose jsonb) returns integer
language plpgsql volatile set search_path = ''
as $$
declare
  v_ids uuid[] := array(
    select e.id from public.emails e where e.attendee_id = any (erasing.attendee_ids)
    union
    select e.id from public.emails e where e.order_id = any (erasing.order_ids)
    union
    select e.id from public.emails e where e.waiting_list_entry_id = any (erasing.entry_ids)
  );
  v_rows integer;
  v_former integer := 0;
begin
  execute format(
    $sql$update public.emails e
    set %s, claim = null, claimed_until = null, next_attempt_at = null,
      status = case e.status when 'queued' then 'cancelled' else e.status end
    where e.id = any ($1)$sql$,
    private.erasing_assignments('emails')
  ) using v_ids;
  get diagnostics v_rows = row_count;
  if erasing.former_ids <> '{}' then
    -- What is still to be sent goes to whoever has the ticket now.
    v_ids := array(
      select e.id
      from (
        select e.* from public.emails e where e.attendee_id = any (erasing.former_ids)
        union all
        select e.* from public.emails e where e.order_id = any (erasing.former_ids)
        union all
        select e.* from public.emails e where e.waiting_list_entry_id = any (erasing.former_ids)
      ) e
      where whose ?| array[
        concat_ws(' ', 'address', e.attendee_id, lower(e.sent_to)), concat_ws(' ', 'address', e.order_id, lower(e.sent_to)),
        concat_ws(' ', 'address', e.waiting_list_entry_id, lower(e.sent_to))
      ]
    );
    execute format('update public.emails e set %s, claim = null where e.id = any ($1)', private.erasing_assignments('emails')) using v_ids;
    get diagnostics v_former = row_count;
    update public.attendees a set ticket_email_last_error = null
    where a.id = any (erasing.former_ids) and a.email_lower <> erasing.address
      and strpos(lower(a.ticket_email_last_error), erasing.address) > 0;
  end if;
  return v_rows + v_former;
end
$$;

-- Of what passed to somebody else what it was while it was theirs, and what it became then. Others have been before them, or after.
create function private.erase_audit_entries(erasing private.erasing, whose jsonb) returns integer
language plpgsql volatile set search_path = ''
as $$
declare
  v_fields constant jsonb := private.erased_fields();
  v_keys constant text[] := array(select jsonb_object_keys(v_fields));
  v_rows integer;
  v_former integer;
begin
  update public.audit_entries e
  set changes = (select jsonb_object_agg(f.key, case when v_fields ? f.key then '{}' else f.value end) from jsonb_each(e.changes) f)
  where e.object_id = any (erasing.attendee_ids || erasing.entry_ids || erasing.order_ids) and e.changes ?| v_keys;
  get diagnostics v_rows = row_count;
  update public.audit_entries e
  set changes = (select jsonb_object_agg(f.key, case when v_fields ? f.key then f.value - h.sides else f.value end) from jsonb_each(e.changes) f)
  from (
    select
      h.entry_id, array_remove(array[case when h.is_held then 'from' end, case when lead(h.is_held) over later then 'to' end], null) as sides
    from (
      select
        h.object_id, h.entry_id,
        whose ? concat_ws(' ', 'held', h.object_id, h.address, h.form) or erasing.everyone and h.address = erasing.address as is_held
      from private.former_holders(erasing.former_ids) h
    ) h
    window later as (partition by h.object_id order by h.entry_id)
  ) h
  where e.id = h.entry_id and h.sides <> '{}' and e.changes ?| v_keys and whose ->> e.object_id::text = 'former';
  get diagnostics v_former = row_count;
  return v_rows + v_former;
end
$$;

-- Answers that are replayed. That of a delivery that was sent again has the response of before.
create function private.erase_outcomes(erasing private.erasing, subject_ids uuid[], notification_ids uuid[], whose jsonb) returns integer
language plpgsql volatile set search_path = ''
as $$
declare
  v_fields constant jsonb := private.erased_fields();
  v_person_ids constant uuid[] := erasing.attendee_ids || erasing.entry_ids || erasing.former_ids;
  v_delivery_ids constant uuid[] := array(select d.id from public.webhook_deliveries d where d.notification_id = any (notification_ids));
  v_rows integer;
  v_responses integer;
begin
  with theirs as materialized (
    select r.family_id, r.idempotency_key, r.outcome::jsonb as outcome, private.without_people(r.outcome::jsonb, whose, v_fields) as erased
    from (
      select r.*
      from private.idempotency_records r
      where r.organisation_id = erasing.organisation_id
        and private.subject_of_outcome(r.outcome) = any ((subject_ids || v_person_ids)::text[])
      union all
      select r.* from private.idempotency_records r where private.people_in(r.outcome) && v_person_ids
    ) r
  )
  update private.idempotency_records r set outcome = t.erased::json
  from theirs t
  where r.family_id = t.family_id and r.idempotency_key = t.idempotency_key and t.erased <> t.outcome;
  get diagnostics v_rows = row_count;
  update private.idempotency_records r set outcome = jsonb_set(r.outcome::jsonb, '{data,last_response,body}', 'null')::json
  where r.organisation_id = erasing.organisation_id and private.subject_of_outcome(r.outcome) = any (v_delivery_ids::text[])
    and r.outcome #>> '{data,last_response,body}' is not null;
  get diagnostics v_responses = row_count;
  return v_rows + v_responses;
end
$$;

-- Erases what was typed of a member who has the address and one of the names, in their row and in the trail. What their account is called
-- is Auth's. Answers the number of entries.
create function private.erase_members(erasing private.erasing) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_user_ids constant uuid[] := array(
    select m.id from private.members_of_address(erasing.organisation_id, erasing.address, erasing.forms) m
  );
  v_entries integer;
begin
  if v_user_ids = '{}' then
    return 0;
  end if;
  execute format(
    'update public.organisation_members m set %s where m.organisation_id = $1 and m.user_id = any ($2) and lower(m.email) = $3',
    private.erasing_assignments('organisation_members')
  ) using erasing.organisation_id, v_user_ids, erasing.address;
  update public.audit_entries e
  set changes = e.changes || jsonb_strip_nulls(jsonb_build_object(
    'name', case when e.changes ? 'name' then '{}'::jsonb end, 'email', case when e.changes ? 'email' then '{}'::jsonb end
  ))
  where e.object_id = any (v_user_ids) and coalesce(e.organisation_id = erasing.organisation_id and e.object_type = 'member', false)
    and e.changes ?| '{name,email}';
  get diagnostics v_entries = row_count;
  return v_entries;
end
$$;

-- Erases rows, whose locks are held, and their copies. External ids are read before, for copies have them.
create function private.erase_rows(erasing private.erasing) returns private.erased
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_external_ids constant text[] := array(
    select a.external_id from public.attendees a where a.id = any (erasing.attendee_ids) and a.external_id is not null
  );
  v_subject_ids constant uuid[] := array(
    select a.order_id from public.attendees a where a.id = any (erasing.attendee_ids || erasing.former_ids)
    union
    -- Of tickets that were deleted.
    select (e.changes #>> '{order_id,from}')::uuid
    from public.audit_entries e
    where e.object_id = any (erasing.former_ids) and e.action = 'deleted'
    union
    select i from unnest(erasing.order_ids || erasing.entry_ids || erasing.former_ids) i
  );
  v_notification_ids uuid[];
  v_whose jsonb;
  v_erased private.erased;
begin
  perform set_config('usher.erasing', 'on', true);
  execute format('update public.orders o set %s where o.id = any ($1)', private.erasing_assignments('orders')) using erasing.order_ids;
  get diagnostics v_erased.orders = row_count;
  execute format(
    $sql$update public.attendees a
    set %s, erased_at = now(),
      ticket_email_status = case when a.ticket_email_status in ('waiting', 'queued') then 'cancelled' else a.ticket_email_status end
    where a.id = any ($1)$sql$,
    private.erasing_assignments('attendees')
  ) using erasing.attendee_ids;
  get diagnostics v_erased.attendees = row_count;
  -- What is searched of the others has the contact.
  update public.attendees a set search_text = '' where a.order_id = any (erasing.order_ids) and a.id <> all (erasing.attendee_ids);
  v_erased.waiting_list_entries := private.erase_waiting_list_entries(erasing.entry_ids);

  v_whose := private.whose_copies(erasing, v_external_ids);
  v_notification_ids := private.erase_notifications(v_subject_ids, v_whose);
  v_erased.notifications := cardinality(v_notification_ids);
  v_erased.webhook_deliveries := private.erase_responses(v_notification_ids);
  v_erased.emails := private.erase_emails(erasing, v_whose);
  v_erased.audit_entries := private.erase_audit_entries(erasing, v_whose) + private.erase_members(erasing);
  v_erased.idempotency_records := private.erase_outcomes(erasing, v_subject_ids, v_notification_ids, v_whose);
  perform set_config('usher.erasing', '', true);
  return v_erased;
end
$$;

-- References by which somebody looks after what is kept, as far as the caller may read them.
create function private.some_references(order_ids uuid[], object text) returns jsonb
language plpgsql stable security definer set search_path = ''
as $$
begin
  if not private.may_read_rows(object) then
    return '[]';
  end if;
  return (
    select coalesce(jsonb_agg(o.reference order by o.id desc), '[]')
    from (select o.id, o.reference from public.orders o where o.id = any (order_ids) order by o.id desc limit 20) o
  );
end
$$;

-- What an erasure leaves, and why.
create function private.kept_of(erasing private.erasing) returns jsonb
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_order_ids constant uuid[] := array(
    select a.order_id from public.attendees a where a.id = any (erasing.attendee_ids)
    union
    select i from unnest(erasing.order_ids) i
  );
  v_noted_ids constant uuid[] := array(
    select p.order_id from public.payments p where p.order_id = any (v_order_ids) and p.external_reference is not null
    union all
    select r.order_id from public.refunds r where r.order_id = any (v_order_ids) and r.external_reference is not null
    union all
    select p.order_id from public.payments p join public.payment_voids v on v.payment_id = p.id
    where p.order_id = any (v_order_ids) and v.reason is not null
  );
begin
  return (
    select coalesce(jsonb_agg(
      jsonb_build_object('what', k.what, 'count', k.count, 'why', k.why, 'order_references', coalesce(k.order_references, '[]'))
      order by k.place
    ), '[]')
    from (
      values
        (
          1, 'orders', cardinality(v_order_ids), 'Amounts, payments, refunds and references stay: the books need them, and they name nobody.',
          private.some_references(v_order_ids, 'order')
        ),
        (
          2, 'tickets', cardinality(erasing.attendee_ids),
          'Ticket codes, places and figures stay. Whose ticket stands can still come: cancel it first if they do not.',
          private.some_references(
            array(select a.order_id from public.attendees a where a.id = any (erasing.attendee_ids) and a.status <> 'cancelled'), 'attendee'
          )
        ),
        (
          3, 'check_ins', (select count(*)::integer from public.check_ins c where c.attendee_id = any (erasing.attendee_ids)),
          'The log of the door stays, without the name.', null
        ),
        (
          4, 'payment_notes', cardinality(v_noted_ids),
          'References of payments and refunds and reasons of voids belong to the books. Look whether somebody typed a name into one.',
          private.some_references(v_noted_ids, 'order')
        )
    ) k (place, what, count, why, order_references)
    where k.count > 0
  );
end
$$;
