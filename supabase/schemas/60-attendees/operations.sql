-- Operations on attendees and their tickets. The rules are in the triggers of 60-attendees/table.sql, so that they hold for Studio
-- as well.

-- Ids of attendees of the organisation that match every pattern of private.search_patterns and the other conditions, newest first;
-- in their search_text before the first `until`: a tab for the door, null for all of it. Called by security definer functions only.
create function private.search_attendees(
  patterns text[],
  until text default E'\n',
  event_id uuid default null,
  ticket_type_id uuid default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  ticket_email_status public.email_status default null,
  updated_after timestamptz default null,
  before uuid default 'ffffffff-ffff-ffff-ffff-ffffffffffff',
  size integer default 50,
  inside boolean default null
) returns uuid[]
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  -- Patterns for `like`, which match no less: the index narrows by all trigrams of these, and by some sixteen of an expression, which of an
  -- e-mail address may be those that many share. Both escape by a backslash.
  v_likes text[] := array(
    select '%' || replace(regexp_replace(p.pattern, '([%_])', '\\\1', 'g'), 'e?', '%') || '%'
    from unnest(patterns) with ordinality p (pattern, place)
    order by p.place
  );
  -- The index takes no array of patterns. Three words narrow enough; the others are compared.
  v_first text := v_likes[1];
  v_second text := coalesce(v_likes[2], v_first);
  v_third text := coalesce(v_likes[3], v_first);
  -- The expression, if the index knows more by it than by the pattern; else one that matches everything.
  v_first_expression text := case when patterns[1] not like '%e?%' then '' else patterns[1] end;
  v_second_expression text := coalesce(case when patterns[2] not like '%e?%' then '' else patterns[2] end, v_first_expression);
begin
  return array(
    -- Apart from the order, for which the planner would read the primary key.
    with found as materialized (
      select a.id
      from public.attendees a
      where uuid_hash(a.organisation_id) = uuid_hash(v_organisation_id)
        and a.search_text like v_first
        and a.search_text like v_second
        and a.search_text like v_third
        and a.search_text ~ v_first_expression
        and a.search_text ~ v_second_expression
        -- In brackets: no other index fits.
        and (a.organisation_id = v_organisation_id) is true
        and (a.id < before) is true
        and case when until is null then a.search_text else split_part(a.search_text, until, 1) end ~ all (patterns)
        and (search_attendees.event_id is null or a.event_id = search_attendees.event_id)
        and (search_attendees.ticket_type_id is null or a.ticket_type_id = search_attendees.ticket_type_id)
        and (search_attendees.status is null or a.status = search_attendees.status)
        and (search_attendees.checked_in is null or a.checked_in = search_attendees.checked_in)
        and (search_attendees.inside is null or a.inside = search_attendees.inside)
        and (search_attendees.ticket_email_status is null or a.ticket_email_status = search_attendees.ticket_email_status)
        and (search_attendees.updated_after is null or a.updated_at >= search_attendees.updated_after)
    )
    select f.id from found f order by f.id desc limit size
  );
end
$$;

-- Ids of a page of attendees, newest first: see 00-ground/pages.sql. An event is read by its ticket types; one of the two indexes has them, and
-- the other is asked for nothing.
create function private.page_of_attendees(
  event_id uuid,
  ticket_type_id uuid,
  status public.attendee_status,
  checked_in boolean,
  ticket_email_status public.email_status,
  before uuid,
  size integer,
  inside boolean default null
) returns uuid[]
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_organisation_ids uuid[] := case when event_id is null and ticket_type_id is null then array[v_organisation_id] end;
  v_ticket_type_ids uuid[];
