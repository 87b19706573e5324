-- money edits and values. Written by `npm run db:migration` from supabase/schemas.

set local lock_timeout = '5s';
set local statement_timeout = '60s';
set local check_function_bodies = off;

drop trigger attendees_900_updated_at on public.attendees;

drop trigger attendees_900_version on public.attendees;

drop trigger check_in_points_900_updated_at on public.check_in_points;

drop trigger check_in_points_900_version on public.check_in_points;

drop trigger events_900_updated_at on public.events;

drop trigger events_900_version on public.events;

drop trigger orders_900_updated_at on public.orders;

drop trigger orders_900_version on public.orders;

drop trigger organisations_900_updated_at on public.organisations;

drop trigger promo_codes_900_updated_at on public.promo_codes;

drop trigger promo_codes_900_version on public.promo_codes;

drop trigger ticket_types_900_updated_at on public.ticket_types;

drop trigger ticket_types_900_version on public.ticket_types;

drop trigger waiting_list_entries_900_updated_at on public.waiting_list_entries;

drop trigger waiting_list_entries_900_version on public.waiting_list_entries;

drop trigger webhook_endpoints_900_updated_at on public.webhook_endpoints;

drop trigger webhook_endpoints_900_version on public.webhook_endpoints;

drop view public.unpaid_orders;

create or replace function private.amount_due (
  "order" public.orders
)
  returns bigint
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return case "order".status when 'cancelled' then 0 else greatest(
    "order".subtotal - "order".discount_total - "order".amount_paid + "order".amount_refunded,
    0
  ) end;
end
$$;

create or replace function private.event_summary (
  event public.events,
  "interval" public.summary_interval
)
  returns json
  language plpgsql
  stable
  security definer
  set search_path to ''
  set enable_seqscan to 'off'
  set enable_bitmapscan to 'off'
  set enable_sort to 'off'
  set work_mem to '16MB'
  set jit to 'off'
  as $$
declare
  v_most_buckets constant integer := 200;
  v_most_rows constant integer := 200;
  v_ticket_type_ids uuid[] := array(
    select t.id from public.ticket_types t
    where t.event_id = event.id and t.organisation_id is not distinct from private.current_organisation_id()
  );
  v_places_left bigint := event.capacity - (
    select coalesce(sum(t.quantity_sold + t.quantity_held), 0) from public.ticket_types t where t.id = any (v_ticket_type_ids)
  );
  v_with_money boolean := 'orders:read' = any (private.current_scopes());
  v_revenue json;
  v_summary json;
  v_today date := now() at time zone event.timezone;
