-- Questions that an event asks its guests, and the operations on them. A question is fixed in what it is called by (key) and its type; whatever
-- else changes, answers that were given stay. The answers are columns of attendees, whoever writes them: 60-attendees/answers.sql.

create type public.question_type as enum (
  'text', 'long_text', 'number', 'yes_no', 'one_of', 'several_of', 'date', 'email', 'phone', 'country'
);
-- Where a guest is asked: while registering, later on the ticket page, or at both.
create type public.question_ask as enum ('registration', 'ticket_page', 'both');
create type public.question_status as enum ('active', 'archived');

-- Words of a question in other languages: { de: { label, help, options: { KEY: label } } }, each member where there is one.
create function private.are_translations(translations jsonb) returns boolean
language plpgsql immutable strict set search_path = ''
as $$
begin
  return jsonb_typeof(translations) = 'object' and translations - enum_range(null::public.locale)::text[] = '{}' and coalesce((
    select bool_and(
      jsonb_typeof(t.value) = 'object' and t.value - '{label,help,options}'::text[] = '{}'
      and (t.value -> 'label' is null or jsonb_typeof(t.value -> 'label') = 'string' and private.is_one_line(t.value ->> 'label', 300))
      and (t.value -> 'help' is null or jsonb_typeof(t.value -> 'help') = 'string' and private.is_one_line(t.value ->> 'help', 1000))
      and (t.value -> 'options' is null or jsonb_typeof(t.value -> 'options') = 'object' and not exists (
        select from jsonb_each(t.value -> 'options') o where jsonb_typeof(o.value) <> 'string' or not private.is_one_line(o.value #>> '{}', 200)
      ))
    )
    from jsonb_each(translations) t
  ), true);
end
$$;
grant execute on function private.are_translations to api_key, authenticated;

-- The choices of a question: 1 to 50, each { key, label }, with keys of their own.
create function private.are_options(options jsonb) returns boolean
language plpgsql immutable strict set search_path = ''
as $$
begin
  return case when jsonb_typeof(options) = 'array' then jsonb_array_length(options) between 1 and 50 and (
    select count(distinct o ->> 'key') = count(*) and bool_and(
      jsonb_typeof(o) = 'object' and o - '{key,label}'::text[] = '{}' and jsonb_typeof(o -> 'key') = 'string'
      and private.is_one_line(o ->> 'key', 100) and jsonb_typeof(o -> 'label') = 'string' and private.is_one_line(o ->> 'label', 200)
    )
    from jsonb_array_elements(options) o
  ) else false end;
end
$$;
grant execute on function private.are_options to api_key, authenticated;

create table public.questions (
  label text not null,
  key text not null,
  event_id uuid not null,
  type public.question_type not null default 'text',
  required boolean not null default false,
  ask public.question_ask not null default 'both',
  options jsonb,
  help text,
  translations jsonb not null default '{}',
  ticket_type_ids uuid[] not null default '{}',
  at_door boolean not null default false,
  sensitive boolean not null default false,
  delete_after_days integer,
  position integer not null default 0,
  status public.question_status not null default 'active',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  version integer not null default 1,
  constraint questions_pkey primary key (id),
  constraint questions_event_id_key_key unique (event_id, key),
  constraint questions_event_id_fkey foreign key (event_id, organisation_id) references public.events (id, organisation_id),
  constraint questions_key_is_a_word check (key ~ '^[a-z][a-z0-9_]{0,39}$'),
  constraint questions_label_is_one_line check (private.is_one_line(label, 300)),
  constraint questions_help_is_one_line check (private.is_one_line(help, 1000)),
  constraint questions_translations_are_by_language check (private.are_translations(translations)),
  constraint questions_options_are_of_choices check ((type in ('one_of', 'several_of')) = (options is not null)),
  constraint questions_options_have_keys_and_labels check (private.are_options(options)),
  constraint questions_ticket_type_ids_are_bounded check (cardinality(ticket_type_ids) <= 100),
  constraint questions_delete_after_days_is_of_sensitive check (sensitive = (delete_after_days is not null)),
  constraint questions_at_door_is_not_sensitive check (not (at_door and sensitive)),
  constraint questions_delete_after_days_are_at_most_ten_years check (delete_after_days between 0 and 3650),
  constraint questions_position_is_not_negative check (position >= 0)
);
comment on table public.questions is 'Questions of an event to its guests. The answers are in answers and sensitive_answers of attendees. Archive a question to stop asking it.';
comment on column public.questions.label is 'The question, in the language of the event: one line of up to 300 characters.';
comment on column public.questions.key is 'Key of its answers: up to 40 lower-case letters, digits and underscores, the first a letter. Fixed.';
comment on column public.questions.type is 'text, long_text, number, yes_no, one_of, several_of, date, email, phone or country. Fixed.';
comment on column public.questions.required is 'Whether a guest must answer on a page. Other writers may leave it open: see unanswered of the attendee.';
comment on column public.questions.ask is 'registration, ticket_page or both.';
comment on column public.questions.options is 'Choices of one_of and several_of: a list of { key, label }.';
comment on column public.questions.help is 'Explanation below the question: one line of up to 1000 characters.';
comment on column public.questions.translations is 'Words in other languages, such as {"de": {"label": "Ernährung", "options": {"vegan": "Vegan, bitte"}}}.';
comment on column public.questions.ticket_type_ids is 'Ticket types whose holders are asked, up to 100. Empty: all of the event.';
comment on column public.questions.at_door is 'Whether the door sees the answer.';
comment on column public.questions.sensitive is 'Whether the answer is kept out of e-mails, webhooks and logs, and deleted after the event. Fixed.';
comment on column public.questions.delete_after_days is 'For a sensitive question: days after the event until its answers are deleted, 0 to 3650.';
comment on column public.questions.position is 'Position in the list, from 0.';
comment on column public.questions.status is 'active or archived. An archived question is no longer asked; its answers stay.';
comment on constraint questions_key_is_a_word on public.questions is
  'A key has up to 40 lower-case letters, digits and underscores, the first a letter. Write it as in diet or shirt_size.';
comment on constraint questions_label_is_one_line on public.questions is
  'label must be one line of 1 to 300 characters. Write at least one letter, and no line breaks.';
comment on constraint questions_help_is_one_line on public.questions is
  'help must be one line of 1 to 1000 characters. Leave it empty for none.';
comment on constraint questions_translations_are_by_language on public.questions is
  'translations must be an object by language, each with label, help or options. Write {"de": {"label": "Ernährung"}}.';
comment on constraint questions_options_are_of_choices on public.questions is
  'one_of and several_of need options, other types take none. Set options, or leave them empty.';
comment on constraint questions_options_have_keys_and_labels on public.questions is
  'options must be a list of 1 to 50 choices with a key of their own. Write [{"key": "vegan", "label": "Vegan"}].';
comment on constraint questions_delete_after_days_is_of_sensitive on public.questions is
  'A sensitive question needs delete_after_days, any other has none. Set both, or neither.';
comment on constraint questions_delete_after_days_are_at_most_ten_years on public.questions is
  'delete_after_days must be from 0 to 3650. Set the number of days after the event.';

comment on constraint questions_at_door_is_not_sensitive on public.questions is
  'The door shows no sensitive answer. Set at_door or sensitive, not both.';

create function private.tg_questions__assert_event() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if not exists (select from public.events e where e.id = new.event_id and e.organisation_id = new.organisation_id) then
    perform private.refuse_not_found('event_id');
  -- A form has all of them.
  elsif (select count(*) from public.questions q where q.event_id = new.event_id) >= 50 then
    perform private.refuse_value('event_id', 'An event has at most 50 questions.', 'Change one instead.', "row" => to_jsonb(new));
  end if;
  perform private.refuse_taken('key', q.id, q.created_at, q.xmin) from public.questions q where q.event_id = new.event_id and q.key = new.key;
  return new;
end
$$;

-- Without its question nobody knows of an answer that it is sensitive, or when to delete it.
create function private.tg_questions__assert_unanswered() returns trigger
language plpgsql volatile set search_path = ''
as $$
begin
  if exists (
    select
    from public.ticket_types t
    join public.attendees a on a.ticket_type_id = t.id
    where t.event_id = old.event_id and (a.answers ? old.key or a.sensitive_answers ? old.key)
  ) then
    perform private.refuse(409, 'in_use', 'The question has answers.', hint => 'Archive it instead: set status to archived.', "row" => to_jsonb(old));
  end if;
  return old;
end
$$;

select private.keep_table('public.questions', filled => '{organisation_id}', fixed => '{organisation_id,event_id,key,type,sensitive}',
  fixed_hints => '{"type": "Archive the question and add another.", "sensitive": "Archive the question and add another.", "key": "Archive the question and add another."}',
  versioned => true, of_event => true);
create trigger questions_110_event before insert on public.questions
  for each row execute function private.tg_questions__assert_event();
create trigger questions_100_in_use before delete on public.questions
  for each row execute function private.tg_questions__assert_unanswered();

create policy questions_select_own on public.questions for select
  to scope_events_read, scope_events_write, scope_attendees_read, scope_attendees_write, scope_checkin_write
  using (organisation_id = (select private.current_organisation_id()));
create policy questions_insert_own on public.questions for insert to scope_events_write
  with check (organisation_id = (select private.current_organisation_id()));
create policy questions_update_own on public.questions for update to scope_events_write
  using (organisation_id = (select private.current_organisation_id()));
create policy questions_select_membership on public.questions for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager,door,viewer}')));
create policy questions_insert_membership on public.questions for insert to authenticated
  with check (organisation_id in (select private.organisations_as('{owner,manager}')));
