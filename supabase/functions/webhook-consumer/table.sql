-- For the project that receives webhooks: what has arrived, each once. Only the function writes it.
create table public.webhook_inbox (
  webhook_id text primary key,
  type text not null,
  sent_at timestamptz not null,
  data jsonb not null,
  received_at timestamptz not null default now(),
  -- A request is posting it until then. An older table lacks it: alter table public.webhook_inbox add column taken_until timestamptz;
  taken_until timestamptz,
  -- When it was said in the chat.
  posted_at timestamptz
);
alter table public.webhook_inbox enable row level security;
revoke all on public.webhook_inbox from anon, authenticated;
grant select, insert, update on public.webhook_inbox to service_role;