begin
  if v_with_money then
    -- The other orders have nothing due and nothing paid.
    select json_build_object(
      'currency', event.currency,
      'due', coalesce(sum(private.amount_due(o)) filter (where o.payment_status in ('awaiting_payment', 'partially_paid')), 0),
      'paid', coalesce(sum(o.amount_paid), 0),
      'refunded', coalesce(sum(o.amount_refunded), 0),
      'refundable', coalesce(sum(private.amount_refundable(o)) filter (where o.payment_status = 'refund_due'), 0)
    ) into v_revenue
    from public.orders o
    where o.event_id = any (array[event.id])
      and o.organisation_id is not distinct from private.current_organisation_id()
      and o.status = any (enum_range(null::public.order_status))
      and o.payment_status = any ('{awaiting_payment,partially_paid,paid,refund_due,refunded}'::public.payment_status[]);
  end if;

  -- Attendees are read once, and from an index alone. A quarter of an hour is a part of every hour and day, whatever the time zone.
  with groups as materialized (
    select
      a.ticket_type_id, a.status, a.checked_in, a.ticket_email_status,
      date_bin('15 minutes', a.created_at, timestamptz 'epoch') as registered,
      date_bin('15 minutes', case when a.status <> 'cancelled' then a.checked_in_at end, timestamptz 'epoch') as arrived,
      count(*) as tickets
    from public.attendees a
    where a.ticket_type_id = any (v_ticket_type_ids)
    group by grouping sets ((1, 2, 3, 4), (5), (6))
  ),
  kinds as (
    select
      t.id, t.name, t.position, t.status,
      least(t.quantity - t.quantity_sold - t.quantity_held, case when v_places_left < 0 then 0 else v_places_left end) as available,
      coalesce(sum(g.tickets) filter (where g.status <> 'cancelled'), 0) as sold,
      coalesce(sum(g.tickets) filter (where g.status = 'awaiting_payment'), 0) as pending_payment,
      coalesce(sum(g.tickets) filter (where g.status <> 'cancelled' and g.checked_in), 0) as checked_in,
      coalesce(sum(g.tickets) filter (where g.status = 'cancelled'), 0) as cancelled
    from public.ticket_types t
    left join groups g on g.ticket_type_id = t.id
    where t.id = any (v_ticket_type_ids)
    group by t.id
  ),
  points as (
    select
      p.id, p.name,
      (
        select coalesce(sum(k.sold), 0) from kinds k where p.ticket_type_ids = '{}' or k.id = any (p.ticket_type_ids)
      ) as expected,
      i.arrived, i.inside
    from public.check_in_points p
    cross join lateral (
      select
        count(distinct c.attendee_id) as arrived,
        count(distinct c.attendee_id) filter (
          where c.exited_at is null
            and (p.admission <> 'once_per_day' or (c.scanned_at at time zone event.timezone)::date = v_today)
        ) as inside
      from public.check_ins c
      join public.attendees a on a.id = c.attendee_id and a.status <> 'cancelled'
      where c.check_in_point_id = p.id and c.direction = 'entry' and c.result = 'accepted' and c.undone_at is null
    ) i
    where p.event_id = event.id and p.status = 'active'
  ),
  buckets as (
    select
      date_trunc("interval"::text, coalesce(g.registered, g.arrived), event.timezone) as starts_at,
      coalesce(sum(g.tickets) filter (where g.registered is not null), 0) as registrations,
      coalesce(sum(g.tickets) filter (where g.arrived is not null), 0) as arrivals
    from groups g
    where g.registered is not null or g.arrived is not null
    group by 1
    order by 1 desc
    limit v_most_buckets + 1
  )
  select json_build_object(
    'object', 'event_summary',
    'event_id', event.id,
    'tickets', (
      select json_build_object(
        'sold', coalesce(sum(k.sold), 0),
        -- Without a limit of the event, one active ticket type without a limit has no end.
        'available', least(
          case when v_places_left < 0 then 0 else v_places_left end,
          case when not coalesce(bool_or(k.available is null) filter (where k.status = 'active'), false)
            then coalesce(sum(k.available) filter (where k.status = 'active'), 0) end
        ),
        'pending_payment', coalesce(sum(k.pending_payment), 0),
        'checked_in', coalesce(sum(k.checked_in), 0),
        'cancelled', coalesce(sum(k.cancelled), 0)
      )
      from kinds k
    ),
    'ticket_types', (
      select coalesce(json_agg(json_build_object(
        'id', k.id, 'name', k.name, 'sold', k.sold, 'available', k.available, 'pending_payment', k.pending_payment,
        'checked_in', k.checked_in, 'cancelled', k.cancelled
      ) order by k.position, k.id), '[]')
      from (select * from kinds k order by k.position, k.id limit v_most_rows) k
    ),
    'check_in_points', (
      select coalesce(json_agg(json_build_object(
        'id', p.id, 'name', p.name, 'expected', p.expected, 'arrived', p.arrived, 'inside', p.inside
      ) order by p.id), '[]')
      from points p
    ),
    'revenue', v_revenue,
    'promo_codes', (
      select coalesce(json_agg(json_build_object(
        'id', c.id, 'code', c.code, 'times_redeemed', c.times_redeemed, 'max_redemptions', c.max_redemptions,
        'discount', case when v_with_money then (
          select coalesce(sum(a.discount), 0) from public.attendees a where a.promo_code_id = c.id and a.status <> 'cancelled'
        ) end
      ) order by c.times_redeemed desc, c.id), '[]')
      from (
        select c.* from public.promo_codes c
        where c.event_id = event.id
        order by c.times_redeemed desc, c.id
        limit v_most_rows
      ) c
    ),
    'ticket_emails', (
      select json_build_object(
        'bounced', coalesce(sum(g.tickets) filter (where g.ticket_email_status = 'bounced'), 0),
        'failed', coalesce(sum(g.tickets) filter (where g.ticket_email_status = 'failed'), 0)
      )
      from groups g
    ),
    'interval', "interval",
    'timezone', event.timezone,
    'timeline', (
      select coalesce(json_agg(json_build_object(
        'starts_at', private.rfc3339(b.starts_at), 'registrations', b.registrations, 'arrivals', b.arrivals
      ) order by b.starts_at), '[]')
      from (select * from buckets b order by b.starts_at desc limit v_most_buckets) b
    ),
    'timeline_is_complete', (select count(*) <= v_most_buckets from buckets)
  ) into v_summary;
  return v_summary;
