-- Acts that a person confirms: what cannot be undone, asked for over MCP by a key that asks. The operation refuses with what it would have
-- done; the gateway keeps that as a request and hands out its link. The link confirms nothing by itself: somebody who is signed in
-- (15-oauth) with a person's key of the same organisation and the scope of the operation presses a button. Then the same call, by the same key
-- with the same arguments, goes through once, in the transaction that spends the confirmation.

create table private.confirmations (
  -- In the link: of no guessable time.
  id uuid not null default gen_random_uuid(),
  organisation_id uuid not null,
  api_key_id uuid not null,
  operation text not null,
  scope public.api_scope not null,
  fingerprint bytea not null,
  arguments jsonb not null,
  effect jsonb not null,
  asked_at timestamptz not null default now(),
  expires_at timestamptz not null default now() + interval '10 minutes',
  confirmed_at timestamptz,
  confirmed_by uuid,
  spent_at timestamptz,
  forget_at timestamptz not null default now() + interval '1 hour',
  constraint confirmations_pkey primary key (id),
  constraint confirmations_organisation_id_fkey foreign key (organisation_id) references public.organisations (id) on delete cascade,
  constraint confirmations_api_key_id_fkey foreign key (api_key_id) references public.api_keys (id) on delete cascade,
  constraint confirmations_confirmed_by_fkey foreign key (confirmed_by) references public.api_keys (id) on delete cascade,
  constraint confirmations_fingerprint_is_sha256 check (octet_length(fingerprint) = 32),
  constraint confirmations_are_confirmed_by_somebody check ((confirmed_at is null) = (confirmed_by is null)),
  constraint confirmations_are_confirmed_before_they_are_spent check (spent_at is null or confirmed_at is not null)
);
comment on table private.confirmations is
  'Requests for a person to confirm an operation, valid once and for ten minutes. A carried-out request shows for 90 days who confirmed it.';

create index confirmations_api_key_id_fingerprint_idx on private.confirmations (api_key_id, fingerprint);
create index confirmations_organisation_id_idx on private.confirmations (organisation_id);
create index confirmations_confirmed_by_idx on private.confirmations (confirmed_by) where confirmed_by is not null;
-- For api.purge.
create index confirmations_forget_at_idx on private.confirmations (forget_at);

alter table private.confirmations enable row level security;

-- Whether a call does no more than the page said, by each number for itself, but for twenty people: registrations go on while somebody reads.
-- Of money so much more passes as the people do: what twenty tickets more of those on the page would have cost. An erasure is of nobody
-- else.
create function private.is_within(operation text, effect jsonb, confirmed jsonb) returns boolean
language plpgsql immutable set search_path = ''
as $$
declare
  v_more integer := case when operation like 'erase%' then 0 else 20 end;
begin
  return not exists (
    select from unnest('{orders,attendees,waiting_list,told}'::text[]) n
    where (effect ->> n)::integer > coalesce((confirmed ->> n)::integer, 0) + v_more
  ) and coalesce((effect ->> 'refund_due')::numeric, 0)
    <= coalesce((confirmed ->> 'refund_due')::numeric, 0) * (1 + v_more / greatest((confirmed ->> 'attendees')::numeric, 1));
end
$$;

-- Whether a person has to confirm what this call would do: not over REST, nor for a key that does not ask.
-- Security definer: an operation's role may not read keys.
create function private.is_asking() returns boolean
language plpgsql stable security definer set search_path = ''
as $$
begin
  return private.current_source() = 'mcp'
    and not exists (select from public.api_keys k where k.id = private.current_api_key_id() and k.confirmations = 'none');
end
$$;
grant execute on function private.is_asking to api_key;

-- Spends the confirmation of this call, or refuses it. To be called by an operation with its arguments, ids in the place of names, when it
-- has done all but record its outcome. `hidden` is what the effect has besides, and the key that asks may not read.
-- Security definer: no role may read or write confirmations.
create function private.assert_confirmed(operation text, arguments jsonb, effect json, hidden jsonb default '{}') returns void
language plpgsql volatile security definer set search_path = ''
as $$
declare
  -- Postgres may log the refusal: the gateway adds these from the call.
  c_personal constant text[] := '{email,names,external_reference,message,subject}';
  v_fingerprint bytea;
  v_confirmed_by uuid;
