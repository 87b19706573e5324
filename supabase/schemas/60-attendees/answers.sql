-- Answers of attendees to the questions of their event (35-questions), whoever writes them: an object by the key of the question. What is
-- given in answers is checked, null takes an answer back, and those of sensitive questions move to sensitive_answers, which no
-- notification, audit entry, e-mail or outcome has. An answer that is written as it was is not checked again: the question may have changed.

-- What is wrong with an answer, in a sentence; null: nothing.
create function private.mistake_in_answer(question public.questions, answer jsonb) returns text
language plpgsql immutable set search_path = ''
as $$
declare
  v_text constant text := case jsonb_typeof(answer) when 'string' then answer #>> '{}' end;
  v_keys constant text[] := array(select o ->> 'key' from jsonb_array_elements(question.options) o);
begin
  return case
    when question.type = 'text' and private.is_one_line(v_text, 500) is not true then 'This question takes one line of at most 500 characters.'
    when question.type = 'long_text' and (v_text is null or length(v_text) not between 1 and 5000) then 'This question takes text of at most 5000 characters.'
    when question.type = 'number' and (jsonb_typeof(answer) <> 'number' or not private.is_metadata(jsonb_build_object('n', answer))) then 'This question takes a number that is stored exactly.'
    when question.type = 'yes_no' and jsonb_typeof(answer) <> 'boolean' then 'This question takes true or false.'
    when question.type = 'one_of' and (v_text = any (v_keys)) is not true then 'This question takes the key of one of its options.'
    when question.type = 'several_of' and (
      jsonb_typeof(answer) <> 'array' or answer = '[]' or jsonb_array_length(answer) > cardinality(v_keys)
      or (select count(distinct a) <> count(*) or not bool_and(jsonb_typeof(a) = 'string' and a #>> '{}' = any (v_keys)) from jsonb_array_elements(answer) a)
    ) then 'This question takes a list of keys of its options, each once.'
    when question.type = 'date' and (v_text ~ '^\d{4}-\d{2}-\d{2}$' and pg_input_is_valid(v_text, 'date')) is not true then 'This question takes a date, such as 2027-05-01.'
    when question.type = 'email' and private.is_email_address(v_text) is not true then 'This question takes an e-mail address.'
    when question.type = 'phone' and (v_text ~ '^\+?[0-9][0-9 ()/.-]{3,29}$') is not true then 'This question takes a telephone number, such as +49 40 123456.'
    when question.type = 'country' and (v_text ~ '^[A-Z]{2}$') is not true then 'This question takes an ISO 3166 code of two capital letters, such as DE.'
  end;
end
$$;

-- Whether an attendee is asked a question, and has not answered it.
create function private.is_unanswered(question public.questions, attendee public.attendees) returns boolean
language plpgsql immutable set search_path = ''
as $$
begin
  return question.event_id = attendee.event_id and question.status = 'active'
    and (question.ticket_type_ids = '{}' or attendee.ticket_type_id = any (question.ticket_type_ids))
    and not attendee.answers ? question.key and not attendee.sensitive_answers ? question.key
    and attendee.status <> 'cancelled' and attendee.erased_at is null;
end
$$;

-- The keys of required questions that an attendee is asked and has not answered.
create function private.unanswered(attendee public.attendees) returns text[]
language plpgsql stable security definer set search_path = ''
as $$
begin
  return array(
    select q.key from public.questions q
    where q.event_id = attendee.event_id and q.required and private.is_unanswered(q, attendee)
    order by q.position, q.id
  );
end
$$;
grant execute on function private.unanswered to scope_attendees_read, scope_attendees_write;

-- What `answers` contain where the answer is KEY:VALUE; a choice of several is one of a list. Null without an answer.
create function private.answer_sought(event_id uuid, answer text, unanswered boolean) returns jsonb
language plpgsql stable set search_path = ''
as $$
declare
  v_value constant text := substr(answer, strpos(answer, ':') + 1);
  v_question public.questions;
begin
  if answer is null then
    if unanswered and event_id is null then
      perform private.refuse_value('unanswered', 'unanswered needs event_id.', 'Name the event.');
    end if;
    return null;
  end if;
  select q.* into v_question
  from public.questions q
  where q.event_id = answer_sought.event_id and q.key = split_part(answer, ':', 1) and strpos(answer, ':') > 0;
  if not found or v_question.sensitive then
    perform private.refuse_value(
      'answer', 'answer must name a question of event_id that is not sensitive.', 'Write it as in diet:vegan, beside event_id.'
    );
  end if;
  return jsonb_build_object(v_question.key, case v_question.type
    when 'several_of' then jsonb_build_array(v_value)
    when 'yes_no' then to_jsonb(case when v_value in ('true', 'yes') then true when v_value in ('false', 'no') then false end)
    when 'number' then case when pg_input_is_valid(v_value, 'numeric') then to_jsonb(v_value::numeric) end
    else to_jsonb(v_value)
  end);
end
$$;
grant execute on function private.answer_sought to scope_attendees_read;

-- What the door sees of the answers of an attendee, in words: { KEY: { label, answer } }. Security definer: the door may not read answers.
create function private.answers_at_door(attendee_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_attendee public.attendees;
  v_locale text;
begin
  select a.* into v_attendee from public.attendees a where a.id = attendee_id;
  -- Most guests gave none: 13 ms for 900 of them, where the query takes 48.
  if v_attendee.answers = '{}' then
    return '{}';
  end if;
  v_locale := (select e.locale from public.events e where e.id = v_attendee.event_id);
  return (
    select coalesce(json_object_agg(q.key, json_build_object(
      'label', coalesce(q.translations #>> array[v_locale, 'label'], q.label),
      'answer', (
        select string_agg(coalesce(
          q.translations #>> array[v_locale, 'options', v.value],
          (select o ->> 'label' from jsonb_array_elements(q.options) o where o ->> 'key' = v.value),
          case v.value when 'true' then '✓' when 'false' then '–' else v.value end
        ), ', ')
        from jsonb_array_elements_text(case jsonb_typeof(g.value) when 'array' then g.value else jsonb_build_array(g.value) end) v (value)
      )
    ) order by q.position, q.id), '{}')
    from public.questions q
    cross join lateral (select v_attendee.answers -> q.key as value) g
    where q.event_id = v_attendee.event_id and q.at_door and q.status = 'active' and g.value is not null
  );
end
$$;
grant execute on function private.answers_at_door to scope_checkin_write, scope_attendees_read;

create function private.tg_attendees__answer() returns trigger
language plpgsql volatile security definer set search_path = ''
as $$
declare
  v_known jsonb := '{}';
  v_given jsonb;
  v_answer record;
  v_mistake text;
begin
  if tg_op = 'UPDATE' then
    v_known := old.answers || old.sensitive_answers;
  end if;
  v_given := jsonb_strip_nulls(new.sensitive_answers || new.answers);
  for v_answer in
    select g.key, g.value, q as question
    from jsonb_each(v_given) g
    left join public.questions q on q.event_id = new.event_id and q.key = g.key
    where g.value is distinct from v_known -> g.key
    limit 51
  loop
    v_mistake := case
      when (v_answer.question).id is null then 'The event has no question with this key.'
      when (v_answer.question).status = 'archived' then 'This question is archived.'
      when (v_answer.question).ticket_type_ids <> '{}' and new.ticket_type_id <> all ((v_answer.question).ticket_type_ids)
        then 'This question is not for this ticket type.'
      -- Orders, and their notifications, have those of all their guests.
      when length(v_given::text) > 50000 then 'The answers of a guest have at most 50000 characters together.'
      else private.mistake_in_answer(v_answer.question, v_answer.value)
    end;
    if v_mistake is not null then
      perform private.refuse_value(
        case when new.answers ? v_answer.key then 'answers.' else 'sensitive_answers.' end || left(v_answer.key, 40),
        v_mistake, 'See the questions of the event: list_questions.', to_jsonb(new) - 'sensitive_answers'
      );
    end if;
  end loop;
  new.sensitive_answers := (
    select coalesce(jsonb_object_agg(g.key, g.value), '{}')
    from jsonb_each(v_given) g
    where exists (select from public.questions q where q.event_id = new.event_id and q.key = g.key and q.sensitive)
  );
  new.answers := v_given - array(select jsonb_object_keys(new.sensitive_answers));
  return new;
end
$$;
create trigger attendees_150_answer before insert or update of answers, sensitive_answers on public.attendees
  for each row when (
    (new.answers <> '{}' or new.sensitive_answers <> '{}') and jsonb_typeof(new.answers || new.sensitive_answers) = 'object'
  ) execute function private.tg_attendees__answer();

-- How the guests of an event answered: of each question in use how many did, and of choices how often each. Tickets that are not cancelled.
create function private.summary_of_questions(event_id uuid) returns json
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    with given as materialized (
      select q.id, q.type, g.value
      from public.ticket_types t
      join public.attendees a on a.ticket_type_id = t.id and a.status <> 'cancelled'
      cross join lateral jsonb_each(a.answers || a.sensitive_answers) g
      join public.questions q on q.event_id = t.event_id and q.key = g.key and q.status = 'active'
      where t.event_id = summary_of_questions.event_id
        -- Without questions no attendee is read.
        and exists (select from public.questions q where q.event_id = summary_of_questions.event_id)
    ),
    answered as (select g.id, count(*) as times from given g group by g.id),
    chosen as materialized (
      select g.id, c.choice, count(*) as times
      from given g
      cross join lateral jsonb_array_elements_text(case jsonb_typeof(g.value) when 'array' then g.value else jsonb_build_array(g.value) end) c (choice)
      where g.type in ('one_of', 'several_of')
      group by g.id, c.choice
    )
    select coalesce(json_agg(json_build_object(
      'id', q.id, 'key', q.key, 'label', q.label, 'answered', coalesce(n.times, 0),
      'options', (
        select json_agg(json_build_object(
          'key', o.option ->> 'key', 'label', o.option ->> 'label', 'answered', coalesce(c.times, 0)
        ) order by o.place)
        from jsonb_array_elements(q.options) with ordinality o (option, place)
        left join chosen c on c.id = q.id and c.choice = o.option ->> 'key'
      )
    ) order by q.position, q.id), '[]')
    from public.questions q
    left join answered n on n.id = q.id
    where q.event_id = summary_of_questions.event_id and q.status = 'active'
  );
end
$$;
grant execute on function private.summary_of_questions to scope_events_read;

-- Deletes sensitive answers whose time is over. At most "limit" of each question. Returns how many. For api.purge.
create function private.delete_sensitive_answers("limit" integer) returns integer
language plpgsql volatile set search_path = ''
as $$
declare
  v_question record;
  v_rows integer;
  v_deleted integer := 0;
begin
  for v_question in
    select q.event_id, q.key
    from public.questions q
    join public.events e on e.id = q.event_id
    where q.sensitive and coalesce(e.ends_at, e.cancelled_at) < now() - make_interval(days => q.delete_after_days)
  loop
    update public.attendees a set sensitive_answers = a.sensitive_answers - v_question.key
    where a.id = any (array(
      select o.id from public.attendees o
      where o.event_id = v_question.event_id and o.sensitive_answers ? v_question.key
      order by o.id limit "limit" for no key update skip locked
    ));
    get diagnostics v_rows = row_count;
    v_deleted := v_deleted + v_rows;
  end loop;
  return v_deleted;
end
$$;