end
$$;

create or replace function private.is_currency (
  code text
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return code = any ('{
    AED,AFN,ALL,AMD,AOA,ARS,AUD,AWG,AZN,BAM,BBD,BDT,BHD,BIF,BMD,BND,BOB,BRL,BSD,BTN,BWP,BYN,BZD,CAD,CDF,CHF,CLP,CNY,COP,CRC,
    CUP,CVE,CZK,DJF,DKK,DOP,DZD,EGP,ERN,ETB,EUR,FJD,FKP,GBP,GEL,GHS,GIP,GMD,GNF,GTQ,GYD,HKD,HNL,HTG,HUF,IDR,ILS,INR,IQD,IRR,
    ISK,JMD,JOD,JPY,KES,KGS,KHR,KMF,KPW,KRW,KWD,KYD,KZT,LAK,LBP,LKR,LRD,LSL,LYD,MAD,MDL,MGA,MKD,MMK,MNT,MOP,MRU,MUR,MVR,MWK,
    MXN,MYR,MZN,NAD,NGN,NIO,NOK,NPR,NZD,OMR,PAB,PEN,PGK,PHP,PKR,PLN,PYG,QAR,RON,RSD,RUB,RWF,SAR,SBD,SCR,SDG,SEK,SGD,SHP,SLE,
    SOS,SRD,SSP,STN,SVC,SYP,SZL,THB,TJS,TMT,TND,TOP,TRY,TTD,TWD,TZS,UAH,UGX,USD,UYU,UZS,VED,VES,VND,VUV,WST,XAF,XCD,XCG,XOF,
    XPF,YER,ZAR,ZMW,ZWG
  }'::text[]);
end
$$;

create or replace function private.is_settled (
  "order" public.orders
)
  returns boolean
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return "order".amount_paid - "order".amount_refunded >= "order".subtotal - "order".discount_total
    and ("order".payment_method is null or exists (select from public.attendees a where a.order_id = "order".id));
end
$$;

create or replace function private.is_web_url (
  url text
)
  returns boolean
  language plpgsql
  immutable
  set search_path to ''
  as $$
begin
  return length(url) <= 2000
    and url ~ '^https?://[^/?#@\\[:space:]]+([/?#][^[:space:]]*)?$'
    and url !~ '[\u0001-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]';
end
$$;

create or replace function private.order_json (
  "order" public.orders,
  attendees json,
  payments json,
  refunds json default '[]'::json
)
  returns json
  language plpgsql
  stable
  set search_path to ''
  as $$
begin
  return json_build_object(
    'object', 'order',
    'id', "order".id,
    'event_id', "order".event_id,
    'reference', "order".reference,
    'status', "order".status,
    'payment_status', "order".payment_status,
    'name', "order".name,
    'email', "order".email,
    'company', "order".company,
    'currency', "order".currency,
    'subtotal', "order".subtotal,
    'discount_total', "order".discount_total,
    'total', "order".total,
    'amount_paid', "order".amount_paid,
    'amount_due', private.amount_due("order"),
    'amount_refunded', "order".amount_refunded,
    'amount_refundable', private.amount_refundable("order"),
    'payment_method', "order".payment_method,
    'payment_due_at', private.rfc3339("order".payment_due_at),
    'payment_reminded_at', private.rfc3339("order".payment_reminded_at),
    'promo_code', "order".promo_code,
    'source', "order".source,
    'attendees', attendees,
    'payments', payments,
    'refunds', refunds,
    'completed_at', private.rfc3339("order".completed_at),
    'cancelled_at', private.rfc3339("order".cancelled_at),
    'cancellation_reason', "order".cancellation_reason,
    'external_id', "order".external_id,
    'metadata', "order".metadata,
    'version', "order".version,
    'created_at', private.rfc3339("order".created_at),
    'updated_at', private.rfc3339("order".updated_at)
  );
end
$$;

create or replace function private.tg__set_updated_at()
  returns trigger
  language plpgsql
  set search_path to ''
  as $$
begin
  if tg_nargs > 0 and pg_trigger_depth() = 1 and to_jsonb(new) - tg_argv = to_jsonb(old) - tg_argv then
    return new;
  end if;
  new.updated_at := now();
  return new;
end
$$;

create or replace function private.tg_events__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  if tg_op = 'INSERT' then
    new.slug := coalesce(new.slug, private.free_event_slug(new.organisation_id, new.name));
    if new.status <> 'draft' then
      perform private.refuse(
        409, 'invalid_transition', 'An event starts as a draft.', 'status',
        hint => 'Add dates and a ticket type, then publish it.'
      );
    end if;
  else
    -- Registrations hold the event lock shared: none is in flight during the checks below.
    if (new.status, new.capacity, new.currency) is distinct from (old.status, old.capacity, old.currency) then
      perform private.lock_event_exclusive(new.id);
    end if;

    -- Status transitions.
    if new.status <> old.status and (old.status, new.status) not in (
      ('draft', 'published'), ('published', 'draft'), ('published', 'cancelled'), ('published', 'completed')
    ) then
      perform private.refuse_transition(old.status, new.status);
    end if;

    if old.status = 'published' and new.status = 'draft'
      and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(
        409, 'event_has_orders', 'An event with orders cannot become a draft again.', 'status', hint => 'Cancel the event instead.'
      );
    end if;

    if old.status = 'draft' and new.status = 'published' then
      if new.starts_at is null or new.ends_at is null then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs a start and an end before it is published.', 'starts_at',
          hint => 'Set starts_at and ends_at first.'
        );
      end if;
      if new.ends_at <= now() then
        perform private.refuse_ended('ends_at', new.ends_at);
      end if;
      if not exists (select from public.ticket_types t where t.event_id = new.id and t.status = 'active') then
        perform private.refuse(
          409, 'event_not_publishable', 'An event needs an active ticket type before it is published.', 'ticket_types',
          hint => 'Add a ticket type first.'
        );
      end if;
    end if;

    -- Currency and capacity, against what is sold already.
    if new.currency <> old.currency and exists (select from public.orders o where o.event_id = new.id) then
      perform private.refuse(409, 'event_has_orders', 'The currency of an event with orders is fixed.', 'currency');
    end if;

    if new.capacity is distinct from old.capacity then
      -- A raised quantity is offered to the waiting list without the event lock.
      perform private.lock_event_capacity(new.id);
      if new.capacity > 0 and new.capacity < private.places_taken(new.id) then
        perform private.refuse(
          409, 'capacity_below_sold', 'The capacity cannot be less than the tickets already issued.', 'capacity',
          jsonb_build_object('places_taken', private.places_taken(new.id))
        );
      end if;
    end if;
  end if;

  -- Unique values. Row level security refuses a foreign row only after this trigger, so nothing is looked up for one: the
  -- answer would reveal values of another organisation.
  if (case tg_op when 'INSERT' then private.current_api_key_id() is not null else (new.slug, new.external_id) is distinct from (old.slug, old.external_id) end)
    and not private.is_foreign(new.organisation_id) then
    perform private.refuse_taken('slug', e.id, e.created_at)
    from public.events e
    where e.organisation_id = new.organisation_id and e.slug = new.slug and e.slug <> '' and e.id <> new.id;
    perform private.refuse_taken('external_id', e.id, e.created_at)
    from public.events e
    where e.organisation_id = new.organisation_id and e.external_id = new.external_id and e.id <> new.id;
  end if;

  if tg_op = 'INSERT' or new.timezone <> old.timezone then
    -- pg_timezone_names reads files, in some 20 ms, so a zone that another event has is accepted without it.
    if not exists (select from public.events e where e.timezone = new.timezone)
      and not exists (select from pg_catalog.pg_timezone_names z where z.name = new.timezone) then
      perform private.refuse(
        422, 'validation_failed', 'The time zone is not an IANA time zone.', 'timezone', hint => 'Use a name such as Europe/Berlin.'
      );
    end if;
  end if;

  -- A value that stays is not checked: a currency is withdrawn, and an address may be from before the rule.
  if (tg_op = 'INSERT' or new.currency <> old.currency) and not private.is_currency(new.currency) then
    perform private.refuse_value(
      'currency', 'The currency is not one of ISO 4217 that is paid with.', 'Write its three capital letters, such as EUR.'
    );
  end if;
  if (tg_op = 'INSERT' or new.online_url is distinct from old.online_url) and not private.is_web_url(new.online_url) then
    perform private.refuse_value(
      'online_url',
      'An address begins with http:// or https://, has at most 2000 characters, no user name or password, and no invisible characters.',
      'Copy the address again, and leave out what stands before an @ in the name of the server.'
    );
  end if;

  -- The timestamps follow the status.
  new.published_at := case
    when tg_op = 'INSERT' or new.status = 'draft' then null
    when old.status = 'draft' then now()
    else old.published_at
  end;
  new.cancelled_at := case when new.status = 'cancelled' then case when old.status = 'cancelled' then old.cancelled_at else now() end end;
  new.completed_at := case when new.status = 'completed' then case when old.status = 'completed' then old.completed_at else now() end end;
  return new;
