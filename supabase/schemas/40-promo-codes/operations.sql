-- Operations on promo codes. The rules are in 40-promo-codes/table.sql and rules.sql, so that they hold for Studio as well.

create function api.list_promo_codes(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_before uuid := private.before_cursor(cursor);
  v_items json[];
begin
  if not exists (select from public.events e where e.id = list_promo_codes.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  v_items := array(
    select private.promo_code_json(c)
    from public.promo_codes c
    where c.event_id = list_promo_codes.event_id and c.id < v_before
    order by c.id desc
    limit v_size + 1
  );
  return private.page(v_items, v_size);
end
$$;
comment on function api.list_promo_codes is 'Promo codes of an event, newest first: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_promo_codes to scope_events_read;

create function api.get_promo_code(promo_code_id uuid) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_promo_code public.promo_codes;
begin
  select c.* into v_promo_code from public.promo_codes c where c.id = get_promo_code.promo_code_id;
  if not found then
    perform private.refuse_not_found('promo_code_id');
  end if;
  return private.promo_code_json(v_promo_code);
end
$$;
comment on function api.get_promo_code is 'One promo code. 404 not_found.';
grant execute on function api.get_promo_code to scope_events_read;

create function api.create_promo_code(
  event_id uuid,
  code text,
  percent_off numeric default null,
  amount_off bigint default null,
  -- As written: see private.warning_of_offset.
  valid_from text default null,
  valid_until text default null,
  max_redemptions integer default null,
  ticket_type_ids uuid[] default null,
  unlocks boolean default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_organisation_id uuid;
  v_promo_code public.promo_codes;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select e.organisation_id into v_organisation_id from public.events e where e.id = create_promo_code.event_id;
  if not found then
    perform private.refuse_not_found('event_id');
  end if;

  insert into public.promo_codes (
    organisation_id, event_id, code, percent_off, amount_off, valid_from, valid_until, max_redemptions, ticket_type_ids, unlocks
  )
  values (
    v_organisation_id, create_promo_code.event_id, create_promo_code.code, create_promo_code.percent_off, create_promo_code.amount_off,
    create_promo_code.valid_from::timestamptz, create_promo_code.valid_until::timestamptz, create_promo_code.max_redemptions,
    coalesce(create_promo_code.ticket_type_ids, '{}'), coalesce(create_promo_code.unlocks, false)
  )
  returning * into v_promo_code;

  return private.record_outcome(idempotency_key, request_fingerprint, private.with_warnings(
    json_build_object('status', 201, 'data', private.promo_code_json(v_promo_code)),
    private.warning_of_percentage(v_promo_code),
    private.warning_of_offset(jsonb_build_object('valid_from', valid_from, 'valid_until', valid_until), v_promo_code.event_id)
  ));
end
$$;
comment on function api.create_promo_code is
  'Adds a promo code to an event, with percent_off or amount_off, or one that unlocks ticket types: 201. 404 not_found; 409 already_exists (code); 422 validation_failed.';
grant execute on function api.create_promo_code to scope_events_write;

create function api.update_promo_code(
  promo_code_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_promo_code public.promo_codes;
  v_new public.promo_codes;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;

  select c.* into v_promo_code from public.promo_codes c where c.id = update_promo_code.promo_code_id for no key update;
  if not found then
    perform private.refuse_not_found('promo_code_id');
  end if;
  perform private.assert_version(v_promo_code.version, if_version);

  v_new := jsonb_populate_record(v_promo_code, changes);
  update public.promo_codes c set
    (
      code, percent_off, amount_off, valid_from, valid_until, max_redemptions, ticket_type_ids, unlocks, status
    ) = (
      v_new.code, v_new.percent_off, v_new.amount_off, v_new.valid_from, v_new.valid_until, v_new.max_redemptions, v_new.ticket_type_ids,
      v_new.unlocks, v_new.status
    )
  where c.id = v_promo_code.id
  returning * into v_promo_code;

  return private.record_outcome(idempotency_key, request_fingerprint, private.with_warnings(
    json_build_object('status', 200, 'data', private.promo_code_json(v_promo_code)),
    case when changes ? 'percent_off' then private.warning_of_percentage(v_promo_code) end,
    private.warning_of_offset(changes, v_promo_code.event_id)
  ));
end
$$;
comment on function api.update_promo_code is
  'Changes fields of a promo code (status disabled refuses it): 200. 404 not_found; 409 limit_below_redeemed, already_exists; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_promo_code to scope_events_write;