create policy questions_update_membership on public.questions for update to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.questions to scope_events_read, scope_events_write, scope_attendees_read, scope_attendees_write, scope_checkin_write, authenticated;
grant insert (organisation_id, event_id, key, label, help, translations, type, options, required, ask, ticket_type_ids, at_door, sensitive, delete_after_days, position)
  on public.questions to scope_events_write, authenticated;
grant update (label, help, translations, options, required, ask, ticket_type_ids, at_door, delete_after_days, position, status)
  on public.questions to scope_events_write, authenticated;

create function private.question_json(question public.questions) returns json
language plpgsql stable set search_path = ''
as $$
begin
  return json_build_object(
    'object', 'question',
    'id', question.id,
    'event_id', question.event_id,
    'key', question.key,
    'label', question.label,
    'help', question.help,
    'translations', question.translations,
    'type', question.type,
    'options', question.options,
    'required', question.required,
    'ask', question.ask,
    'ticket_type_ids', question.ticket_type_ids,
    'at_door', question.at_door,
    'sensitive', question.sensitive,
    'delete_after_days', question.delete_after_days,
    'position', question.position,
    'status', question.status,
    'version', question.version,
    'created_at', private.rfc3339(question.created_at),
    'updated_at', private.rfc3339(question.updated_at)
  );