end
$$;

create or replace function private.tg_events__notify()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
begin
  -- An update that changes nothing notifies of nothing.
  if new.version = old.version then
    return null;
  end if;
  insert into public.notifications (organisation_id, type, data)
  values (
    new.organisation_id,
    case
      when new.status = 'published' and old.status = 'draft' then 'event.published'
      when new.status = 'cancelled' and old.status <> 'cancelled' then 'event.cancelled'
      else 'event.updated'
    end::public.notification_type,
    private.event_json(new)
  );
  return null;
end
$$;

create or replace function private.tg_orders__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_event public.events;
begin
  if tg_op = 'INSERT' then
    -- A new order: its event, the fields that Usher sets, its promo code, its reference.
    v_event := private.lock_event_shared(new.event_id);
    perform private.assert_not_foreign(v_event.organisation_id, 'event_id');
    perform private.assert_takes_registrations(v_event);
    if new.external_id is not null and private.current_api_key_id() is not null then
      perform private.refuse_taken('external_id', o.id, o.created_at)
      from public.orders o
      where o.organisation_id = v_event.organisation_id and o.external_id = new.external_id;
    end if;
    if new.status <> 'pending' or new.payment_status <> 'not_required'
      or (new.subtotal, new.discount_total, new.amount_paid, new.amount_voided, new.amount_refunded) <> (0, 0, 0, 0, 0)
      or new.currency <> v_event.currency
      or num_nonnulls(
        new.reference, new.promo_code_id, new.completed_at, new.cancelled_at, new.cancellation_reason, new.payment_remind_at,
        new.payment_reminded_at, new.payment_check_at
      ) > 0 then
      perform private.assert_as_given(to_jsonb(new), jsonb_build_object(
        'status', 'pending', 'payment_status', 'not_required', 'subtotal', 0, 'discount_total', 0, 'amount_paid', 0,
        'amount_voided', 0, 'amount_refunded', 0,
        'currency', v_event.currency, 'reference', null, 'promo_code_id', null, 'completed_at', null, 'cancelled_at', null,
        'cancellation_reason', null, 'payment_remind_at', null, 'payment_reminded_at', null, 'payment_check_at', null
      ));
    end if;
    new.organisation_id := coalesce(new.organisation_id, v_event.organisation_id);
    new.currency := v_event.currency;

    if new.promo_code is not null then
      -- Stored as the organiser spells it. Its validity is checked when a ticket takes a use of it.
      select c.id, c.code into new.promo_code_id, new.promo_code
      from public.promo_codes c
      where c.event_id = new.event_id and lower(c.code) = lower(new.promo_code);
      if not found then
        perform private.refuse_not_found('promo_code');
      end if;
    end if;

    -- One in a million meets one that is taken, after a million orders: the unique key refuses it, and the gateway tries again.
    new.reference := private.random_code(8);
  else
    -- Depth 1 is a statement of a person or an operation; the triggers that maintain the sums run one level deeper.
    if pg_trigger_depth() = 1 then
      if new.amount_paid <> old.amount_paid then
        perform private.refuse(
          409, 'read_only_field', 'amount_paid is added up from the payments and cannot be edited.', 'amount_paid',
          hint => 'Add a payment instead.'
        );
      elsif (new.amount_voided, new.amount_refunded) <> (old.amount_voided, old.amount_refunded) then
        perform private.refuse(
          409, 'read_only_field', 'Voids and refunds are rows of their own, added up here.', 'amount_refunded',
          hint => 'Add a row to payment_voids or refunds instead.'
        );
      elsif (new.subtotal, new.discount_total) <> (old.subtotal, old.discount_total) then
        perform private.refuse(
          409, 'read_only_field', 'The totals are added up from the tickets and cannot be edited.', 'subtotal',
          hint => 'Add or cancel attendees instead.'
        );
      elsif (new.payment_method is null) <> (old.payment_method is null) then
        perform private.refuse(
          409, 'read_only_field', 'Whether an order is to be paid is fixed: the prices of its tickets depend on it.', 'payment_method',
          hint => 'Create a new order.'
        );
      end if;
    end if;
    if new.external_id is distinct from old.external_id then
      perform private.refuse_taken('external_id', o.id, o.created_at)
      from public.orders o
      where o.organisation_id = new.organisation_id and o.external_id = new.external_id and o.id <> new.id;
    end if;
    -- Status transitions.
    if new.status <> old.status and (old.status, new.status) not in (
      ('pending', 'completed'), ('pending', 'cancelled'), ('completed', 'cancelled')
    ) then
      perform private.refuse(
        409, 'invalid_transition', 'An order cannot go from its present status to this one.', 'status',
        jsonb_build_object('from', old.status, 'to', new.status),
        'Allowed: pending to completed or cancelled; completed to cancelled.'
      );
    end if;
    if old.status = 'pending' and new.status = 'completed' and not private.is_settled(new) then
      perform private.refuse(
        409, 'payment_due', 'An order completes once it has tickets and nothing is due.', 'status',
        hint => 'Record the payment instead.'
      );
    end if;
  end if;

  if tg_op = 'INSERT' or (new.name, new.email) is distinct from (old.name, old.email) then
    perform private.assert_valid_contact(new.name, new.email);
  end if;

  -- Derived fields: completion, payment status and timestamps.
  if new.status = 'pending' and private.is_settled(new) then
    new.status := 'completed';
  end if;

  new.payment_status := case
    when new.status = 'pending' or new.status = 'completed' and private.amount_due(new) > 0
      then case when new.amount_paid > new.amount_refunded then 'partially_paid' else 'awaiting_payment' end
    when new.amount_paid = 0 then 'not_required'
    when private.amount_refundable(new) > 0 then 'refund_due'
    when new.amount_refunded = new.amount_paid then 'refunded'
    else 'paid'
  end::public.payment_status;

  new.completed_at := case
    when tg_op = 'UPDATE' and old.completed_at is not null then old.completed_at
    when new.status = 'completed' then now()
  end;
  new.cancelled_at := case
    when tg_op = 'UPDATE' and old.cancelled_at is not null then old.cancelled_at
    when new.status = 'cancelled' then now()
  end;
  -- The reason comes with the cancellation; expired has to be true.
  if tg_op = 'UPDATE' and pg_trigger_depth() = 1 and new.cancellation_reason is distinct from old.cancellation_reason
    and (new.status, new.cancellation_reason, old.status, old.payment_due_at <= now())
      is distinct from ('cancelled', 'expired', 'pending', true) then
    perform private.refuse(
      409, 'read_only_field', 'Usher keeps this field itself; it cannot be edited.', 'cancellation_reason',
      hint => 'Set status to cancelled instead.'
    );
  end if;
  if new.status = 'cancelled' then
    new.cancellation_reason := coalesce(new.cancellation_reason, 'requested');
  end if;
  return new;
