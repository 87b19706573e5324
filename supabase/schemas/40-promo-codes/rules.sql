-- What holds for a promo code whoever writes it, beside its constraints: one trigger for each rule. None is security definer: row level
-- security hides another organisation's events and ticket types, so they count as missing.

-- Of new ones that people add, private.assert_not_taken refuses what is taken.
create function private.tg_promo_codes__assert_code_is_free() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  -- As buyers type it on one device and organisers on another.
  new.code := normalize(new.code, nfc);
  -- Before the unique index, whose error would reveal that a code of another organisation exists.
  if not exists (select from public.events e where e.id = new.event_id and e.organisation_id = new.organisation_id) then
    perform private.refuse_not_found('event_id');
  end if;
  if tg_op = 'UPDATE' or private.current_api_key_id() is not null then
    perform private.refuse_taken('code', c.id, c.created_at, c.xmin)
    from public.promo_codes c
    where c.event_id = new.event_id and lower(c.code) = lower(new.code) and c.id <> new.id;
  end if;
  return new;
end
$$;
create trigger promo_codes_100_code before insert or update of code on public.promo_codes
  for each row execute function private.tg_promo_codes__assert_code_is_free();

create trigger promo_codes_110_limit before update of max_redemptions on public.promo_codes
  for each row when (new.max_redemptions < new.times_redeemed)
  execute function private.tg__refuse(
    409, 'limit_below_redeemed', 'The limit cannot be less than the uses so far.', '', 'max_redemptions', 'times_redeemed'
  );
