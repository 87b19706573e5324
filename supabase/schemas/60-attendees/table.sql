-- Attendees: the people who come, each with a ticket code. An attendee who is not cancelled is a line of the order
-- (60-attendees/totals.sql) and holds a place (60-attendees/places.sql).

create type public.attendee_status as enum ('active', 'awaiting_payment', 'cancelled');
-- Of the ticket e-mail of an attendee, and of each row of emails.
create type public.email_status as enum (
  'not_requested', 'waiting', 'queued', 'sent', 'delivered', 'bounced', 'failed', 'cancelled'
);

-- Fillfactor 50, as for orders.
create table public.attendees (
  name text not null,
  email text not null,
  company text,
  checked_in boolean not null generated always as (checked_in_at is not null) stored,
  checked_in_at timestamptz,
  inside boolean not null default false,
  status public.attendee_status not null default 'active',
  event_id uuid not null,
  ticket_type_id uuid not null,
  order_id uuid not null,
  price bigint not null default 0,
  discount bigint not null default 0,
  currency text not null,
  ticket_email_status public.email_status not null default 'queued',
  ticket_email_sent_at timestamptz,
  ticket_email_last_error text,
  ticket_code text not null,
  cancelled_at timestamptz,
  erased_at timestamptz,
  external_id text,
  metadata jsonb not null default '{}',
  answers jsonb not null default '{}',
  sensitive_answers jsonb not null default '{}',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  promo_code_id uuid,
  waiting_list_entry_id uuid,
  version integer not null default 1,
  email_lower text not null generated always as (lower(email)) stored,
  ticket_token text not null,
  search_text text not null default '',
  constraint attendees_pkey primary key (id),
  constraint attendees_ticket_code_organisation_id_key unique (ticket_code, organisation_id),
  constraint attendees_ticket_token_key unique (ticket_token),
  -- event_id and organisation_id are those of the order: see rules.sql. A key of three columns would be looked up by whichever index
  -- the planner preferred while the table was small, and then read every order of the organisation for each attendee.
  constraint attendees_order_id_fkey foreign key (order_id) references public.orders (id),
  constraint attendees_ticket_type_id_fkey foreign key (ticket_type_id, event_id)
    references public.ticket_types (id, event_id),
  constraint attendees_promo_code_id_fkey foreign key (promo_code_id, event_id)
    references public.promo_codes (id, event_id),
  constraint attendees_discount_is_at_most_the_price check (discount between 0 and price),
  constraint attendees_company_is_one_line check (private.is_one_line(company, 200)),
  constraint attendees_external_id_is_bounded check (length(external_id) between 1 and 255),
  constraint attendees_metadata_is_flat check (metadata = '{}' or private.is_metadata(metadata)),
  constraint attendees_answers_are_an_object check (jsonb_typeof(answers) = 'object'),
  constraint attendees_sensitive_answers_are_an_object check (jsonb_typeof(sensitive_answers) = 'object')
) with (fillfactor = 50);
comment on constraint attendees_company_is_one_line on public.attendees is
  'company is one line of 1 to 200 characters. Write at least one letter, and no line breaks.';
comment on constraint attendees_external_id_is_bounded on public.attendees is 'external_id has 1 to 255 characters.';
comment on constraint attendees_metadata_is_flat on public.attendees is
  'Metadata is a flat object of at most 50 keys. Its values are text, numbers that are kept exactly, true, false or null.';
comment on constraint attendees_answers_are_an_object on public.attendees is
  'Answers must be an object by the keys of the questions. Write {"diet": "vegan"}.';
comment on constraint attendees_sensitive_answers_are_an_object on public.attendees is
  'Sensitive answers must be an object by the keys of the questions. Write {"allergies": "peanuts"}.';