end
$$;

create or replace function private.tg_payments__guard()
  returns trigger
  language plpgsql
  security definer
  set search_path to ''
  as $$
declare
  v_order public.orders;
  v_due bigint;
begin
  select o.* into v_order from public.orders o where o.id = new.order_id for no key update;
  perform private.assert_not_foreign(v_order.organisation_id, 'order_id');
  new.organisation_id := v_order.organisation_id;
  new.event_id := v_order.event_id;
  new.currency := coalesce(new.currency, v_order.currency);
  v_due := private.amount_due(v_order);

  -- A completed order is payable again once a payment was voided, or money for a ticket that stands was returned.
  if v_order.cancellation_reason = 'expired' then
    perform private.refuse_expired(v_order);
  elsif v_order.status <> 'pending' and v_due = 0 then
    perform private.refuse(
      409, 'nothing_due', 'Nothing is due for this order.', 'order_id', jsonb_build_object('status', v_order.status)
    );
  elsif new.currency <> v_order.currency then
    perform private.refuse(
      409, 'wrong_currency', 'The payment is in another currency than the order.', 'currency',
      jsonb_build_object('currency', v_order.currency)
    );
  elsif new.amount > v_due then
    perform private.refuse(
      409, 'overpayment', 'The payment is more than what is due.', 'amount', jsonb_build_object('amount_due', v_due),
      'Record at most what is due, and refund the rest.'
    );
  end if;

  -- Before the insert, so that a second payment in the same statement sees the first.
  update public.orders o
  set amount_paid = o.amount_paid + new.amount, payment_method = new.method
  where o.id = v_order.id;
  return new;
