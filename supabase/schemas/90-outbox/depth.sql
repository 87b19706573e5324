-- The depth of the outbox, for monitoring. Reads only.

-- What is pending, by kind: how much, the age of the oldest, and how late the couriers are. A delivery that waits for its own
-- endpoint, which is failing or busy, is not late; one for a disabled endpoint is not pending. A notification whose deliveries are yet to be
-- made counts as one. What has failed and is tried again is due later each time, so it is never late: that is counted apart.
create function api.outbox_depth() returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_held boolean := private.is_held();
begin
  return (
    select json_agg(json_build_object(
      'kind', k.kind,
      'pending', k.pending,
      'oldest_seconds', coalesce(extract(epoch from now() - k.oldest), 0),
      'late_seconds', greatest(coalesce(extract(epoch from now() - k.due), 0), 0),
      'failing', k.failing,
      'last_error', k.last_error,
      'held', v_held
    ))
    from (
      select
        'webhooks' as kind,
        coalesce(sum(d.pending), 0) as pending,
        min(d.oldest) as oldest,
        min(d.due) filter (where not d.waits) as due,
        coalesce(sum(d.failing), 0) as failing,
        null::text as last_error
      from (
        select
          count(*) as pending,
          -- The attempt that is being made has not failed.
          count(*) filter (where d.attempts > (d.claim is not null)::integer) as failing,
          min(d.created_at) as oldest,
          min(d.next_attempt_at) as due,
          w.failing_since is not null or coalesce(bool_or(d.claimed_until > now()), false) as waits
        from public.webhook_deliveries d
        join public.webhook_endpoints w on w.id = d.webhook_endpoint_id and w.status = 'enabled'
        where d.status = 'pending'
        group by w.id
        union all
        select count(*), 0, min(n.created_at), min(n.created_at), false from public.notifications n where n.queued_for is not null
      ) d
      union all
      select
        'ticket_emails',
        count(*),
        min(e.created_at),
        min(e.next_attempt_at),
        count(*) filter (where e.attempts > 0 and e.last_error is not null),
        (array_agg(e.last_error order by e.last_attempt_at desc) filter (where e.attempts > 0 and e.last_error is not null))[1]
      from public.emails e
      where e.status = 'queued'
    ) k
  );
end
$$;
comment on function api.outbox_depth is
  'Pending deliveries by kind: [{ kind, pending, oldest_seconds, late_seconds, failing, last_error, held }]. late_seconds: how long due ones have waited. failing: failed and being retried, with the newest error of e-mails. held: the database belongs to another installation.';
grant execute on function api.outbox_depth to courier;