begin
  if ticket_type_id is not null then
    v_ticket_type_ids := array(
      select t.id from public.ticket_types t
      where t.id = page_of_attendees.ticket_type_id and t.organisation_id = v_organisation_id
        and (page_of_attendees.event_id is null or t.event_id = page_of_attendees.event_id)
    );
  elsif event_id is not null then
    v_ticket_type_ids := array(
      select t.id from public.ticket_types t where t.event_id = page_of_attendees.event_id and t.organisation_id = v_organisation_id
    );
  end if;
  return array(
    select f.id
    from unnest(enum_range(null::public.attendee_status)) s (status)
    -- Whoever is inside came in.
    cross join (values (false, false), (true, false), (true, true)) c (checked_in, inside)
    cross join unnest(enum_range(null::public.email_status)) e (status)
    cross join lateral (
      (
        select a.id
        from public.attendees a
        where a.organisation_id = any (v_organisation_ids)
          and a.status = s.status and a.checked_in = c.checked_in and a.inside = c.inside and a.ticket_email_status = e.status and a.id < before
        order by a.organisation_id desc, a.id desc
        limit size
      )
      union all
      select p.id
      from unnest(v_ticket_type_ids) t (id)
      cross join lateral (
        select a.id
        from public.attendees a
        where a.ticket_type_id = t.id
          and a.status = s.status and a.checked_in = c.checked_in and a.inside = c.inside and a.ticket_email_status = e.status and a.id < before
        order by a.ticket_type_id desc, a.id desc
        limit size
      ) p
    ) f
    where (page_of_attendees.status is null or s.status = page_of_attendees.status)
      and (page_of_attendees.checked_in is null or c.checked_in = page_of_attendees.checked_in)
      and (page_of_attendees.inside is null or c.inside = page_of_attendees.inside)
      and (page_of_attendees.ticket_email_status is null or e.status = page_of_attendees.ticket_email_status)
    order by f.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_attendees to scope_attendees_read;

-- Ids of all attendees that a search matches, that gave or owe an answer, or that were updated since a time: for what little of it is among
-- the newest.
create function private.attendees_found(event_id uuid, patterns text[], updated_after timestamptz, answer jsonb, unanswered boolean)
returns uuid[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  if patterns is null and answer is not null then
    return array(
      select a.id
      from public.attendees a
      where uuid_hash(a.organisation_id) = uuid_hash(private.current_organisation_id()) and a.answers @> answer and a.answers <> '{}'
        and (a.organisation_id = private.current_organisation_id()) is true
    );
  elsif patterns is null and unanswered then
    return array(
      select a.id
      from public.ticket_types t
      join public.attendees a on a.ticket_type_id = t.id
      where t.event_id = attendees_found.event_id and t.organisation_id = private.current_organisation_id()
        and exists (select from public.questions q where q.event_id = t.event_id and q.required and private.is_unanswered(q, a))
    );
  elsif patterns is null then
    return array(
      select a.id
      from public.attendees a
      where a.organisation_id = private.current_organisation_id() and a.updated_at >= attendees_found.updated_after
    );
  end if;
  return private.search_attendees(patterns, E'\n', attendees_found.event_id, size => null);
end
$$;
grant execute on function private.attendees_found to scope_attendees_read;

-- Security definer: under row level security the planner may read the whole organisation for them.
create function private.attendees_of_order(order_id uuid) returns uuid[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select a.id from public.attendees a
    where a.order_id = attendees_of_order.order_id and (a.organisation_id = private.current_organisation_id()) is true
  );
end
$$;
grant execute on function private.attendees_of_order to scope_attendees_read;

create function api.list_attendees(
  event_id uuid default null,
  order_id uuid default null,
  ticket_type_id uuid default null,
  search text default null,
  status public.attendee_status default null,
  checked_in boolean default null,
  ticket_email_status public.email_status default null,
  email text default null,
  reference text default null,
  external_id text default null,
  updated_after timestamptz default null,
  cursor text default null,
  "limit" integer default null,
  inside boolean default null,
  answer text default null,
  unanswered boolean default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_patterns text[] := case when search is not null then private.search_patterns(search) end;
  -- What is named is few, and so are the tickets that went to one address.
  v_named uuid[] := case
    when order_id is not null then private.attendees_of_order(order_id)
    when reference is not null then private.attendees_of_order(
      (select o.id from public.orders o where o.reference = private.code_form(list_attendees.reference))
    )
    when external_id is not null then array(select a.id from public.attendees a where a.external_id = list_attendees.external_id)
    when email is not null then array(select a.id from public.attendees a where a.email_lower = lower(list_attendees.email))
  end;
  -- KEY:VALUE, as one of several choices as well.
  v_answer jsonb := private.answer_sought(event_id, answer, unanswered);
  v_chunk integer;
  v_ids uuid[];
  v_bytes integer := private.page_bytes();
  v_attendee public.attendees;
  v_items json[] := '{}';
begin
  -- Most pages of what was updated since a time, or of what a search matches, are among the newest anyway; where they are not, little was,
  -- or does, and all of that is read.
  foreach v_chunk in array case
    when v_named is null and num_nonnulls(v_patterns, updated_after, v_answer, nullif(unanswered, false)) > 0 then array[v_size + 1, 1000, null] else array[v_size + 1]
  end loop
    v_ids := case
      when v_named is not null then v_named
      when v_chunk is null then private.attendees_found(list_attendees.event_id, v_patterns, updated_after, v_answer, unanswered)
      else private.page_of_attendees(
        list_attendees.event_id, list_attendees.ticket_type_id, list_attendees.status, list_attendees.checked_in,
        list_attendees.ticket_email_status, v_before, v_chunk, list_attendees.inside
      )
    end;
    for v_attendee in
      select a.*
      from unnest(v_ids) i (id)
      join public.attendees a on a.id = i.id
      where (list_attendees.event_id is null or a.event_id = list_attendees.event_id)
        and (list_attendees.ticket_type_id is null or a.ticket_type_id = list_attendees.ticket_type_id)
        and (list_attendees.status is null or a.status = list_attendees.status)
        and (list_attendees.checked_in is null or a.checked_in = list_attendees.checked_in)
        and (list_attendees.inside is null or a.inside = list_attendees.inside)
        and (list_attendees.ticket_email_status is null or a.ticket_email_status = list_attendees.ticket_email_status)
        and (list_attendees.email is null or a.email_lower = lower(list_attendees.email))
        and (list_attendees.external_id is null or a.external_id = list_attendees.external_id)
        and (list_attendees.reference is null or (select o.reference from public.orders o where o.id = a.order_id) = private.code_form(list_attendees.reference))
        and (updated_after is null or a.updated_at >= updated_after)
        and (v_answer is null or a.answers @> v_answer)
        and (unanswered is not true or private.unanswered(a) <> '{}')
        and (v_patterns is null or split_part(a.search_text, E'\n', 1) ~ all (v_patterns))
        and a.id < v_before
      order by a.id desc
      limit v_size + 1 - cardinality(v_items)
    loop
      v_items := v_items || private.attendee_json(v_attendee, with_sensitive => true);
      v_bytes := v_bytes - pg_column_size(v_items[cardinality(v_items)]);
      exit when v_bytes < 0 and cardinality(v_items) > 1;
    end loop;
    exit when cardinality(v_items) > v_size or v_bytes < 0 and cardinality(v_items) > 1 or cardinality(v_ids) < v_chunk;
    v_before := v_ids[v_chunk];
  end loop;
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_attendees is
  'Attendees of the organisation, newest first, with optional filters: { data, has_more, next_cursor }.';
grant execute on function api.list_attendees to scope_attendees_read;

create function api.get_attendee(attendee_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee from public.attendees a where a.id = get_attendee.attendee_id;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  return private.attendee_json(v_attendee, with_sensitive => true);
end
$$;
comment on function api.get_attendee is 'One attendee. 404 not_found.';
grant execute on function api.get_attendee to scope_attendees_read;

create function api.get_ticket_qr(attendee_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_attendee public.attendees;
begin
  select a.* into v_attendee from public.attendees a where a.id = get_ticket_qr.attendee_id;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  if v_attendee.status <> 'active' then
    perform private.refuse_inactive_ticket(v_attendee.status);
  end if;
  return json_build_object(
    'object', 'ticket_qr',
    'attendee_id', v_attendee.id,
    'event_id', v_attendee.event_id,
    'name', v_attendee.name,
    'ticket_code', v_attendee.ticket_code
  );
end
$$;
comment on function api.get_ticket_qr is 'Content of the QR code of a ticket. 404 not_found; 409 ticket_not_active.';
grant execute on function api.get_ticket_qr to scope_attendees_read;

-- The event lock of an attendee that moves to another ticket type: it comes before the attendee. Security definer: a key for attendees
-- locks nothing by itself.
create function private.lock_event_of(attendee_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform private.lock_event_shared(a.event_id)
  from public.attendees a
  where a.organisation_id = private.current_organisation_id() and a.id = lock_event_of.attendee_id;
end
$$;
grant execute on function private.lock_event_of to scope_attendees_write;

create function api.update_attendee(
  attendee_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_former public.attendees;
  v_attendee public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  if changes ? 'ticket_type_id' then
    perform private.lock_event_of(attendee_id);
  end if;
  select a.* into v_former from public.attendees a where a.id = update_attendee.attendee_id for no key update;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  perform private.assert_version(v_former.version, if_version);
  if changes ? 'ticket_type_id' and not exists (
    select from public.ticket_types t where t.id = (changes ->> 'ticket_type_id')::uuid and t.event_id = v_former.event_id
  ) then
    perform private.refuse_not_found('ticket_type_id');
  end if;

  select c.* into v_attendee
  from private.change_attendees(array[changes || jsonb_build_object('attendee_id', v_former.id)]) c;

  return private.record_outcome(idempotency_key, request_fingerprint, private.with_warnings(
    json_build_object('status', 200, 'data', private.attendee_json(v_attendee)),
    variadic private.warnings_of_attendee(v_former, v_attendee)
  ));
end
$$;
comment on function api.update_attendee is
  'Changes an attendee, moves them to another ticket type at the same price, or transfers the ticket (reissue_ticket gives a new code): 200. 404 not_found; 409 attendee_erased, ticket_not_reissuable, already_exists, and for a ticket type event_not_published, event_ended, sold_out, ticket_type_archived, sales_not_started, sales_ended; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_attendee to scope_attendees_write;

-- Locks the order before its attendee, as everywhere: cancelling a ticket changes the totals of its order.
-- Security definer: a key for attendees has no right to orders.
create function private.lock_order_of(attendee_id uuid) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  perform 1
  from public.orders o
  where not private.is_foreign(o.organisation_id)
    and o.id = (select a.order_id from public.attendees a where a.id = lock_order_of.attendee_id)
  for no key update;
end
$$;
grant execute on function private.lock_order_of to scope_attendees_write;

-- Keeps so much more of what was received for an order, and answers what is to be returned of it then: null for keys that may not read it. A
-- guest is told what the return of their own ticket makes of it.
-- Security definer, for the same reason; money is for keys that may write orders.
create function private.retain_of(order_id uuid, amount bigint) returns bigint
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if amount > 0 then
    if ('orders:write' = any (private.current_scopes())) is not true then
      perform private.refuse(403, 'missing_scope', 'amount_retained needs the scope orders:write.', 'amount_retained');
    end if;
    update public.orders o set amount_retained = o.amount_retained + amount
    where o.id = retain_of.order_id and not private.is_foreign(o.organisation_id);
  end if;
  return (
    select private.amount_refundable(o)
    from public.orders o
    where o.id = retain_of.order_id and not private.is_foreign(o.organisation_id) and (private.reads_orders() or private.audit_actor() = 'guest')
  );
end
$$;
grant execute on function private.retain_of to scope_attendees_write;

create function api.cancel_attendee(
  attendee_id uuid,
  dry_run boolean default null,
  notify public.notify default null,
  idempotency_key text default null,
  request_fingerprint text default null,
  amount_retained bigint default null,
  message text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
  v_affected jsonb;
  v_refundable bigint;
  v_data json;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  begin
    perform private.lock_order_of(attendee_id);
    select a.* into v_attendee from public.attendees a where a.id = cancel_attendee.attendee_id for no key update;
    if not found then
      perform private.refuse_not_found('attendee_id');
    end if;
    if v_attendee.status = 'cancelled' then
      perform private.refuse(
        409, 'invalid_transition', 'This attendee is cancelled already.', 'status',
        jsonb_build_object('from', 'cancelled', 'to', 'cancelled')
      );
    end if;
    -- Whether the order changes, too: cancelling its last ticket cancels it, and cancelling one with a price lowers its
    -- totals.
    v_affected := jsonb_build_object('attendees', 1, 'currency', v_attendee.currency, 'orders', (v_attendee.price > 0 or not exists (
      select from public.attendees a
      where a.order_id = v_attendee.order_id and a.id <> v_attendee.id and a.status <> 'cancelled'
    ))::integer);
    v_refundable := private.retain_of(v_attendee.order_id, 0);
    if dry_run then
      v_data := private.attendee_json(v_attendee);
    end if;
    update public.attendees a set status = 'cancelled' where a.id = v_attendee.id returning * into v_attendee;
    v_affected := v_affected || jsonb_build_object('refund_due', private.retain_of(v_attendee.order_id, amount_retained) - v_refundable);
    v_outcome := json_build_object(
      'status', 200,
      'effect', private.effect_json(
        dry_run, v_affected, private.notify_of_cancelled_tickets(notify, v_attendee.order_id, v_attendee.id, message)
      ),
      'data', coalesce(v_data, private.attendee_json(v_attendee))
    );
    perform private.undo_if_dry_run(dry_run);
    perform private.assert_notice_confirmed(
      'cancel_attendee', jsonb_build_object('attendee_id', attendee_id, 'notify', notify, 'amount_retained', amount_retained, 'message', message),
      v_outcome -> 'effect'
    );
  exception when sqlstate 'UD001' then
    null; -- The effects are rolled back; the variable keeps the answer.
  end;
  return private.record_outcome(idempotency_key, request_fingerprint, v_outcome, dry_run);
end
$$;
comment on function api.cancel_attendee is
  'Cancels one ticket, frees its place and takes its price off the order, which is cancelled with its last ticket. On request it e-mails the holder and the buyer; or it reports the effect: 200. 403 missing_scope; 404 not_found; 409 invalid_transition; 422 validation_failed.';
grant execute on function api.cancel_attendee to scope_attendees_write;

create function api.resend_ticket(attendee_id uuid, idempotency_key text default null, request_fingerprint text default null)
returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_attendee public.attendees;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select a.* into v_attendee from public.attendees a where a.id = resend_ticket.attendee_id for no key update;
  if not found then
    perform private.refuse_not_found('attendee_id');
  end if;
  if v_attendee.status <> 'active' then
    perform private.refuse_inactive_ticket(v_attendee.status);
  end if;
  update public.attendees a set ticket_email_status = 'queued' where a.id = v_attendee.id returning * into v_attendee;

  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.attendee_json(v_attendee))
  );
end
$$;
comment on function api.resend_ticket is
  'Queues the ticket e-mail of an attendee again, or retries a failed one at once: 200. 404 not_found; 409 ticket_not_active, no_address, attendee_erased.';
grant execute on function api.resend_ticket to scope_attendees_write;
