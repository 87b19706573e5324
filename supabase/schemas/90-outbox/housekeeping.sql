-- Retention: idempotency records, sign-ins, confirmations, plans, links to exports, settled deliveries and e-mails, the log of
-- notifications, entries of the waiting list that came to nothing, and the audit trail. The courier purges them in small batches, so that no
-- other transaction waits for long.

-- Returns how many rows it deleted, so that the caller repeats it while there are more. What is pending or awaits its fan-out
-- is kept, however old, unless its endpoint is disabled. Reads what is old by its time and deletes it by its key, whatever the statistics
-- say: a batch costs the same however much is kept.
create function api.purge(
  retention_days integer default 30, "limit" integer default 1000, audit_retention_days integer default 365
) returns integer
language plpgsql volatile security definer set search_path = ''

as $$
declare
  v_before timestamptz := now() - make_interval(days => greatest(retention_days, 1));
  v_purged integer;
  v_rows integer;
begin
  perform set_config('usher.erasing', 'on', true);
  delete from private.idempotency_records r
  where (r.family_id, r.idempotency_key) in (
    select e.family_id, e.idempotency_key from private.idempotency_records e
    where e.expires_at < now() order by e.expires_at limit purge."limit" for update skip locked
  );
  get diagnostics v_purged = row_count;

  v_purged := v_purged + private.purge_oauth("limit") + private.purge_confirmations("limit");

  -- A plan that was applied or is too old still says so for an hour.
  delete from private.event_plans p
  where p.id = any (array(
    select o.id from private.event_plans o
    where o.expires_at < now() - interval '1 hour' order by o.expires_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from private.export_links l
  where l.id = any (array(
    select o.id from private.export_links o
    where o.expires_at < now() - interval '1 hour' order by o.expires_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.webhook_deliveries d
  where d.id = any (array(
    select o.id from public.webhook_deliveries o
    where o.created_at < v_before
      and (
        o.status <> 'pending'
        or exists (select from public.webhook_endpoints w where w.id = o.webhook_endpoint_id and w.status = 'disabled')
      )
    order by o.created_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.notifications n
  where n.id = any (array(
    select o.id from public.notifications o
    where o.created_at < v_before
      and not exists (select from public.webhook_deliveries d where d.notification_id = o.id)
      and not exists (
        select from private.notification_queue q
        where q.organisation_id = o.organisation_id and q.transaction_id = o.transaction_id
      )
    order by o.created_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  delete from public.emails e
  where e.id = any (array(
    select o.id from public.emails o
    where o.created_at < v_before and o.status <> 'queued' order by o.created_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  -- The audit trail is kept for longer, without the person.
  with purged as (
    delete from public.waiting_list_entries w
    where w.id = any (array(
      select o.id from public.waiting_list_entries o
      where o.updated_at < v_before and o.status in ('expired', 'cancelled')
      order by o.updated_at limit purge."limit" for update skip locked
    ))
    returning w.id
  ),
  forgotten as (
    update public.audit_entries e set changes = e.changes - array(select jsonb_object_keys(private.erased_fields()))
    from purged p
    where e.object_id = p.id and e.changes is not null
  )
  select count(*) into v_rows from purged;
  v_purged := v_purged + v_rows;

  delete from public.audit_entries e
  where e.id = any (array(
    select o.id from public.audit_entries o
    where o.created_at < now() - make_interval(days => greatest(audit_retention_days, 1))
    order by o.created_at limit purge."limit" for update skip locked
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  perform set_config('usher.erasing', '', true);
  -- Once everything else is done, because it reads the subscriptions of all endpoints. A replaced one is needed only for queued transactions
  -- that had committed before it was replaced.
  if v_purged >= "limit" then
    return v_purged;
  end if;
  delete from private.webhook_subscriptions s
  where s.id in (
    select c.id
    from (
      select
        s.id,
        s.organisation_id,
        lead(s.transaction_id) over changes as next_transaction_id,
        lead(s.snapshot) over changes as next_snapshot
      from private.webhook_subscriptions s
      window changes as (partition by s.webhook_endpoint_id order by s."position")
    ) c
    where c.next_snapshot is not null
      and not exists (
        select from private.notification_queue q
        where q.organisation_id = c.organisation_id
          and (q.transaction_id = c.next_transaction_id or pg_visible_in_snapshot(q.transaction_id, c.next_snapshot))
      )
    limit purge."limit"
  );
  get diagnostics v_rows = row_count;
  return v_purged + v_rows;
end
$$;
comment on function api.purge is 'Deletes what is older than its retention, at most "limit" rows of each kind: how many rows it deleted.';
grant execute on function api.purge to courier;