comment on table public.attendees is 'Guests, each with a ticket. Set status to cancelled to free the place and stop admission. Only a cancelled attendee can be deleted.';
comment on column public.attendees.name is 'Name of the person.';
comment on column public.attendees.email is 'Address the ticket is sent to.';
comment on column public.attendees.company is 'Company of the person.';
comment on column public.attendees.checked_in is 'Whether they have checked in. Generated.';
comment on column public.attendees.checked_in_at is 'Time of the accepted check-in. Derived from check_ins, not edited.';
comment on column public.attendees.inside is 'Whether they are inside: checked in, with no later exit scan at the place of entry. Derived from check_ins, not edited.';
comment on column public.attendees.status is 'active, awaiting_payment, or cancelled.';
comment on column public.attendees.ticket_type_id is 'Ticket type. Change it to another type of the event: the ticket takes a place of that type, and keeps its price and discount.';
comment on column public.attendees.order_id is 'The order it belongs to.';
comment on column public.attendees.price is 'Price at registration, in minor units (49.90 is 4990). 0 if the order has no payment method.';
comment on column public.attendees.discount is 'Discount by the promo code. A percentage is rounded half up; an amount is spread over the tickets of the order.';
comment on column public.attendees.currency is 'ISO 4217 code, three capital letters.';
comment on column public.attendees.ticket_email_status is 'State of the ticket e-mail. Set it to queued to send it again, or to retry a failed one at once.';
comment on column public.attendees.ticket_email_sent_at is 'When the ticket e-mail was last sent. Kept by Usher.';
comment on column public.attendees.ticket_email_last_error is 'Why it failed or bounced. Kept by Usher.';
comment on column public.attendees.ticket_code is 'Content of the QR code: 80 random bits, generated by Usher; TEST- before them in a test organisation. Clear it to generate a new one; check-in then no longer accepts the old one.';
comment on column public.attendees.cancelled_at is 'When it was cancelled. Kept by Usher.';
comment on column public.attendees.erased_at is 'When the personal data was erased, here and in every copy: see the function erase_attendee.';
comment on column public.attendees.external_id is 'Your own identifier, unique within the organisation. When the API registers someone with it, a cancelled attendee gives it up.';
comment on column public.attendees.metadata is 'Your own flat JSON object, at most 50 keys.';
comment on column public.attendees.answers is 'Answers to the questions of the event, by key, such as {"diet": "vegan"}. Answers to sensitive questions move to sensitive_answers.';
comment on column public.attendees.sensitive_answers is 'Answers to sensitive questions, which no e-mail, webhook or log contains. Deleted after the event.';
comment on column public.attendees.promo_code_id is 'The promo code that was used. Kept by Usher.';
comment on column public.attendees.waiting_list_entry_id is 'The waiting-list entry whose offer this ticket accepts.';
comment on column public.attendees.email_lower is 'Internal: the address in lower case, for look-ups. Generated.';
comment on column public.attendees.ticket_token is 'Internal: secret in the address of the ticket page. Renewed with the ticket code. Kept by Usher.';
comment on column public.attendees.search_text is 'Internal: text that searches look at. First the fields the door may see, a tab, the rest of the attendee; on a second line the contact of the order if it differs. Kept by Usher.';

create unique index attendees_external_id_organisation_id_key on public.attendees (external_id, organisation_id)
  where external_id is not null;
create index attendees_order_id_idx on public.attendees (order_id, id);
-- The columns that are included are for private.event_summary, which reads no table of attendees.
create index attendees_promo_code_id_idx on public.attendees (promo_code_id) include (status, discount)
  where promo_code_id is not null;
-- For private.page_of_attendees.
create index attendees_organisation_id_states_idx
  on public.attendees (organisation_id, status, checked_in, inside, ticket_email_status, id);
create index attendees_ticket_type_id_states_idx
  on public.attendees (ticket_type_id, status, checked_in, inside, ticket_email_status, id) include (created_at, checked_in_at);
create index attendees_organisation_id_email_lower_idx on public.attendees (organisation_id, email_lower, id);
-- For api.erased_emails.
create index attendees_event_id_erased_at_idx on public.attendees (event_id, erased_at) where erased_at is not null;
create index attendees_organisation_id_updated_at_idx on public.attendees (organisation_id, updated_at, id);
-- For private.attendees_found.
create index attendees_answers_idx on public.attendees using gin (uuid_hash(organisation_id), answers) where answers <> '{}';
-- For private.delete_sensitive_answers.
create index attendees_event_id_sensitive_answers_idx on public.attendees (event_id) where sensitive_answers <> '{}';
-- For private.search_attendees. What is new waits in a list of at most 1 MB, which every search reads, so that a registration is not
-- delayed by some fifty entries.
create index attendees_search_text_idx on public.attendees
  using gin (uuid_hash(organisation_id), search_text extensions.gin_trgm_ops) with (gin_pending_list_limit = 1024);