begin
  if not private.is_asking() then
    return;
  end if;
  -- What guests of an order are told has its event.
  v_fingerprint := sha256(convert_to(concat_ws(' ', operation, arguments, (
    select private.announced(e)
    from public.orders o
    join public.events e on e.id = o.event_id
    where o.organisation_id = private.current_organisation_id() and o.id = coalesce(
      (arguments ->> 'order_id')::uuid, (select a.order_id from public.attendees a where a.id = (arguments ->> 'attendee_id')::uuid)
    )
  )), 'UTF8'));

  update private.confirmations c
  set spent_at = now(), arguments = '{}', fingerprint = sha256(uuid_send(gen_random_uuid())), forget_at = now() + interval '90 days'
  where c.id = (
    select o.id
    from private.confirmations o
    where o.api_key_id = private.current_api_key_id()
      and o.fingerprint = v_fingerprint
      and o.confirmed_at is not null
      and o.spent_at is null
      and o.expires_at > now()
      and private.is_within(assert_confirmed.operation, assert_confirmed.effect::jsonb || hidden, o.effect)
      -- Who confirmed may have lost the right to.
      and exists (
        select from public.api_keys k where k.id = o.confirmed_by and private.is_usable_key(k) and o.scope = any (k.scopes)
      )
    order by o.confirmed_at
    limit 1
    for update
  )
  returning c.confirmed_by into v_confirmed_by;
  if not found then
    perform private.refuse(
      428, 'confirmation_required', 'A person must confirm this first.',
      -- As text: refusals leave nulls out.
      details => jsonb_build_object(
        'operation', operation, 'arguments', (arguments - c_personal)::text, 'of_call', c_personal, 'effect', effect, 'hidden', hidden,
        'fingerprint', encode(v_fingerprint, 'hex')
      ),
      hint => 'Repeat the call after they have confirmed.'
    );
  end if;
  -- The entries of the act itself name the key that asked.
  insert into public.audit_entries (organisation_id, action, object_type, object_id, actor, api_key_id, source, changes)
  values (
    private.current_organisation_id(), 'confirmed',
    case
      when arguments ? 'attendee_id' then 'attendee'
      when arguments ? 'order_id' then 'order'
      when arguments ? 'event_id' then 'event'
      else 'organisation'
    end::public.audit_object,
    coalesce(arguments ->> 'attendee_id', arguments ->> 'order_id', arguments ->> 'event_id', private.current_organisation_id()::text)::uuid,
    'api_key', v_confirmed_by, 'api', jsonb_build_object('operation', jsonb_build_object('from', null, 'to', operation))
  );
end
$$;
grant execute on function private.assert_confirmed to api_key;

-- The same where more than twenty people are told, by what the call did.
create function private.assert_notice_confirmed(operation text, arguments jsonb, effect json) returns void
language plpgsql volatile set search_path = ''
as $$
begin
  if (effect ->> 'told')::integer > 20 then
    perform private.assert_confirmed(operation, arguments, effect);
  end if;
end
$$;
grant execute on function private.assert_notice_confirmed to api_key;

-- Keeps what an operation refused for lack of a confirmation. What is asked for once more, and would do the same, has the same link.
-- Security definer: the gateway may write no table.
create function api.ask_confirmation(
  api_key_id uuid,
  scope public.api_scope,
  operation text,
  arguments jsonb,
  fingerprint text,
  effect jsonb
) returns json
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_most constant integer := 50;
  v_key public.api_keys;
  v_asked private.confirmations;
begin
  -- Locked, so that of two that ask for the same the second finds the first.
  select k.* into v_key from public.api_keys k where k.id = ask_confirmation.api_key_id for no key update;
  perform private.assert_usable_key(v_key);

  select c.* into v_asked
  from private.confirmations c
  where c.api_key_id = v_key.id
    and c.fingerprint = decode(ask_confirmation.fingerprint, 'hex')
    and c.effect = ask_confirmation.effect
    and c.spent_at is null
    and c.confirmed_at is null
    and c.expires_at > now() + interval '1 minute'
  order by c.asked_at desc
  limit 1;
  if not found then
    delete from private.confirmations c
    where c.id = any (array(
      select o.id
      from private.confirmations o
      where o.api_key_id = v_key.id and o.confirmed_at is null
      order by o.asked_at desc
      offset v_most - 1
    ));
    insert into private.confirmations (organisation_id, api_key_id, operation, scope, fingerprint, arguments, effect)
    values (
      v_key.organisation_id, v_key.id, ask_confirmation.operation, ask_confirmation.scope,
      decode(ask_confirmation.fingerprint, 'hex'), ask_confirmation.arguments, ask_confirmation.effect
    )
    returning * into v_asked;
  end if;
  return json_build_object('id', v_asked.id, 'expires_at', private.rfc3339(v_asked.expires_at));
end
$$;
comment on function api.ask_confirmation is
  'Stores a request for confirmation: { id, expires_at }. 401 when the key is no longer valid. For the gateway.';
grant execute on function api.ask_confirmation to gateway;

-- What the page says the request is about, as it is now. Only of the organisation itself.
create function private.subject_of_confirmation(confirmation private.confirmations) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_arguments jsonb := confirmation.arguments;
  v_attendee public.attendees;
  v_order public.orders;
  v_event public.events;
  -- The event may have been renamed since; what is confirmed is bound to this.
  v_announced jsonb := coalesce(v_arguments -> 'announced', '{}');
  v_people json;
