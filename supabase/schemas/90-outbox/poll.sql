-- What is due, for couriers that poll: reads only, a few look-ups by key, whatever the statistics say.

-- The queues of src/courier/queues.ts, by name.
create function api.poll_queues() returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_held constant boolean := private.is_held();
begin
  return array_to_json(array_remove(
    array[
      -- What is held shows among the deliveries.
      case when exists (select from public.notifications n where n.queued_for is not null) or not v_held and exists (
        select from private.endpoints_with_webhooks() p
        left join public.webhook_endpoints w on w.id = p.webhook_endpoint_id
        where p.due_at <= now() and w.status is distinct from 'disabled'
      ) then 'webhooks' end,
      case when not v_held and exists (
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
      ) then 'ticket_emails' end,
      case when not v_held and exists (select from private.cancellations c where c.next_attempt_at <= now()) then 'cancellations' end
    ],
    null
  ));
end
$$;
comment on function api.poll_queues is
  'Queues with something due, of webhooks, ticket_emails and cancellations. For the courier, once a second.';
grant execute on function api.poll_queues to courier;
