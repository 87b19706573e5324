-- Logos of organisations, for e-mails and ticket pages. The courier fetches what logo_url names once, checks it and stores it: what
-- guests open never loads anything from elsewhere.

-- The row of an organisation that has a logo_url; a change of it replaces the row, so that what is in flight of the old one is ignored.
create table private.organisation_logos (
  organisation_id uuid not null,
  url text not null,
  next_attempt_at timestamptz default now(),
  attempts integer not null default 0,
  claim uuid,
  content bytea,
  content_type text,
  width integer,
  height integer,
  error text,
  created_at timestamptz not null default now(),
  constraint organisation_logos_pkey primary key (organisation_id),
  constraint organisation_logos_organisation_id_fkey foreign key (organisation_id)
    references public.organisations (id) on delete cascade,
  constraint organisation_logos_content_is_whole check (num_nonnulls(content, content_type, width, height) in (0, 4)),
  -- The limits of src/courier/fetch-logo.ts.
  constraint organisation_logos_content_is_bounded check (octet_length(content) between 1 and 262144),
  constraint organisation_logos_content_type_is_an_image check (content_type in ('image/png', 'image/jpeg')),
  constraint organisation_logos_size_is_bounded check (width between 1 and 2000 and height between 1 and 2000),
  constraint organisation_logos_error_is_bounded check (length(error) <= 500)
);
comment on table private.organisation_logos is 'Logos as fetched, and those to be fetched: next_attempt_at is empty once that is settled.';
create index organisation_logos_next_attempt_at_idx on private.organisation_logos (next_attempt_at) where next_attempt_at is not null;
alter table private.organisation_logos enable row level security;

-- Security definer: no role may write logos.
create function private.tg_organisations__queue_logo() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  if tg_op = 'INSERT' or new.logo_url is distinct from old.logo_url or old.logo_error is not null then
    delete from private.organisation_logos l where l.organisation_id = new.id;
    insert into private.organisation_logos (organisation_id, url) select new.id, new.logo_url where new.logo_url is not null;
  end if;
  return null;
end
$$;
create trigger organisations_500_queue_logo after insert or update of logo_url on public.organisations
  for each row execute function private.tg_organisations__queue_logo();

create function private.tg_organisation_logos__show_error() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
begin
  update public.organisations o set logo_error = new.error
  where o.id = coalesce(new.organisation_id, old.organisation_id) and o.logo_error is distinct from new.error;
  return null;
end
$$;
create trigger organisation_logos_500_show_error after insert or delete or update of error on private.organisation_logos
  for each row execute function private.tg_organisation_logos__show_error();

create function api.claim_logos("limit" integer, lease_seconds integer default 60) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Four attempts are made. A row that is claimed more often crashes its couriers, or they cannot settle it.
  v_most_claims constant integer := 10;
  v_claimed json;
begin
  perform api.settle_logo(l.organisation_id, l.claim, error => 'The logo could not be fetched.', permanent => true)
  from private.organisation_logos l
  where l.next_attempt_at <= now() and l.attempts >= v_most_claims;

  with claimed as (
    update private.organisation_logos l
    set claim = gen_random_uuid(), attempts = l.attempts + 1, next_attempt_at = now() + make_interval(secs => lease_seconds)
    where l.organisation_id in (
      select d.organisation_id from private.organisation_logos d
      where d.next_attempt_at <= now() order by d.next_attempt_at limit claim_logos."limit" for update skip locked
    )
    returning l.organisation_id, l.claim, l.attempts, l.url
  )
  select coalesce(json_agg(json_build_object('id', c.organisation_id, 'claim', c.claim, 'attempt', c.attempts, 'url', c.url)), '[]')
  into v_claimed
  from claimed c;
  return v_claimed;
end
$$;
comment on function api.claim_logos is
  'Logos to be fetched, claimed for lease_seconds: [{ id, claim, attempt, url }], where id is that of the organisation.';
grant execute on function api.claim_logos to courier;

-- Stored, or failed, permanently or for now; ignored under an old claim. The organisation is locked before its logo, as when its
-- logo_url changes.
create function api.settle_logo(
  organisation_id uuid,
  claim uuid,
  content text default null,
  content_type text default null,
  width integer default null,
  height integer default null,
  error text default null,
  permanent boolean default false
) returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_pauses constant interval[] := '{30 seconds,5 minutes,1 hour}';
  v_logo private.organisation_logos;
  v_next_attempt_at timestamptz;
begin
  perform from public.organisations o where o.id = settle_logo.organisation_id for no key update;
  select l.* into v_logo
  from private.organisation_logos l
  where l.organisation_id = settle_logo.organisation_id and l.claim = settle_logo.claim
  for no key update;
  if not found then
    return;
  end if;
  if error is not null and not permanent then
    v_next_attempt_at := now() + private.retry_delay(v_logo.attempts, v_pauses);
  end if;
  update private.organisation_logos l
  set claim = null,
    content = decode(settle_logo.content, 'base64'),
    content_type = settle_logo.content_type,
    width = settle_logo.width,
    height = settle_logo.height,
    error = settle_logo.error || case when v_next_attempt_at is not null then ' Usher tries again.' else '' end,
    next_attempt_at = v_next_attempt_at
  where l.organisation_id = v_logo.organisation_id;
end
$$;
comment on function api.settle_logo is
  'Records a fetched logo (content in base64), or why it was not fetched. Ignored if another claim or logo_url has replaced this one.';
grant execute on function api.settle_logo to courier;

-- E-mails name the logo by this, so that a courier asks for it once.
create function private.logo_version(organisation_id uuid) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select private.rfc3339(l.created_at)
    from private.organisation_logos l
    where l.organisation_id = logo_version.organisation_id and l.content is not null
  );
end
$$;

create function api.get_logo(organisation_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select json_build_object(
      'content_type', l.content_type,
      'content', translate(encode(l.content, 'base64'), E'\n', ''),
      'width', l.width,
      'height', l.height
    )
    from private.organisation_logos l
    where l.organisation_id = get_logo.organisation_id and l.content is not null
  );
end
$$;
comment on function api.get_logo is 'The logo of an organisation: { content_type, content (base64), width, height }, or null. For the courier and the ticket page.';
grant execute on function api.get_logo to courier, gateway;
