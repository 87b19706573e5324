// What pg-delta does not read, asked of Postgres's catalogue. Each query gives rows of (object, definition); an object that
// pg-delta reads as well gets these lines in addition to its own.

/** Not of Postgres, Supabase or the Supabase CLI. */
export const ours = (schema: string) =>
  `${schema}.nspname !~ '^pg_' and ${schema}.nspname not in ('information_schema', 'supabase_migrations', 'auth', 'extensions')`

const lines = (...facts: string[]) => `concat_ws(E'\\n', ${facts.join(', ')})`

/** Who may do what, a line for each role. */
const grants = (acl: string) => `(
  select string_agg(line, E'\\n' order by line)
  from (
    select format('grant %s to %s',
      string_agg(x.privilege_type || case when x.is_grantable then ' with grant option' else '' end, ', '
        order by x.privilege_type),
      case x.grantee when 0 then 'public' else x.grantee::regrole::text end) as line
    from aclexplode(${acl}) as x
    group by x.grantee
  ) as privileges
)`

const roles = `
  select 'role ' || r.rolname as object,
    ${lines(
      `'connection limit: ' || nullif(r.rolconnlimit, -1)`,
      `'valid until: ' || r.rolvaliduntil`,
      `'comment: ' || shobj_description(r.oid, 'pg_authid')`,
    )} as definition
  from pg_roles r
  where r.rolname !~ '^pg_'`

// Who granted a membership is left out: it differs between servers and decides nothing here.
const memberships = `
  select format('membership of %s in %s', m.member::regrole, m.roleid::regrole) as object,
    ${lines(`'inherit: ' || bool_or(m.inherit_option)`, `'set: ' || bool_or(m.set_option)`)} as definition
  from pg_auth_members m
  where m.roleid::regrole::text !~ '^pg_'
  group by m.member, m.roleid`

// pg-delta reads the settings of a role in all databases.
const settings = `
  select format('settings of %s%s', case s.setrole when 0 then 'all roles' else s.setrole::regrole::text end,
      ' in database ' || nullif(d.datname, current_database())) as object,
    (select string_agg('in the database: ' || setting, E'\\n' order by setting) from unnest(s.setconfig) as setting) as definition
  from pg_db_role_setting s
  join pg_database d on d.oid = s.setdatabase`

const database = `
  select 'database' as object, ${grants(`coalesce(d.datacl, acldefault('d', d.datdba))`)} as definition
  from pg_database d
  where d.datname = current_database()`

const columns = `
  select format('column %s.%s.%s', n.nspname, c.relname, a.attname) as object,
    ${lines(
      `'compression: ' || nullif(a.attcompression, '')::text`,
      `case when c.relkind in ('v', 'm') then 'default: ' || pg_get_expr(d.adbin, d.adrelid) end`,
      `case when c.relkind in ('v', 'm') then ${grants('a.attacl')} end`,
      `case when c.relkind in ('v', 'm') then 'comment: ' || col_description(c.oid, a.attnum) end`,
    )} as definition
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
  where ${ours('n')} and c.relkind in ('r', 'p', 'v', 'm')`

// Of a primary key or a unique constraint pg-delta reads the constraint only.
const indexes = `
  select format('index %s.%s', n.nspname, c.relname) as object,
    ${lines(
      `'options: ' || array_to_string(c.reloptions, ', ')`,
      `case when i.indisclustered then 'clustered on' end`,
      `'comment: ' || obj_description(c.oid, 'pg_class')`,
    )} as definition
  from pg_index i
  join pg_class c on c.oid = i.indexrelid
  join pg_namespace n on n.oid = c.relnamespace
  where ${ours('n')}`

const statistics = `
  select format('statistics %s.%s', n.nspname, s.stxname) as object, pg_get_statisticsobjdef(s.oid) as definition
  from pg_statistic_ext s
  join pg_namespace n on n.oid = s.stxnamespace
  where ${ours('n')}`

export const catalogueQueries = [roles, memberships, settings, database, columns, indexes, statistics]
