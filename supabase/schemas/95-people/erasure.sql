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

-- What is erased: rows of people, and what passed from them to somebody else and is theirs only in logs. `forms`: of the names that are meant,
-- null for whoever has or had the address. `rows`: of the address, with each name by which they were theirs, and its members.
create type private.erasing as (
  organisation_id uuid,
  address text,
  forms text[],
  rows private.personal_row[],
  attendee_ids uuid[],
  order_ids uuid[],
  entry_ids uuid[],
  former_ids uuid[]
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
create function private.whose_copies(erasing private.erasing) returns jsonb
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
      union all select 'external_id ' || a.external_id, '' from public.attendees a where a.id = any (erasing.attendee_ids) and a.external_id is not null
      union all select concat_ws(' ', 'name', r.id, r.form), '' from unnest(erasing.rows) r where r.is_former
      union all select 'address', erasing.address where erasing.former_ids <> '{}'
      union all select 'everyone', '' where erasing.forms is null
      union all
      select k.key, ''
      from private.former_holders(erasing.former_ids) h
      cross join lateral (
        select concat_ws(' ', 'held', h.object_id, h.address, h.form) as key
        union all
        select concat_ws(' ', 'address', h.object_id, h.address) where not h.has_address
      ) k
      where (h.object_id, h.form) in (select r.id, r.form from unnest(erasing.rows) r where r.is_former) and not h.is_theirs
    ) w
  );
end
$$;

-- Answers the deliveries of what is of people who are erased, and the numbers of both. A response may repeat what was sent. What is in flight
-- is sent once more, and its response of now is not recorded. What is pending is locked, so that it is not claimed with the data of before;
-- endpoints before their deliveries, as everywhere.
create function private.erase_notifications(
  subject_ids uuid[], whose jsonb, out delivery_ids uuid[], out notifications integer, out responses integer
)
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
  select array_agg(t.id), count(*) into v_ids, notifications
  from theirs t
  -- Of them without their name, as a payment is: the response may have it all the same.
  where t.erased <> t.data or whose ->> (t.data ->> 'id') in ('person', 'order') or whose ->> (t.data ->> 'order_id') = 'order';

  perform from public.webhook_endpoints w
  where w.id = any (array(
    select d.webhook_endpoint_id
    from public.webhook_deliveries d
    where d.notification_id = any (v_ids) and (d.status = 'pending' or d.claim is not null)
  ))
  order by w.id
  for no key update;
  perform from public.webhook_deliveries d where d.notification_id = any (v_ids) and d.status = 'pending' order by d.id for no key update;
  delivery_ids := array(select d.id from public.webhook_deliveries d where d.notification_id = any (v_ids));
  execute format(
    'update public.webhook_deliveries d set %s, claim = null
     where d.id = any ($1) and (d.last_response_body is not null or d.claim is not null)',
    private.erasing_assignments('webhook_deliveries')
  ) using delivery_ids;
  get diagnostics responses = row_count;
end
$$;

-- What is in flight is cancelled as well, so that its result, which may have the address in it, is not recorded. What is still to be sent of
-- what passed on goes to whoever has it now.
create function private.erase_emails(erasing private.erasing, whose jsonb) returns integer
language plpgsql volatile set search_path = ''
as $$
declare
  v_person_ids constant uuid[] := erasing.attendee_ids || erasing.order_ids || erasing.entry_ids;
  v_ids constant uuid[] := v_person_ids || erasing.former_ids;
  v_email_ids uuid[];
  v_own_ids uuid[];
  v_rows integer;
begin
  select array_agg(e.id), array_agg(e.id) filter (where e.recipient_id = any (v_person_ids)) into v_email_ids, v_own_ids
  from (
    select e.id, e.attendee_id as recipient_id, e.sent_to from public.emails e where e.attendee_id = any (v_ids)
    union all
    select e.id, e.order_id, e.sent_to from public.emails e where e.order_id = any (v_ids)
    union all
    select e.id, e.waiting_list_entry_id, e.sent_to from public.emails e where e.waiting_list_entry_id = any (v_ids)
  ) e
  where e.recipient_id = any (v_person_ids) or whose ? concat_ws(' ', 'address', e.recipient_id, lower(e.sent_to));
  execute format('update public.emails e set %s, claim = null where e.id = any ($1)', private.erasing_assignments('emails')) using v_email_ids;
  get diagnostics v_rows = row_count;
  -- What a test organisation kept for others may name them, too.
  update public.emails e set content = null
  where e.organisation_id = erasing.organisation_id and e.content is not null
    and (select o.is_test from public.organisations o where o.id = erasing.organisation_id);
  update public.emails e
  set claimed_until = null, next_attempt_at = null, status = case e.status when 'queued' then 'cancelled' else e.status end
  where e.id = any (v_own_ids) and (e.status = 'queued' or e.claimed_until is not null);
  update public.attendees a set ticket_email_last_error = null
  where a.id = any (erasing.former_ids) and a.email_lower <> erasing.address
    and strpos(lower(a.ticket_email_last_error), erasing.address) > 0;
  return v_rows;
end
$$;