end
$$;

create view public.unpaid_orders with (security_invoker=true) as
  select o.organisation_id,
    o.event_id,
    e.name as event,
    o.id as order_id,
    o.reference,
    o.name,
    o.email,
    o.company,
    private.money_text(o.total, o.currency) as total,
    private.money_text((o.amount_paid - o.amount_refunded), o.currency) as paid,
    private.money_text(private.amount_due(o.*), o.currency) as due,
    private.amount_due(o.*) as amount_due,
    o.currency,
    o.created_at,
    (now() - o.created_at) as age,
    o.payment_due_at
   from (public.orders o
     join public.events e on ((e.id = o.event_id)))
  where (o.payment_status = any (array['awaiting_payment'::public.payment_status, 'partially_paid'::public.payment_status]))
  order by o.created_at;

revoke all on table public.unpaid_orders from anon;

revoke all on table public.unpaid_orders from service_role;

create trigger attendees_900_updated_at
  before update on public.attendees
  for each row
  execute function private.tg__set_updated_at('email_lower', 'checked_in');

create trigger attendees_900_version
  before update on public.attendees
  for each row
  when
    (((new.name is distinct from old.name) or (new.email is distinct from old.email) or (new.company is distinct from
    old.company) or (new.status is distinct from old.status) or (new.ticket_type_id is distinct from old.ticket_type_id)
    or (new.ticket_code is distinct from old.ticket_code) or (new.external_id is distinct from old.external_id) or
    (new.metadata is distinct from old.metadata) or (new.erased_at is distinct from old.erased_at)))
  execute function private.tg__count_version();

