-- Columns that a trigger fills in, and that whoever adds a row may leave out. `supabase gen types` takes a column that is not null and has no
-- default for required, so they have one, which gives no value: Postgres does not keep a default that is written as null.

alter table public.events
  alter column organisation_id set default nullif('', '')::uuid,
  alter column slug set default nullif('', '');
