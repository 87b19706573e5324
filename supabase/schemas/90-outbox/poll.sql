-- What is due, for couriers that poll: reads only, a few look-ups by key, whatever the statistics say.

-- Whether a webhook is due to an enabled endpoint: a loose index scan over the endpoints that have pending ones.
create function private.are_webhooks_due() returns boolean
language plpgsql stable set search_path = ''

as $$
begin
  return exists (
    with recursive pending as (
      (
        select d.webhook_endpoint_id, d.next_attempt_at
        from public.webhook_deliveries d
        where d.status = 'pending'
        order by d.webhook_endpoint_id, d.next_attempt_at
        limit 1
      )
      union all
      select n.webhook_endpoint_id, n.next_attempt_at
      from pending p
      cross join lateral (
        select d.webhook_endpoint_id, d.next_attempt_at
        from public.webhook_deliveries d
        where d.status = 'pending' and d.webhook_endpoint_id > p.webhook_endpoint_id
        order by d.webhook_endpoint_id, d.next_attempt_at
        limit 1
      ) n
    )
    select from pending p
    where p.next_attempt_at <= now()
      and (select w.status = 'enabled' from public.webhook_endpoints w where w.id = p.webhook_endpoint_id)
  );
end
$$;

create function private.are_emails_due() returns boolean
language plpgsql stable set search_path = ''

as $$
begin
  return exists (
    select from unnest(private.organisations_with_queued_emails()) o (organisation_id)
    cross join (values (false), (true)) m (is_mailing)
    cross join lateral (
      select from public.emails e
      where e.organisation_id = o.organisation_id
        and e.status = 'queued'
        and e.is_mailing = m.is_mailing
        and e.next_attempt_at <= now()
      limit 1
    ) e
  );
end
$$;

create function private.are_logos_due() returns boolean
language plpgsql stable set search_path = ''

as $$
begin
  return exists (select from private.organisation_logos l where l.next_attempt_at <= now());
end
$$;

create function private.are_notifications_queued() returns boolean
language plpgsql stable set search_path = ''

as $$
begin
  return exists (select from private.notification_queue q order by q.organisation_id, q.transaction_id limit 1);
end
$$;

-- The queues of src/courier/queues.ts, by name. Notifications are fanned out also while deliveries are held.
create function api.poll_queues() returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_held constant boolean := private.is_held();
begin
  return array_to_json(array_remove(
    array[
      case when private.are_notifications_queued() or (not v_held and private.are_webhooks_due()) then 'webhooks' end,
      case when not v_held and private.are_emails_due() then 'ticket_emails' end,
      case when private.are_logos_due() then 'logos' end,
      case when not v_held and private.are_cancellations_due() then 'cancellations' end
    ],
    null
  ));
end
$$;
comment on function api.poll_queues is
  'The names of the queues in which something is due: of webhooks, ticket_emails, logos and cancellations. For the courier, once a second.';
grant execute on function api.poll_queues to courier;
