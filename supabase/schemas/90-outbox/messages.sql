-- Messages of an organiser to attendees of an event, in their own words: 60-attendees/messages.sql sends them. The words stand here once; the
-- e-mails name the row. The same words to the same event are one message, so that whoever had it is not told twice.

create table public.messages (
  subject text not null,
  message text not null,
  event_id uuid not null,
  created_at timestamptz not null default now(),
  id uuid not null default private.uuid_v7(),
  organisation_id uuid not null,
  constraint messages_pkey primary key (id),
  constraint messages_event_id_fkey foreign key (event_id) references public.events (id) on delete cascade,
  constraint messages_organisation_id_fkey foreign key (organisation_id) references public.organisations (id) on delete cascade,
  constraint messages_subject_is_one_line check (private.is_one_line(subject, 150)),
  constraint messages_message_is_some_text check (length(message) <= 5000 and private.person_form(message) <> '')
);
comment on table public.messages is 'Messages to attendees, by select message_attendees(…). To stop one, set status to cancelled in emails, where organiser_message_id is its id; send it again to reach the others.';
comment on constraint messages_subject_is_one_line on public.messages is 'A subject is one line of 1 to 150 characters.';
comment on constraint messages_message_is_some_text on public.messages is 'A message has 1 to 5000 characters. Put the rest on a page, and link to it.';
comment on column public.messages.subject is 'Subject of the e-mails.';
comment on column public.messages.message is 'Their text: Markdown with bold, italic, lists and links.';

create index messages_event_id_idx on public.messages (event_id);
create index messages_organisation_id_idx on public.messages (organisation_id);
-- For api.purge.
create index messages_created_at_idx on public.messages (created_at);

select private.keep_table('public.messages', derived => null, append_only => 'Messages are a log: they are never changed or deleted. Send another one.');

create policy messages_select_membership on public.messages for select to authenticated
  using (organisation_id in (select private.organisations_as('{owner,manager}')));
grant select on public.messages to authenticated;