insert into private.personal_columns (table_name, column_name, erased_as, field)
values
  ('attendees', 'name', '"Erased"', 'name'),
  ('attendees', 'email', '"erased@erased.invalid"', 'email'),
  ('attendees', 'company', 'null', 'company'),
  ('attendees', 'external_id', 'null', 'external_id'),
  ('attendees', 'metadata', '{}', 'metadata'),
  ('attendees', 'answers', '{}', 'answers'),
  ('attendees', 'sensitive_answers', '{}', null),
  ('attendees', 'ticket_email_last_error', 'null', null);

-- Check-in accepts active tickets only, so a QR code or an e-mail of any other ticket is refused.
create function private.refuse_inactive_ticket(status public.attendee_status, message text default 'The ticket is not active.') returns void
language plpgsql volatile set search_path = ''
as $$
begin
  perform private.refuse(
    409, 'ticket_not_active', message, 'status',
    jsonb_build_object('status', status), 'A cancelled ticket stays cancelled. An unpaid ticket becomes active when it is paid.'
  );
end
$$;
grant execute on function private.refuse_inactive_ticket to scope_attendees_read, scope_attendees_write;

select private.keep_table('public.attendees', filled => '{organisation_id,event_id,currency,ticket_code,ticket_token}',
  fixed => '{organisation_id,event_id,order_id,waiting_list_entry_id,price,discount,currency,promo_code_id}',
  fixed_hints => '{"discount": "For another discount, cancel the ticket and register again with a promo code."}',
  derived => '{
    "cancelled_at": "Set status to cancelled to cancel the ticket.",
    "checked_in_at": "Add a check-in, or set undone_at of the accepted one.", "inside": "Add a check-in, or set undone_at of the accepted one."
  }',
  versioned => true, contact => true, uncounted => '{sensitive_answers,ticket_email_status,ticket_email_sent_at,ticket_email_last_error,search_text}',
  -- A scan writes these alone, and pays for none of this.
  exempt => '{checked_in_at,inside,updated_at}',
  in_use => array[
    'The attendee is in use: the ticket has check-ins.', 'Cancel the ticket instead: set status to cancelled.',
    'check_ins.attendee_id'
  ]);

create policy attendees_select_own on public.attendees for select
  to scope_attendees_read, scope_attendees_write, scope_checkin_write
  using (organisation_id = (select private.current_organisation_id()));
create policy attendees_update_own on public.attendees for update to scope_attendees_write
  using (organisation_id = (select private.current_organisation_id()));
create policy attendees_insert_own on public.attendees for insert to scope_attendees_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy attendees_select_membership on public.attendees for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,viewer}')));
create policy attendees_insert_membership on public.attendees for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy attendees_update_membership on public.attendees for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.attendees to scope_attendees_read, scope_attendees_write;
-- Members share one role, and viewers must not see what admits a person: see public.ticket_codes.
grant select (
  id, organisation_id, event_id, order_id, ticket_type_id, waiting_list_entry_id, name, email, email_lower, company, price, discount, currency, promo_code_id,
  status, checked_in_at, checked_in, inside, ticket_email_status, ticket_email_sent_at, ticket_email_last_error, cancelled_at, erased_at, external_id,
  metadata, answers, sensitive_answers, version, created_at, updated_at
) on public.attendees to authenticated;
-- Check-in shows who holds a ticket, not how to reach them.
grant select (
  id, organisation_id, event_id, ticket_type_id, name, company, status, checked_in_at
) on public.attendees to scope_checkin_write;
grant insert (
  organisation_id, event_id, order_id, ticket_type_id, waiting_list_entry_id, name, email, company, external_id, metadata, answers
) on public.attendees to scope_attendees_write, authenticated;
grant update (name, email, company, status, ticket_code, ticket_email_status, external_id, metadata, answers, sensitive_answers) on public.attendees
  to scope_attendees_write, authenticated;
grant update (ticket_type_id) on public.attendees to scope_attendees_write;

