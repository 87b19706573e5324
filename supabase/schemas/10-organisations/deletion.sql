-- Deleting an organisation wholly, for the operator whose customer leaves. No role may execute it: it is the database's owner who does.

-- Rows go in the opposite order of their foreign keys; what guards single rows lets those of this organisation pass
-- (private.is_deleted_wholly). The
-- rows by table are answered, for nothing of it is left in the audit trail.
create function private.delete_organisation(slug text) returns jsonb
language plpgsql volatile set search_path = ''
as $$
declare
  v_tables constant regclass[] := '{
    public.webhook_deliveries, public.webhook_endpoints, public.emails, public.messages, public.email_opt_outs, public.check_ins, public.refunds,
    public.payment_voids, public.payments, public.attendees, public.waiting_list_entries, public.orders, public.check_in_points, public.questions,
    public.promo_codes, public.ticket_types, public.events, public.notifications, private.idempotency_records,
    private.event_plans, private.confirmations, private.export_links, public.api_keys,
    public.organisation_members
  }';
  v_organisation public.organisations;
  v_name text;
  v_count bigint;
  v_table regclass;
  v_deleted jsonb := '{}';
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

  perform set_config('usher.deletes_organisation', v_organisation.id::text, true);
  perform set_config('usher.switches_on', 'on', true);
  -- The audit trail is last: it logs what is deleted before.
  foreach v_table in array v_tables || '{public.organisations, public.audit_entries}'::regclass[] loop
    execute format(
      'delete from %s where %I = $1', v_table, case v_table when 'public.organisations'::regclass then 'id' else 'organisation_id' end
    ) using v_organisation.id;
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
comment on function private.delete_organisation is
  'Deletes an organisation and all of its data, the audit trail included. Returns the number of rows deleted from each table. Refused while it has a valid key, an event that is neither over nor cancelled, or a queued e-mail.';