-- Of what passed to somebody else what it was while it was theirs, and what it became then. Others have been before them, or after. Of members
-- what the organisation has: they may be members of another.
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
  where e.object_id = any (
      erasing.attendee_ids || erasing.entry_ids || erasing.order_ids || array(select r.id from unnest(erasing.rows) r where r.object = 'member')
    )
    and (e.object_type <> 'member' or e.organisation_id = erasing.organisation_id) and e.changes ?| v_keys;
  get diagnostics v_rows = row_count;
  update public.audit_entries e
  set changes = (select jsonb_object_agg(f.key, case when v_fields ? f.key then f.value - h.sides else f.value end) from jsonb_each(e.changes) f)
  from (
    select
      h.entry_id, array_remove(array[case when h.is_held then 'from' end, case when lead(h.is_held) over later then 'to' end], null) as sides
    from (
      select
        h.object_id, h.entry_id,
        whose ? concat_ws(' ', 'held', h.object_id, h.address, h.form) or erasing.forms is null and h.address = erasing.address as is_held
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
create function private.erase_outcomes(erasing private.erasing, subject_ids uuid[], delivery_ids uuid[], whose jsonb) returns integer
language plpgsql volatile set search_path = ''
as $$
declare
  v_fields constant jsonb := private.erased_fields();
  v_person_ids constant uuid[] := erasing.attendee_ids || erasing.entry_ids || erasing.former_ids;
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
  where r.organisation_id = erasing.organisation_id and private.subject_of_outcome(r.outcome) = any (delivery_ids::text[])
    and r.outcome #>> '{data,last_response,body}' is not null;
  get diagnostics v_responses = row_count;
  return v_rows + v_responses;
end
$$;

-- Erases rows, whose locks are held, and their copies. Of a member what was typed: what their account is called is Auth's.
create function private.erase_rows(erasing private.erasing) returns private.erased
language plpgsql volatile security definer set search_path = ''
as $$
declare
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
  -- Before external ids are erased, which copies have.
  v_whose constant jsonb := private.whose_copies(erasing);
  v_delivery_ids uuid[];
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
  execute format(
    'update public.organisation_members m set %s where m.organisation_id = $1 and m.user_id = any ($2) and lower(m.email) = $3',
    private.erasing_assignments('organisation_members')
  ) using erasing.organisation_id, array(select r.id from unnest(erasing.rows) r where r.object = 'member'), erasing.address;

  select n.delivery_ids, n.notifications, n.responses into v_delivery_ids, v_erased.notifications, v_erased.webhook_deliveries
  from private.erase_notifications(v_subject_ids, v_whose) n;
  v_erased.emails := private.erase_emails(erasing, v_whose);
  v_erased.audit_entries := private.erase_audit_entries(erasing, v_whose);
  v_erased.idempotency_records := private.erase_outcomes(erasing, v_subject_ids, v_delivery_ids, v_whose);
  perform set_config('usher.erasing', '', true);
  return v_erased;
end
$$;

-- What an erasure leaves, and why; with references by which somebody looks after it, as far as the caller may read them. Of the erasure of an
-- address also what stays of an account and of the organisation, other people, and names that nobody there has.
create function private.kept_of(erasing private.erasing, others bigint default null, names_not_found bigint default null) returns jsonb
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_reads_orders constant boolean := private.may_read('orders:read');
  v_reads_people constant boolean := private.may_read('attendees:read');
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
      jsonb_build_object('what', k.what, 'count', k.count, 'why', k.why, 'order_references', (
        select coalesce(jsonb_agg(o.reference order by o.id desc), '[]')
        from (select o.id, o.reference from public.orders o where o.id = any (k.order_ids) order by o.id desc limit 20) o
      ))
      order by k.place
    ), '[]')
    from (
      values
        (
          1, 'orders', cardinality(v_order_ids), 'Amounts, payments, refunds and references stay for the books. They name nobody.',
          case when v_reads_orders then v_order_ids end
        ),
        (
          2, 'tickets', cardinality(erasing.attendee_ids),
          'Ticket codes, places and figures stay. A valid ticket still admits: cancel it first if the person is not coming.',
          array(select a.order_id from public.attendees a where a.id = any (erasing.attendee_ids) and a.status <> 'cancelled' and v_reads_people)
        ),
        (
          3, 'check_ins', (select count(*) from public.check_ins c where c.attendee_id = any (erasing.attendee_ids)),
          'The door log stays, without the name.', null
        ),
        (
          4, 'payment_notes', cardinality(v_noted_ids),
          'References of payments and refunds, and reasons of voids, belong to the books. Check them for typed names.',
          case when v_reads_orders then v_noted_ids end
        ),
        (5, 'other_people', others, 'Other people have this e-mail address. Their data stays, including the address.', null),
        (
          6, 'members',
          (
            select count(*)
            from public.organisation_members m
            where m.organisation_id = erasing.organisation_id and v_reads_people
              and (
                exists (select from auth.users u where u.id = m.user_id and lower(u.email) = erasing.address) or lower(m.email) = erasing.address
              )
          ),
          'A member of the organisation has this address. The account, its keys and its actions stay: remove the member, or the user in Supabase.',
          null
        ),
        (
          7, 'settings',
          (select count(*) from public.organisations o where o.id = erasing.organisation_id and lower(o.reply_to_email) = erasing.address),
          'This address is reply_to_email of the organisation.', null
        ),
        (
          8, 'names_not_found', names_not_found,
          'Nobody with these names has the address. Check the spelling with find_person.', null
        ),
        (9, 'sent', null, 'Copies in sent e-mails, delivered webhooks and backups are out of reach.', null)
    ) k (place, what, count, why, order_ids)
    where (k.count > 0 or k.what = 'sent') and (k.place < 5 or others is not null)
  );
end
$$;
