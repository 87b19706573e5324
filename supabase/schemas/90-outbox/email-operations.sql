-- E-mail operations: list them by envelope and status, read one, and send one again.

-- Ids of the e-mails of a page, newest first: see 00-ground/pages.sql. Those of an order go to its contact and to its attendees. Kind and
-- status alone are compared from the newest on until the page is full: e-mails are kept for a month.
create function private.page_of_emails(
  order_id uuid, attendee_id uuid, kind public.email_kind, status public.email_status, before uuid, size integer
) returns uuid[]
language plpgsql stable security definer
set search_path = ''
as $$
declare
  v_organisation_id uuid := private.current_organisation_id();
  v_kinds public.email_kind[] :=
    case when page_of_emails.kind is null then enum_range(null::public.email_kind) else array[page_of_emails.kind] end;
  v_statuses public.email_status[] :=
    case when page_of_emails.status is null then enum_range(null::public.email_status) else array[page_of_emails.status] end;
begin
  if num_nonnulls(page_of_emails.order_id, page_of_emails.attendee_id) > 0 then
    return array(
      select e.id
      from (
        select e.* from public.emails e where e.order_id = page_of_emails.order_id and page_of_emails.attendee_id is null
        union all
        select e.*
        from public.attendees a
        join public.emails e on e.attendee_id = a.id
        where a.order_id = page_of_emails.order_id and page_of_emails.attendee_id is null
        union all
        select e.*
        from public.attendees a
        join public.emails e on e.attendee_id = a.id
        where a.id = page_of_emails.attendee_id and a.order_id = coalesce(page_of_emails.order_id, a.order_id)
      ) e
      -- An expression, so that the planner does not scan the index of the organisation.
      where coalesce(e.organisation_id = v_organisation_id and e.id < before, false) and e.kind = any (v_kinds) and e.status = any (v_statuses)
      order by e.id desc
      limit size
    );
  end if;
  return array(
    select e.id
    from public.emails e
    where e.organisation_id = v_organisation_id and e.kind = any (v_kinds) and e.status = any (v_statuses) and e.id < before
    order by e.organisation_id desc, e.id desc
    limit size
  );
end
$$;
grant execute on function private.page_of_emails to scope_attendees_read;

-- Envelope and status, without content. The address of a buyer is for keys that read orders, and known once it was sent there.
create function private.email_json(email_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_reads_orders boolean := private.reads_orders();
begin
  return (
    select json_build_object(
      'object', 'email',
      'id', e.id,
      'kind', e.kind,
      'status', e.status,
      'to', case when e.order_id is null or v_reads_orders then coalesce(e.sent_to, a.email, w.email) end,
      'order_id', coalesce(e.order_id, a.order_id),
      'attendee_id', e.attendee_id,
      'waiting_list_entry_id', e.waiting_list_entry_id,
      'attempts', e.attempts,
      'next_attempt_at', private.rfc3339(e.next_attempt_at),
      'sent_at', private.rfc3339(e.sent_at),
      'error', case when e.order_id is null or v_reads_orders then e.last_error end,
      'created_at', private.rfc3339(e.created_at),
      'updated_at', private.rfc3339(e.updated_at)
    )
    from public.emails e
    left join public.attendees a on a.id = e.attendee_id
    left join public.waiting_list_entries w on w.id = e.waiting_list_entry_id
    where e.id = email_json.email_id
  );
end
$$;
grant execute on function private.email_json to scope_attendees_read;

create function api.list_emails(
  order_id uuid default null,
  attendee_id uuid default null,
  kind public.email_kind default null,
  status public.email_status default null,
  cursor text default null,
  "limit" integer default null
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_ids uuid[] := private.page_of_emails(order_id, attendee_id, kind, status, private.before_cursor(cursor), v_size + 1);
begin
  return private.page(
    array(select j.json from unnest(v_ids) with ordinality i (id, place) cross join lateral private.email_json(i.id) j (json) order by i.place),
    v_size
  );
end
$$;
comment on function api.list_emails is
  'E-mails to attendees, buyers and people on the waiting list, newest first, with optional filters: { data, has_more, next_cursor }.';
grant execute on function api.list_emails to scope_attendees_read;

-- With what a test organisation would have sent: of tickets that went together the one e-mail. A buyer's is for keys that read orders.
create function api.get_email(email_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_email json;
begin
  select (
    jsonb_build_object('subject', null, 'text', null, 'html', null, 'attachments', null)
    || private.email_json(e.id)::jsonb
    || case when e.order_id is null or private.reads_orders() then coalesce(
      e.content, (select l.content from public.emails l where l.id = e.sent_with), '{}'
    ) else '{}' end
  )::json into v_email
  from public.emails e
  where e.id = get_email.email_id;
  if not found then
    perform private.refuse_not_found('email_id');
  end if;
  return v_email;
end
$$;
comment on function api.get_email is
  'An e-mail by envelope and status; of a test organisation also subject, text, html and attachments. 404 not_found.';
grant execute on function api.get_email to scope_attendees_read;

-- Queues an e-mail once more, as an organiser does by its status; a ticket by its attendee, as resend_ticket does. What is queued already
-- stays, and is due at once. Security definer: no role may write e-mails.
create function private.resend_email(email_id uuid) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_email public.emails;
  v_attendee public.attendees;
begin
  select e.* into v_email from public.emails e where e.id = resend_email.email_id and e.organisation_id = private.current_organisation_id();
  if not found then
    perform private.refuse_not_found('email_id');
  elsif v_email.kind = 'ticket' then
    -- Attendees are locked before their e-mails.
    select a.* into v_attendee from public.attendees a where a.id = v_email.attendee_id for no key update;
    if v_attendee.status <> 'active' then
      perform private.refuse_inactive_ticket(v_attendee.status);
    end if;
    update public.attendees a set ticket_email_status = 'queued' where a.id = v_attendee.id;
    return private.email_json(
      (select e.id from public.emails e where e.attendee_id = v_attendee.id and e.kind = 'ticket' order by e.created_at desc, e.id desc limit 1)
    );
  end if;
  select e.* into v_email from public.emails e where e.id = v_email.id for no key update;
  if v_email.kind = 'payment_reminder' then
    -- Its own operation bounds how often.
    perform private.refuse(
      409, 'email_obsolete', 'A reminder cannot be sent again.', 'email_id', hint => 'Send another one with send_payment_reminder.'
    );
  elsif private.is_obsolete(v_email) then
    perform private.refuse(
      409, 'email_obsolete', 'This e-mail is out of date, or no longer has a recipient.', 'email_id',
      hint => 'Look at its order, attendee or event. Another e-mail has the current facts.'
    );
  end if;
  update public.emails e set status = 'queued' where e.id = v_email.id;
  return private.email_json(v_email.id);
end
$$;
grant execute on function private.resend_email to scope_attendees_write;

create function api.resend_email(email_id uuid, idempotency_key text default null, request_fingerprint text default null)
returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  return private.record_outcome(
    idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.resend_email(email_id))
  );
end
$$;
comment on function api.resend_email is
  'Queues an e-mail again, or retries a failed one at once: 200. 404 not_found; 409 email_obsolete; for tickets also ticket_not_active, no_address, attendee_erased.';
grant execute on function api.resend_email to scope_attendees_write;
