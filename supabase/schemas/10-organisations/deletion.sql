-- Deleting an organisation wholly, for the operator whose customer leaves: no role may execute that, only the database's owner. And emptying
-- a test organisation, for its owners.

-- Deletes what an organisation has done, and then what is in these tables: { table: rows }. Rows go in the opposite order of their foreign
-- keys; what guards single rows lets those of this organisation pass (private.is_deleted_wholly). The audit trail is last: it logs what is
-- deleted before. Of it, entries about the kinds in `kept` stay.
create function private.delete_rows(organisation_id uuid, tables regclass[], kept text[] default '{}') returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_tables constant regclass[] := '{
    public.webhook_deliveries, public.emails, public.messages, public.email_opt_outs, public.check_ins, public.refunds,
    public.payment_voids, public.payments, public.attendees, public.waiting_list_entries, public.orders, public.check_in_points, public.questions,
    public.promo_codes, public.ticket_types, public.events, public.notifications, private.idempotency_records,
    private.event_plans, private.confirmations, private.export_links
  }';
  v_table regclass;
  v_count bigint;
  v_deleted jsonb := '{}';
begin
  perform set_config('usher.deletes_organisation', organisation_id::text, true);
  perform set_config('usher.switches_on', 'on', true);
  foreach v_table in array v_tables || tables || 'public.audit_entries'::regclass loop
    execute format(
      'delete from %s where %I = $1 %s', v_table, case v_table when 'public.organisations'::regclass then 'id' else 'organisation_id' end,
      case v_table when 'public.audit_entries'::regclass then 'and object_type::text <> all ($2)' end
    ) using organisation_id, kept;
    get diagnostics v_count = row_count;
    if v_count > 0 then
      v_deleted := v_deleted || jsonb_build_object((select c.relname from pg_catalog.pg_class c where c.oid = v_table), v_count);
    end if;
  end loop;
  perform set_config('usher.deletes_organisation', '', true);
  perform set_config('usher.switches_on', '', true);
  return v_deleted;
end
$$;

-- The rows by table are answered, for nothing of it is left in the audit trail.
create function private.delete_organisation(slug text) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_organisation public.organisations;
  v_name text;
  v_count bigint;
begin
  select o.* into v_organisation from public.organisations o where o.slug = delete_organisation.slug for update;
  if not found then
    perform private.refuse(404, 'not_found', 'There is no organisation with this slug.', 'slug', hint => 'Look it up in organisations.');
  end if;

  -- Whoever uses a key is still at work, a guest may be on the way, and a queued e-mail may be the one that says that it is cancelled.
  select min(k.prefix) into v_name
  from public.api_keys k where k.organisation_id = v_organisation.id and k.kind <> 'page' and private.is_usable_key(k);
  if v_name is not null then
    perform private.refuse(
      409, 'in_use', format('The organisation is in use: the API key %s is not revoked.', v_name), 'slug', hint => 'Revoke its keys first.'
    );
  end if;
  select min(e.slug) into v_name
  from public.events e
  where e.organisation_id = v_organisation.id
    and coalesce(e.ends_at, e.starts_at, 'infinity') > now()
    and (e.status = 'published' or e.status = 'draft' and exists (select from public.orders o where o.event_id = e.id));
  if v_name is not null then
    perform private.refuse(
      409, 'in_use', format('The organisation is in use: the event %s is not over.', v_name), 'slug',
      hint => 'Wait for its end, or cancel it and tell its guests.'
    );
  end if;
  select count(*) into v_count from public.emails e where e.organisation_id = v_organisation.id and e.status = 'queued';
  if v_count > 0 then
    perform private.refuse(
      409, 'in_use', format('The organisation is in use: it has queued e-mails (%s).', v_count), 'slug',
      hint => 'Wait until they are sent or have failed, at most five days, or set their status to cancelled.'
    );
  end if;

  return private.delete_rows(v_organisation.id, '{public.webhook_endpoints, public.api_keys, public.organisation_members, public.organisations}');
end
$$;
comment on function private.delete_organisation is
  'Deletes an organisation and all of its data, the audit trail included. Returns the number of rows deleted from each table. Refused while it has a valid key, an event that is neither over nor cancelled, or a queued e-mail.';

create function public.empty_test_organisation(organisation_id uuid default null) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_organisation public.organisations;
begin
  select o.* into v_organisation
  from public.organisations o
  where o.id = private.organisation_meant(organisation_id, '{owner}');
  if not v_organisation.is_test then
    perform private.refuse_value(
      'organisation_id', 'A live organisation is not emptied.', 'Look in organisations for the one with is_test.'
    );
  end if;
  -- Whoever registers, orders or scans meanwhile waits. What they lock comes first, in their order: see 20-events/locks.sql.
  perform private.lock_event_exclusive(e.id)
  from (select e.id from public.events e where e.organisation_id = v_organisation.id order by e.id for no key update) e;
  perform from public.orders o where o.organisation_id = v_organisation.id order by o.id for update;
  perform from public.attendees a where a.organisation_id = v_organisation.id order by a.id for update;
  perform from public.organisations o where o.id = v_organisation.id for update;
  return private.delete_rows(v_organisation.id, '{}', '{organisation,member,api_key,webhook_endpoint}');
end
$$;
comment on function public.empty_test_organisation is
  'Deletes the events of a test organisation with all that belongs to them, as an owner: { table: rows }. Its settings, members, API keys and webhook endpoints stay.';
revoke all on function public.empty_test_organisation from public, anon, service_role;
grant execute on function public.empty_test_organisation to authenticated;