create trigger check_in_points_900_updated_at
  before update on public.check_in_points
  for each row
  when ((new.* is distinct from old.*))
  execute function private.tg__set_updated_at();

create trigger check_in_points_900_version
  before update on public.check_in_points
  for each row
  when
    (((new.name is distinct from old.name) or (new.ticket_type_ids is distinct from old.ticket_type_ids) or
    (new.opens_at is distinct from old.opens_at) or (new.closes_at is distinct from old.closes_at) or
    (new.admission is distinct from old.admission) or (new.status is distinct from old.status)))
  execute function private.tg__count_version();

create trigger events_900_updated_at
  before update on public.events
  for each row
  when ((new.* is distinct from old.*))
  execute function private.tg__set_updated_at();

create trigger events_900_version
  before update on public.events
  for each row
  when
    (((new.name is distinct from old.name) or (new.slug is distinct from old.slug) or (new.description is distinct from
    old.description) or (new.status is distinct from old.status) or (new.starts_at is distinct from old.starts_at) or
    (new.ends_at is distinct from old.ends_at) or (new.timezone is distinct from old.timezone) or
    (new.locale is distinct from old.locale) or (new.venue_name is distinct from old.venue_name) or
    (new.venue_address is distinct from old.venue_address) or (new.venue_city is distinct from old.venue_city) or
    (new.venue_postcode is distinct from old.venue_postcode) or (new.venue_country is distinct from old.venue_country)
    or (new.online_url is distinct from old.online_url) or (new.capacity is distinct from old.capacity) or
    (new.waiting_list_offer_hours is distinct from old.waiting_list_offer_hours) or
    (new.currency is distinct from old.currency) or (new.payment_due_days is distinct from old.payment_due_days) or
    (new.external_id is distinct from old.external_id) or (new.metadata is distinct from old.metadata)))
  execute function private.tg__count_version();

create trigger orders_900_updated_at
  before update on public.orders
  for each row
  execute function private.tg__set_updated_at('email_lower', 'total');

create trigger orders_900_version
  before update on public.orders
  for each row
  when
    (((new.name is distinct from old.name) or (new.email is distinct from old.email) or (new.company is distinct from
    old.company) or (new.status is distinct from old.status) or (new.subtotal is distinct from old.subtotal) or
    (new.amount_paid is distinct from old.amount_paid) or (new.amount_refunded is distinct from old.amount_refunded) or
    (new.payment_due_at is distinct from old.payment_due_at) or (new.external_id is distinct from old.external_id) or
    (new.metadata is distinct from old.metadata)))
  execute function private.tg__count_version();

create trigger organisations_900_updated_at
  before update on public.organisations
  for each row
  when ((new.* is distinct from old.*))
  execute function private.tg__set_updated_at();

create trigger payments_300_received_at
  before insert on public.payments
  for each row
  when ((new.received_at > (now() + '1 day'::interval)))
  execute function
    private.tg__refuse_value('received_at', 'Money that was received cannot have been received in the future.',
    'Record the payment when the money is there.');

create trigger promo_codes_900_updated_at
  before update on public.promo_codes
  for each row
  when ((new.* is distinct from old.*))
  execute function private.tg__set_updated_at();

