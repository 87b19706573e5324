-- Personal data: each column that holds something of a person is declared here, by the file of its table, with what stands in its place
-- once the person is erased. Erasure and the purge read the declarations, for what the audit trail holds as well.
-- test/database/60-attendees/personal-data.test.ts asks for a decision about every column of a table of people.

create table private.personal_columns (
  table_name name not null,
  column_name name not null,
  -- What an erased row has instead. A JSON null is an empty column.
  erased_as jsonb not null,
  -- Its name in answers and in the data of notifications. Null: it is in none.
  field text,
  constraint personal_columns_pkey primary key (table_name, column_name)
);
comment on table private.personal_columns is 'Columns with personal data, and the value that replaces each when the person is erased.';
revoke all on private.personal_columns from anon, authenticated, service_role;
alter table private.personal_columns enable row level security;

-- The set list of an update that erases rows of a table.
create function private.erasing_assignments("table" name) returns text
language plpgsql stable security definer set search_path = ''
as $$
begin
  return (
    select string_agg(format('%I = %L', c.column_name, c.erased_as #>> '{}'), ', ' order by c.column_name)
    from private.personal_columns c
    where c.table_name = "table"
  );
end
$$;

-- Fields of a document, with what replaces them.
create function private.erased_fields() returns jsonb
language plpgsql stable security definer set search_path = ''
as $$ begin return (select jsonb_object_agg(c.field, c.erased_as) from private.personal_columns c where c.field is not null); end $$;
