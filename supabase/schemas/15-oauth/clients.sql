-- Clients that registered themselves (RFC 7591). A client with a metadata document has its URL as its id, and no row.

create table private.oauth_clients (
  client_id text not null,
  metadata jsonb not null,
  used_at timestamptz,
  created_at timestamptz not null default now(),
  constraint oauth_clients_pkey primary key (client_id),
  constraint oauth_clients_metadata_is_bounded check (octet_length(metadata::text) <= 16384)
);
comment on table private.oauth_clients is 'Clients that registered themselves: their metadata, and when a person last authorised them.';

-- For api.purge, and for the limit on those that nobody has used.
create index oauth_clients_created_at_idx on private.oauth_clients (created_at) where used_at is null;
create index oauth_clients_used_at_idx on private.oauth_clients (used_at) where used_at is not null;

alter table private.oauth_clients enable row level security;

-- Anybody may register, so beyond ten thousand that nobody has used the oldest of them are forgotten.
-- Security definer: the gateway may write no table.
create function api.save_oauth_client(client_id text, metadata jsonb) returns void
language plpgsql volatile security definer set search_path = ''
as $$
begin
  insert into private.oauth_clients (client_id, metadata) values (save_oauth_client.client_id, save_oauth_client.metadata);

  delete from private.oauth_clients c
  where c.client_id in (
    select o.client_id from private.oauth_clients o
    where o.used_at is null order by o.created_at desc offset 10000 limit 100 for update skip locked
  );
end
$$;
comment on function api.save_oauth_client is 'Stores a client that registers itself. For the gateway.';
grant execute on function api.save_oauth_client to gateway;

-- Security definer: the gateway may read no table.
create function api.find_oauth_client(client_id text) returns json
language plpgsql stable security definer set search_path = ''
as $$ begin return (select c.metadata from private.oauth_clients c where c.client_id = find_oauth_client.client_id); end $$;
comment on function api.find_oauth_client is 'Metadata of a registered client, or null. For the gateway.';
grant execute on function api.find_oauth_client to gateway;