create trigger promo_codes_900_version
  before update on public.promo_codes
  for each row
  when
    (((new.code is distinct from old.code) or (new.percent_off is distinct from old.percent_off) or (new.amount_off is
    distinct from old.amount_off) or (new.valid_from is distinct from old.valid_from) or
    (new.valid_until is distinct from old.valid_until) or (new.max_redemptions is distinct from old.max_redemptions) or
    (new.ticket_type_ids is distinct from old.ticket_type_ids) or (new.status is distinct from old.status)))
  execute function private.tg__count_version();

create trigger refunds_300_refunded_at
  before insert on public.refunds
  for each row
  when ((new.refunded_at > (now() + '1 day'::interval)))
  execute function
    private.tg__refuse_value('refunded_at', 'Money that was returned cannot have been returned in the future.',
    'Record the refund when the money is sent.');

create trigger ticket_types_900_updated_at
  before update on public.ticket_types
  for each row
  when ((new.* is distinct from old.*))
  execute function private.tg__set_updated_at();

create trigger ticket_types_900_version
  before update on public.ticket_types
  for each row
  when
    (((new.name is distinct from old.name) or (new.description is distinct from old.description) or (new.price is
    distinct from old.price) or (new.quantity is distinct from old.quantity) or
    (new.min_per_order is distinct from old.min_per_order) or (new.max_per_order is distinct from old.max_per_order) or
    (new.sales_start_at is distinct from old.sales_start_at) or (new.sales_end_at is distinct from old.sales_end_at) or
    (new.visibility is distinct from old.visibility) or (new.status is distinct from old.status) or
    (new."position" is distinct from old."position") or (new.external_id is distinct from old.external_id) or
    (new.metadata is distinct from old.metadata)))
  execute function private.tg__count_version();

create trigger waiting_list_entries_900_updated_at
  before update on public.waiting_list_entries
  for each row
  execute function private.tg__set_updated_at('email_lower');

create trigger waiting_list_entries_900_version
  before update on public.waiting_list_entries
  for each row
  when
    (((new.name is distinct from old.name) or (new.email is distinct from old.email) or (new.company is distinct from
    old.company) or (new.send_email is distinct from old.send_email) or (new.status is distinct from old.status) or
    (new.offered_at is distinct from old.offered_at) or (new.offer_expires_at is distinct from old.offer_expires_at) or
    (new.external_id is distinct from old.external_id) or (new.metadata is distinct from old.metadata)))
  execute function private.tg__count_version();

create trigger webhook_endpoints_900_updated_at
  before update on public.webhook_endpoints
  for each row
  when ((new.* is distinct from old.*))
  execute function private.tg__set_updated_at();

create trigger webhook_endpoints_900_version
  before update on public.webhook_endpoints
  for each row
  when
    (((new.url is distinct from old.url) or (new.description is distinct from old.description) or (new.types is distinct
    from old.types) or (new.event_ids is distinct from old.event_ids) or (new.status is distinct from old.status)))
  execute function private.tg__count_version();

comment on column public.events.currency is 'ISO 4217. All prices and orders of the event are in it. A change leaves the numbers of prices and discounts as they are: change them, too. Fixed once there is an order.';

comment on column public.events.online_url is 'Where it is to be followed on the Internet: http or https, without a user name or password.';

comment on column public.orders.amount_refunded is 'Sum of the refunds, not edited. What is due is total, less amount_paid, plus amount_refunded.';

comment on column public.payments.received_at is 'When the money was received; not in the future.';

comment on column public.refunds.refunded_at is 'When the money was returned; not in the future.';

comment on table public.refunds is 'Money returned for orders that are paid or cancelled. Add a row to record a refund; refund_due ends when nothing is left to refund. What is returned for a ticket that stands is due again.';

comment on view public.unpaid_orders is 'Orders of which something is due, the oldest first. paid is what was received and not returned.';

revoke all on function private.amount_due(public.orders) from public;

grant execute
  on function private.amount_due(public.orders)
  to authenticated, scope_attendees_write, scope_orders_read, scope_orders_write;

revoke all on function private.is_currency(text) from public;

revoke all on function private.is_web_url(text) from public;

revoke all on table public.unpaid_orders from authenticated;

grant select on table public.unpaid_orders to authenticated;

revoke all on table public.unpaid_orders from postgres;

grant delete, insert, maintain, references, select, trigger, truncate, update
  on table public.unpaid_orders
  to postgres;

-- The guard works payment_status out anew: what was returned for tickets that stand is due again.
update public.orders set status = status where status = 'completed' and amount_refunded > 0;