begin
  select a.* into v_attendee
  from public.attendees a
  where a.id = (v_arguments ->> 'attendee_id')::uuid and a.organisation_id = confirmation.organisation_id;
  select o.* into v_order
  from public.orders o
  where o.id = coalesce((v_arguments ->> 'order_id')::uuid, v_attendee.order_id) and o.organisation_id = confirmation.organisation_id;
  select e.* into v_event
  from public.events e
  where e.id = coalesce((v_arguments ->> 'event_id')::uuid, v_order.event_id) and e.organisation_id = confirmation.organisation_id;
  -- Who is erased, by an erasure of an address, with how much of each; the first twenty and one more.
  if confirmation.operation = 'erase_person' then
    select json_agg(json_build_object(
      'name', p.name, 'tickets', p.tickets, 'orders', p.orders, 'waiting_list', p.entries, 'is_member', p.is_member
    ) order by p.last_at desc, p.form)
    into v_people
    from (
      select
        r.form, max(r.created_at) as last_at,
        -- Of a member without a name there is the address alone.
        coalesce(nullif((array_agg(r.name order by r.created_at desc, r.id))[1], ''), v_arguments ->> 'email') as name,
        bool_or(r.object = 'member') as is_member,
        count(*) filter (where r.object = 'attendee' and not r.is_former) as tickets,
        count(*) filter (where r.object = 'order' and not r.is_former) as orders,
        count(*) filter (where r.object = 'waiting_list_entry' and not r.is_former) as entries
      from private.rows_to_erase(confirmation.organisation_id, v_arguments) r
      group by r.form
      order by last_at desc, r.form
      limit 21
    ) p;
  end if;
  return json_build_object(
    'event', coalesce(v_announced ->> 'name', v_event.name),
    'slug', coalesce(v_announced ->> 'slug', v_event.slug),
    'starts_at', coalesce(v_announced ->> 'starts_at', private.rfc3339(v_event.starts_at)),
    'timezone', coalesce(v_announced ->> 'timezone', v_event.timezone),
    'order', v_order.reference,
    'person', coalesce(v_attendee.name, v_order.name, v_arguments ->> 'email'),
    'people', v_people
  );
end
$$;

-- Security definer: the gateway may read no table.
create function api.get_confirmation(secret_hash text, confirmation_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_key public.api_keys := private.key_of_sign_in(secret_hash);
  v_asked private.confirmations;
  v_shown private.confirmations;
begin
  select c.* into v_asked
  from private.confirmations c
  where c.id = confirmation_id and c.organisation_id = v_key.organisation_id;
  if not found then
    return null;
  end if;
  -- Of people and money only for whoever may do it.
  if v_asked.scope = any (v_key.scopes) then
    v_shown := v_asked;
  end if;
  return (
    select json_build_object(
      'state', case
        when v_asked.spent_at is not null then 'spent'
        when v_asked.expires_at <= now() then 'expired'
        -- They are not those that were asked for: so many others in their place would count as much.
        when v_asked.operation = 'erase_person'
          and private.digest_of_people(array(select r from private.rows_to_erase(v_asked.organisation_id, v_asked.arguments) r))
            is distinct from v_asked.arguments ->> 'digest' then 'expired'
        when v_asked.confirmed_at is not null then 'confirmed'
        else 'open'
      end,
      'operation', v_asked.operation,
      'scope', v_asked.scope,
      'may_confirm', v_shown.id is not null,
      'asked_by', json_build_object('name', k.name, 'prefix', k.prefix, 'kind', k.kind),
      'expires_at', private.rfc3339(v_asked.expires_at),
      'effect', case when 'orders:read' = any (v_key.scopes) or not v_asked.operation like 'cancel%' then v_shown.effect
        else v_shown.effect || '{"refund_due": null}' end,
      'changes', v_shown.arguments -> 'changes',
      'news', v_shown.arguments -> 'news',
      'message', v_shown.arguments -> 'message',
      'message_subject', v_shown.arguments -> 'subject',
      'audience', v_shown.arguments -> 'audience',
      'steps', v_shown.arguments -> 'steps',
      'more_steps', v_shown.arguments -> 'more_steps',
      'subject', case when v_shown.id is not null then private.subject_of_confirmation(v_shown) end
    )
    from public.api_keys k
    where k.id = v_asked.api_key_id
  );
end
$$;
comment on function api.get_confirmation is
  'A request for confirmation, for the person signed in: { state, operation, scope, may_confirm, asked_by, expires_at, effect, changes, news, message, message_subject, audience, steps, more_steps, subject }. null without a sign-in, or for another organisation''s request. For the gateway.';
grant execute on function api.get_confirmation to gateway;

-- Security definer: the gateway may read and write no table.
create function api.decide_confirmation(secret_hash text, confirmation_id uuid, confirmed boolean) returns boolean
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_key public.api_keys := private.key_of_sign_in(secret_hash);
begin
  if confirmed then
    update private.confirmations c
    set confirmed_at = now(), confirmed_by = v_key.id
    where c.id = confirmation_id
      and c.organisation_id = v_key.organisation_id
      and c.scope = any (v_key.scopes)
      and c.confirmed_at is null
      and c.expires_at > now();
  else
    delete from private.confirmations c
    where c.id = confirmation_id
      and c.organisation_id = v_key.organisation_id
      and c.scope = any (v_key.scopes)
      and c.spent_at is null;
  end if;
  return found;
end
$$;
comment on function api.decide_confirmation is
  'Records the decision of the person signed in. Returns whether there was such a request for them. A refused request is deleted. For the gateway.';
grant execute on function api.decide_confirmation to gateway;