end
$$;
grant execute on function private.question_json to scope_events_read, scope_events_write;

-- In their order. A cursor is the id of the last item, and stands for the present position of that item.
create function api.list_questions(event_id uuid, cursor text default null, "limit" integer default null) returns json
language plpgsql stable set search_path = ''
as $$
declare
  v_size integer := private.page_size("limit");
  v_last public.questions;
begin
  if not exists (select from public.events e where e.id = list_questions.event_id) then
    perform private.refuse_not_found('event_id');
  end if;
  select q.* into v_last from public.questions q where q.id = private.decode_cursor(cursor);
  return private.page(
    array(
      select private.question_json(q) from public.questions q
      where q.event_id = list_questions.event_id and ((q.position, q.id) > (v_last.position, v_last.id)) is not false
      order by q.position, q.id
      limit v_size + 1
    ),
    v_size
  );
end
$$;
comment on function api.list_questions is 'Questions of an event in their order: { data, has_more, next_cursor }. 404 not_found.';
grant execute on function api.list_questions to scope_events_read;

create function api.create_question(
  event_id uuid,
  key text,
  label text,
  type public.question_type default null,
  help text default null,
  translations jsonb default null,
  options jsonb default null,
  required boolean default null,
  ask public.question_ask default null,
  ticket_type_ids uuid[] default null,
  at_door boolean default null,
  sensitive boolean default null,
  delete_after_days integer default null,
  "position" integer default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_question public.questions;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  insert into public.questions (
    organisation_id, event_id, key, label, help, translations, type, options, required, ask, ticket_type_ids, at_door, sensitive, delete_after_days, position
  )
  values (
    private.current_organisation_id(), create_question.event_id, create_question.key, create_question.label, create_question.help,
    coalesce(create_question.translations, '{}'),
    coalesce(create_question.type, 'text'), create_question.options, coalesce(create_question.required, false),
    coalesce(create_question.ask, 'both'), coalesce(create_question.ticket_type_ids, '{}'), coalesce(create_question.at_door, false),
    coalesce(create_question.sensitive, false), create_question.delete_after_days, coalesce(create_question.position, 0)
  )
  returning * into v_question;
  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object('status', 201, 'data', private.question_json(v_question)));
end
$$;
comment on function api.create_question is
  'Adds a question to an event: 201. 404 not_found; 409 already_exists (key); 422 validation_failed.';
grant execute on function api.create_question to scope_events_write;

create function api.update_question(
  question_id uuid,
  changes jsonb,
  if_version integer[] default null,
  idempotency_key text default null,
  request_fingerprint text default null
) returns json
language plpgsql volatile set search_path = ''
as $$
declare
  v_outcome json := private.replay_outcome(idempotency_key, request_fingerprint);
  v_question public.questions;
  v_new public.questions;
begin
  if v_outcome is not null then
    return v_outcome;
  end if;
  select q.* into v_question from public.questions q where q.id = update_question.question_id for no key update;
  if not found then
    perform private.refuse_not_found('question_id');
  end if;
  perform private.assert_version(v_question.version, if_version);
  v_new := jsonb_populate_record(v_question, changes);
  update public.questions q set
    label = v_new.label,
    help = v_new.help,
    translations = v_new.translations,
    options = v_new.options,
    required = v_new.required,
    ask = v_new.ask,
    ticket_type_ids = v_new.ticket_type_ids,
    at_door = v_new.at_door,
    delete_after_days = v_new.delete_after_days,
    position = v_new.position,
    status = v_new.status
  where q.id = v_question.id
  returning * into v_question;
  return private.record_outcome(idempotency_key, request_fingerprint, json_build_object('status', 200, 'data', private.question_json(v_question)));
end
$$;
comment on function api.update_question is
  'Changes fields of a question (status archived stops asking it; its answers stay): 200. 404 not_found; 412 version_mismatch; 422 validation_failed.';
grant execute on function api.update_question to scope_events_write;
