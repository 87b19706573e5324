-- Promo codes: a percentage off each ticket, or an amount off the order, for some or all ticket types of an event, limited in time
-- and in uses. Never overused.

create type public.promo_code_status as enum ('active', 'disabled');

create table public.promo_codes (
  code text not null,
  event_id uuid not null,
  percent_off numeric(5, 2),
  amount_off bigint,
  max_redemptions integer,
  times_redeemed integer not null default 0,
  status public.promo_code_status not null default 'active',
  valid_from timestamptz,
  valid_until timestamptz,
  ticket_type_ids uuid[] not null default '{}',
  unlocks boolean not null default false,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  version integer not null default 1,
  constraint promo_codes_pkey primary key (id),
  constraint promo_codes_id_event_id_key unique (id, event_id),
  constraint promo_codes_event_id_fkey foreign key (event_id, organisation_id)
    references public.events (id, organisation_id),
  -- What is invisible nobody types. src/operations/promo-codes.ts has the same rule.
  constraint promo_codes_code_is_one_word check (
    code ~ '^[^\u0001-\u0020\u007f-\u00a0\u00ad\u061c\u1680\u180e\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufeff]{1,50}$'
  ),
  constraint promo_codes_percent_off_is_a_percentage check (percent_off > 0 and percent_off <= 100),
  constraint promo_codes_amount_off_is_bounded check (amount_off between 1 and 100000000000),
  constraint promo_codes_percent_off_or_amount_off_is_set check (num_nonnulls(percent_off, amount_off) > 0 or unlocks),
  constraint promo_codes_unlocks_named_ticket_types check (not unlocks or ticket_type_ids <> '{}'),
  constraint promo_codes_amount_off_is_alone check (num_nonnulls(percent_off, amount_off) < 2),
  constraint promo_codes_valid_until_is_after_valid_from check (valid_until > valid_from),
  constraint promo_codes_valid_from_and_valid_until_are_finite check (
    valid_from between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
    and valid_until between '1900-01-01T00:00:00Z' and '9999-12-31T00:00:00Z'
  ),
  constraint promo_codes_max_redemptions_is_positive check (max_redemptions > 0),
  constraint promo_codes_times_redeemed_is_not_negative check (times_redeemed >= 0),
  constraint promo_codes_are_not_overused check (times_redeemed <= max_redemptions),
  constraint promo_codes_ticket_type_ids_are_bounded check (cardinality(ticket_type_ids) <= 100)
);
comment on constraint promo_codes_code_is_one_word on public.promo_codes is
  'A promo code must be one word of 1 to 50 letters, digits or signs. Remove spaces and invisible characters.';
comment on constraint promo_codes_percent_off_is_a_percentage on public.promo_codes is
  'A discount must be above 0 and at most 100 percent. 25 takes off a quarter.';
comment on constraint promo_codes_amount_off_is_bounded on public.promo_codes is
  'An amount off must be from 1 to 100000000000. It is in minor units: 500 is 5.00.';
comment on constraint promo_codes_percent_off_or_amount_off_is_set on public.promo_codes is
  'A promo code needs a percentage or an amount, unless it unlocks ticket types. Set percent_off or amount_off.';
comment on constraint promo_codes_unlocks_named_ticket_types on public.promo_codes is
  'A code that unlocks ticket types must name them. Set ticket_type_ids as well.';
comment on constraint promo_codes_amount_off_is_alone on public.promo_codes is
  'A promo code cannot have both a percentage and an amount. Set the other one to null in the same change.';
comment on constraint promo_codes_valid_until_is_after_valid_from on public.promo_codes is
  'A promo code must end after it starts. Change valid_from and valid_until together.';
comment on constraint promo_codes_max_redemptions_is_positive on public.promo_codes is
  'A promo code must allow at least 1 use. Leave max_redemptions empty for no limit, or disable the code.';
comment on table public.promo_codes is 'Discounts that buyers get with a code. Disable a code to refuse it from now on.';
comment on column public.promo_codes.code is 'The code that the buyer types: one word, up to 50 characters. Case does not matter.';
comment on column public.promo_codes.percent_off is 'Percentage off each ticket: above 0, up to 100, at most two decimals. Empty: see amount_off.';
comment on column public.promo_codes.amount_off is 'Amount off each order, in minor units (49.90 is 4990), spread over its tickets. Empty: see percent_off.';
comment on column public.promo_codes.max_redemptions is 'How many tickets may use it. Empty: no limit.';
comment on column public.promo_codes.times_redeemed is 'Tickets that use it, whatever the discount. Counted from the attendees, not edited.';
comment on column public.promo_codes.status is 'active or disabled.';
comment on column public.promo_codes.valid_from is 'Valid from. Empty: at once.';
comment on column public.promo_codes.valid_until is 'Valid until. Empty: without end.';
comment on column public.promo_codes.ticket_type_ids is 'Ticket types it applies to, up to 100. Empty: all of the event.';
comment on column public.promo_codes.unlocks is 'Whether it shows the hidden ticket types among ticket_type_ids on the registration page.';

