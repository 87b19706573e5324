-- Links that stand in e-mails alone: their secret is computed from what they open, so nothing is kept of them, and a link ends with any of the
-- facts that it is made of.

-- One row.
create table private.link_keys (
  is_only boolean not null default true,
  secret text not null default private.random_token() || private.random_token(),
  constraint link_keys_pkey primary key (is_only),
  constraint link_keys_is_one_row check (is_only)
);
comment on table private.link_keys is 'Signs links in e-mails. A new secret invalidates all links sent before.';
revoke all on private.link_keys from anon, authenticated, service_role;
alter table private.link_keys enable row level security;
insert into private.link_keys default values;

-- The id, and half of a hash of the facts. Half, so that nobody goes on hashing from there. Null where a fact is null.
create function private.link_token(id uuid, variadic facts text[]) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return (
    select replace(link_token.id::text, '-', '')
      || left(encode(sha256(convert_to(array_to_string(k.secret || facts, ' '), 'UTF8')), 'hex'), 32)
    from private.link_keys k
    where array_position(facts, null) is null
  );
end
$$;

-- What a link may open; null where it is malformed. Whoever asks compares the whole token.
create function private.id_of_link(token text) returns uuid
language plpgsql immutable set search_path = ''
as $$
begin
  return case when token ~ '^[0-9a-f]{64}$' then left(token, 32)::uuid end;
end
$$;

-- The address of a page, such as /u/TOKEN. The database does not know where the API is: its tokens say so. Null in a session without one.
create function private.link_url(path text, token text) returns text
language plpgsql stable set search_path = ''
as $$
begin
  return private.claims() ->> 'public_url' || '/' || path || '/' || token;
end
$$;
grant execute on function private.link_url to scope_events_read, scope_events_write, scope_attendees_read, scope_attendees_write;
