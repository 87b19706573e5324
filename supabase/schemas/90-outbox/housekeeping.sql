-- Retention: idempotency records, sign-ins, confirmations, plans, links to exports, settled deliveries and e-mails, messages, the log of
-- notifications, entries of the waiting list that came to nothing, sensitive answers, requests, and the audit trail. The courier purges them in small batches, so
-- that no other transaction waits for long.

-- Returns how many rows it deleted, so that the caller repeats it while there are more. What is pending is kept, however old, unless its
-- endpoint is not there to take it. Reads what is old by its time and deletes it by its place: a batch costs the same however much is kept.
create function api.purge(
  retention_days integer default 30, "limit" integer default 1000, audit_retention_days integer default 365
) returns integer
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_kept_for constant interval := make_interval(days => greatest(retention_days, 1));
  v_week_ago constant uuid := private.first_uuid_v7(now() - interval '7 days');
  v_old record;
  v_rows integer;
  v_purged integer := 0;
begin
  perform set_config('usher.erasing', 'on', true);
  for v_old in
    select o.*
    from (
      values
        ('private.idempotency_records', 'expires_at', interval '0', 'true'),
        ('private.confirmations', 'forget_at', interval '0', 'true'),
        -- A code or refresh token is known for an hour more, so that its second use is noticed. The rest tells what a person was about to do.
        ('private.oauth_records', 'expires_at', interval '0', $sql$
          o.expires_at < now() - interval '1 hour' or o.kind not in ('AuthorizationCode', 'RefreshToken')
        $sql$),
        ('private.oauth_sign_ins', 'expires_at', interval '0', 'true'),
        ('private.oauth_clients', 'created_at', interval '7 days', 'o.used_at is null'),
        ('private.oauth_clients', 'used_at', interval '1 year', 'true'),
        -- Grants that ended a day ago and were never used.
        ('public.api_keys', 'least(o.revoked_at, o.expires_at)', interval '1 day', $sql$o.kind = 'grant' and o.last_used_at is null$sql$),
        -- What was applied, downloaded or is too old still says so for an hour.
        ('private.event_plans', 'expires_at', interval '1 hour', 'true'),
        ('private.export_links', 'expires_at', interval '1 hour', 'true'),
        ('private.requests', 'created_at', interval '3 days', 'true'),
        ('public.webhook_deliveries', 'created_at', v_kept_for, $sql$
          o.status <> 'pending'
          or not exists (select from public.webhook_endpoints w where w.id = o.webhook_endpoint_id and w.status = 'enabled')
        $sql$),
        ('public.notifications', 'created_at', v_kept_for,
          'o.queued_for is null and not exists (select from public.webhook_deliveries d where d.notification_id = o.id)'),
        ('public.emails', 'created_at', v_kept_for, $sql$o.status <> 'queued'$sql$),
        ('public.messages', 'created_at', v_kept_for, 'not exists (select from public.emails e where e.organiser_message_id = o.id)'),
        ('public.audit_entries', 'created_at', make_interval(days => greatest(audit_retention_days, 1)), 'true')
    ) o (name, aged_by, kept_for, condition)
  loop
    execute format(
      'delete from %1$s d where d.ctid = any (array(
         select o.ctid from %1$s o where %2$s < now() - $1 and (%3$s) order by %2$s limit $2 for update skip locked
       ))',
      v_old.name, v_old.aged_by, v_old.condition
    ) using v_old.kept_for, "limit";
    get diagnostics v_rows = row_count;
    v_purged := v_purged + v_rows;
  end loop;

  -- Of test organisations, which keep the whole e-mail, after a week. Each by its own index: what is old among all is mostly of others.
  delete from public.emails d
  where d.id = any (array(
    select f.id
    from public.organisations g
    cross join lateral (
      select o.id from public.emails o
      where o.organisation_id = g.id and o.id < v_week_ago and o.status <> 'queued'
      order by o.organisation_id, o.id
      limit purge."limit"
    ) f
    where g.is_test
    limit purge."limit"
  ));
  get diagnostics v_rows = row_count;
  v_purged := v_purged + v_rows;

  -- The audit trail is kept for longer, without the person.
  with purged as (
    delete from public.waiting_list_entries w
    where w.id = any (array(
      select o.id from public.waiting_list_entries o
      where o.updated_at < now() - v_kept_for and o.status in ('expired', 'cancelled')
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
  v_rows := v_rows + private.delete_sensitive_answers("limit");
  perform set_config('usher.erasing', '', true);
  return v_purged + v_rows;
end
$$;
comment on function api.purge is 'Deletes rows past their retention, at most "limit" of each kind. Returns the number deleted.';
grant execute on function api.purge to courier;