create unique index promo_codes_event_id_code_key on public.promo_codes (event_id, lower(code));
create index promo_codes_event_id_id_idx on public.promo_codes (event_id, id desc);

-- Takes uses of a code (negative: returns them), exactly, under any concurrency: the row update makes two buyers of the last
-- use wait for one another.
-- Security definer: a key that registers may not update promo codes.
create function private.move_redemptions(promo_code_id uuid, uses integer) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_promo_code public.promo_codes;
begin
  update public.promo_codes c set times_redeemed = c.times_redeemed + uses
  where c.id = move_redemptions.promo_code_id
    and (uses < 0 or c.max_redemptions is null or c.times_redeemed + uses <= c.max_redemptions)
  returning * into v_promo_code;
  if not found then
    perform private.refuse(
      409, 'promo_code_used_up', 'The promo code has too few uses left for these tickets.', 'promo_code',
      hint => 'Register without it, or raise its max_redemptions.'
    );
  end if;

  -- So was the discount of one that is reopened agreed while the code was valid.
  if uses < 0 or current_setting('usher.reopening', true) <> '' then
    return;
  elsif v_promo_code.status = 'disabled' then
    perform private.refuse(
      409, 'promo_code_disabled', 'The promo code is disabled.', 'promo_code', hint => 'Register without it, or enable it.'
    );
  elsif now() < v_promo_code.valid_from then
    perform private.refuse(
      409, 'promo_code_not_started', 'The promo code is not valid yet.', 'promo_code',
      jsonb_build_object('valid_from', private.rfc3339(v_promo_code.valid_from))
    );
  elsif now() >= v_promo_code.valid_until then
    perform private.refuse(
      409, 'promo_code_expired', 'The promo code has expired.', 'promo_code',
      jsonb_build_object('valid_until', private.rfc3339(v_promo_code.valid_until))
    );
  end if;
end
$$;

select private.keep_table('public.promo_codes', filled => '{organisation_id}', fixed => '{organisation_id,event_id}',
  sums => '{"times_redeemed": "times_redeemed is counted from the attendees and cannot be edited."}',
  versioned => true, uncounted => '{times_redeemed}', of_event => true,
  in_use => array[
    'The promo code is in use: it has orders.',
    'Disable it instead: set its status to disabled.',
    'orders.promo_code_id', 'attendees.promo_code_id'
  ]);

create policy promo_codes_select_own on public.promo_codes for select to scope_events_read, scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy promo_codes_insert_own on public.promo_codes for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy promo_codes_update_own on public.promo_codes for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy promo_codes_select_membership on public.promo_codes for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy promo_codes_insert_membership on public.promo_codes for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy promo_codes_update_membership on public.promo_codes for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.promo_codes to scope_events_read, scope_events_write, authenticated;
grant insert (
  organisation_id, event_id, code, percent_off, amount_off, valid_from, valid_until, max_redemptions, ticket_type_ids, unlocks, status
) on public.promo_codes to scope_events_write, authenticated;
grant update (
  code, percent_off, amount_off, valid_from, valid_until, max_redemptions, ticket_type_ids, unlocks, status
) on public.promo_codes to scope_events_write, authenticated;

create function private.promo_code_json(promo_code public.promo_codes) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'promo_code',
    'id', promo_code.id,
    'event_id', promo_code.event_id,
    'code', promo_code.code,
    'percent_off', promo_code.percent_off::float8,
    'amount_off', promo_code.amount_off,
    'valid_from', private.rfc3339(promo_code.valid_from),
    'valid_until', private.rfc3339(promo_code.valid_until),
    'max_redemptions', promo_code.max_redemptions,
    'times_redeemed', promo_code.times_redeemed,
    'ticket_type_ids', promo_code.ticket_type_ids,
    'unlocks', promo_code.unlocks,
    'status', promo_code.status,
    'state', case
      when promo_code.status = 'disabled' then 'disabled'
      when now() < promo_code.valid_from then 'upcoming'
      when now() >= promo_code.valid_until then 'expired'
      when promo_code.times_redeemed >= promo_code.max_redemptions then 'used_up'
      else 'valid'
    end,
    'version', promo_code.version,
    'created_at', private.rfc3339(promo_code.created_at),
    'updated_at', private.rfc3339(promo_code.updated_at)
  );
end
$$;
grant execute on function private.promo_code_json to scope_events_read, scope_events_write;
