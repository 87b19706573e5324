-- How much the outbox holds, for monitoring.

-- What is owed, by kind, for whoever watches: how much, since when the oldest of it, and how late the couriers are. What waits
-- for its own endpoint, which is failing or busy, waits for no courier; and what an endpoint that is disabled would get is
-- owed to nobody. A notification that awaits its fan-out counts as one.
create function api.outbox_depth() returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select json_agg(json_build_object(
      'kind', k.kind,
      'owed', k.owed,
      'oldest_seconds', coalesce(extract(epoch from now() - k.oldest), 0),
      'late_seconds', greatest(coalesce(extract(epoch from now() - k.due), 0), 0)
    ))
    from (
      select
        'webhooks' as kind,
        coalesce(sum(d.owed), 0) as owed,
        min(d.oldest) as oldest,
        min(d.due) as due
      from (
        select d.owed, d.oldest, case when w.failing_since is null and not d.busy then d.due end as due
        from (
          select
            d.webhook_endpoint_id,
            count(*) as owed,
            min(d.created_at) as oldest,
            min(d.next_attempt_at) as due,
            coalesce(bool_or(d.claimed_until > now()), false) as busy
          from public.webhook_deliveries d
          where d.status = 'pending'
          group by d.webhook_endpoint_id
        ) d
        join public.webhook_endpoints w on w.id = d.webhook_endpoint_id and w.status = 'enabled'
        union all
        select n.owed, q.created_at, q.created_at
        from private.notification_queue q
        cross join lateral (
          select count(*) as owed
          from public.notifications n
          where n.organisation_id = q.organisation_id
            and n.transaction_id = q.transaction_id
            and n.id > coalesce(q.after_id, '00000000-0000-0000-0000-000000000000')
        ) n
        where exists (
          select from public.webhook_endpoints w where w.organisation_id = q.organisation_id and w.status = 'enabled'
        )
      ) d
      union all
      select 'ticket_emails', count(*), min(e.created_at), min(e.next_attempt_at)
      from public.ticket_emails e
      where e.status = 'queued'
    ) k
  );
end
$$;
comment on function api.outbox_depth() is
  'What is owed: [{ kind, owed, oldest_seconds, late_seconds }], late being how long what is due has waited.';
grant execute on function api.outbox_depth() to courier;