-- Changes the fields that people edit, of any number of attendees in one statement. A change is { attendee_id } and the fields to change;
-- reissue_ticket clears the ticket code.
create function private.change_attendees(changes jsonb[]) returns setof public.attendees
language plpgsql volatile set search_path = ''
as $$
begin
  return query
  update public.attendees a set
    (name, email, company, external_id, metadata) = (
      select n.name, n.email, n.company, n.external_id, n.metadata
      from jsonb_populate_record(a, private.with_merged_metadata(c.change, a.metadata)) n
    ),
    ticket_type_id = coalesce((c.change ->> 'ticket_type_id')::uuid, a.ticket_type_id),
    ticket_code = case when (c.change ->> 'reissue_ticket')::boolean then null else a.ticket_code end,
    answers = a.answers || coalesce(nullif(c.change -> 'answers', 'null'), '{}')
  from unnest(changes) c (change)
  where a.id = (c.change ->> 'attendee_id')::uuid
  returning a.*;
end
$$;
grant execute on function private.change_attendees to scope_attendees_write;

-- What an attendee's ticket type and order are called. Security definer: whoever reads an attendee may know this much of them.
create function private.names_of(attendee public.attendees, out ticket_type_name text, out reference text)
language plpgsql stable security definer set search_path = ''
as $$
begin
  if not private.is_foreign(attendee.organisation_id) then
    select t.name into ticket_type_name from public.ticket_types t where t.id = attendee.ticket_type_id and t.event_id = attendee.event_id;
    select o.reference into names_of.reference from public.orders o where o.id = attendee.order_id;
  end if;
end
$$;
grant execute on function private.names_of to scope_attendees_read, scope_attendees_write;

-- The ticket code admits its holder: with_code only for roles that handle tickets. with_url is false in webhooks, with_sensitive true in reads of
-- attendees alone. Whoever builds many gives the names.
create function private.attendee_json(
  attendee public.attendees,
  with_code boolean default true,
  ticket_type_name text default null,
  reference text default null,
  with_url boolean default true,
  with_sensitive boolean default false
) returns json
language plpgsql stable set search_path = ''
as $$
declare
  -- As private.rfc3339, without a call for each time.
  v_rfc3339 constant text := 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"';
begin
  if ticket_type_name is null then
    select n.ticket_type_name, n.reference into ticket_type_name, reference from private.names_of(attendee) n;
  end if;
  return json_build_object(
    'object', 'attendee',
    'id', attendee.id,
    'order_id', attendee.order_id,
    'event_id', attendee.event_id,
    'ticket_type_id', attendee.ticket_type_id,
    'order', json_build_object('id', attendee.order_id, 'reference', reference),
    'ticket_type', json_build_object('id', attendee.ticket_type_id, 'name', ticket_type_name),
    'name', attendee.name,
    'email', attendee.email,
    'company', attendee.company,
    'price', attendee.price,
    'discount', attendee.discount,
    'currency', attendee.currency,
    'status', attendee.status,
    'ticket_code', case when with_code then attendee.ticket_code end,
    'ticket_url', case when with_code and with_url and attendee.erased_at is null then private.ticket_url(attendee.ticket_token) end,
    'checked_in_at', to_char(attendee.checked_in_at at time zone 'UTC', v_rfc3339),
    'inside', attendee.inside,
    'ticket_email', json_build_object(
      'status', attendee.ticket_email_status,
      'sent_at', to_char(attendee.ticket_email_sent_at at time zone 'UTC', v_rfc3339),
      'last_error', attendee.ticket_email_last_error
    ),
    'cancelled_at', to_char(attendee.cancelled_at at time zone 'UTC', v_rfc3339),
    'erased_at', to_char(attendee.erased_at at time zone 'UTC', v_rfc3339),
    'external_id', attendee.external_id,
    'metadata', attendee.metadata,
    'answers', case when with_sensitive then attendee.answers || attendee.sensitive_answers else attendee.answers end,
    'unanswered', private.unanswered(attendee),
    'version', attendee.version,
    'created_at', to_char(attendee.created_at at time zone 'UTC', v_rfc3339),
    'updated_at', to_char(attendee.updated_at at time zone 'UTC', v_rfc3339)
  );
end
$$;
grant execute on function private.attendee_json to scope_attendees_read, scope_attendees_write;
