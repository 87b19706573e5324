// The questions a snapshot asks of Postgres's catalogue. Each gives rows of (object, definition); definitions are lines of
// text, each with one fact. What Supabase provides and what an extension brought along is not Usher's and is left out.

const ours = (schema: string) =>
  `${schema}.nspname !~ '^pg_' and ${schema}.nspname not in ('information_schema', 'supabase_migrations', 'auth', 'extensions')`

const providedRoles = `(r.rolname ~ '^(pg_|supabase_)' or r.rolname in
  ('postgres', 'anon', 'authenticated', 'service_role', 'authenticator', 'dashboard_user', 'pgbouncer'))`

const notFromExtension = (catalogue: string, oid: string) => `not exists (
  select from pg_depend e where e.classid = '${catalogue}'::regclass and e.objid = ${oid} and e.deptype = 'e')`

/** Who may do what, a line for each role; privileges nobody ever changed are written out, so that a change is seen. */
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

const comment = (text: string) => `'comment: ' || ${text}`

const lines = (...facts: string[]) => `concat_ws(E'\\n', ${facts.join(', ')})`

const flag = (condition: string, text: string) => `case when ${condition} then '${text}' end`

const schemas = `
  select 'schema ' || n.nspname as object,
    ${lines(
      `'owner: ' || n.nspowner::regrole`,
      grants(`coalesce(n.nspacl, acldefault('n', n.nspowner))`),
      comment(`obj_description(n.oid, 'pg_namespace')`),
    )} as definition
  from pg_namespace n
  where n.nspname !~ '^pg_' and n.nspname not in ('information_schema', 'supabase_migrations')`

const roles = `
  select 'role ' || r.rolname as object,
    ${lines(
      `case when r.rolcanlogin then 'login' else 'nologin' end`,
      `case when r.rolinherit then 'inherit' else 'noinherit' end`,
      flag('r.rolsuper', 'superuser'),
      flag('r.rolcreaterole', 'createrole'),
      flag('r.rolcreatedb', 'createdb'),
      flag('r.rolreplication', 'replication'),
      flag('r.rolbypassrls', 'bypassrls'),
      `'connection limit: ' || nullif(r.rolconnlimit, -1)`,
      `'valid until: ' || r.rolvaliduntil`,
      comment(`shobj_description(r.oid, 'pg_authid')`),
    )} as definition
  from pg_roles r
  where not ${providedRoles}`

// Who granted a membership is left out: it differs between servers and decides nothing here.
const memberships = `
  select distinct format('membership of %s in %s', m.member::regrole, m.roleid::regrole) as object,
    ${lines(
      `'admin: ' || bool_or(m.admin_option)`,
      `'inherit: ' || bool_or(m.inherit_option)`,
      `'set: ' || bool_or(m.set_option)`,
    )} as definition
  from pg_auth_members m
  where exists (select from pg_roles r where r.oid in (m.member, m.roleid) and not ${providedRoles})
  group by m.member, m.roleid`

const roleSettings = `
  select format('settings of %s%s', case s.setrole when 0 then 'all roles' else s.setrole::regrole::text end,
      ' in database ' || nullif(d.datname, current_database())) as object,
    (select string_agg(setting, E'\\n' order by setting) from unnest(s.setconfig) as setting) as definition
  from pg_db_role_setting s
  left join pg_database d on d.oid = s.setdatabase
  where s.setrole = 0 or exists (select from pg_roles r where r.oid = s.setrole and r.rolname !~ '^supabase_')`

const defaultPrivileges = `
  select format('default privileges of %s%s on %s', d.defaclrole::regrole, ' in ' || nullif(d.defaclnamespace, 0)::regnamespace,
      case d.defaclobjtype when 'r' then 'tables' when 'S' then 'sequences' when 'f' then 'functions'
        when 'T' then 'types' else 'schemas' end) as object,
    coalesce(${grants('d.defaclacl')}, 'none') as definition
  from pg_default_acl d
  where d.defaclrole::regrole::text !~ '^supabase_'`

const extensions = `
  select 'extension ' || e.extname as object, 'schema: ' || e.extnamespace::regnamespace as definition
  from pg_extension e
  where e.extname <> 'plpgsql'`

const types = `
  select format('%s %s', case t.typtype when 'e' then 'enum' when 'd' then 'domain' when 'r' then 'range' else 'composite type' end,
      t.oid::regtype) as object,
    ${lines(
      `'owner: ' || t.typowner::regrole`,
      `(select string_agg(quote_literal(l.enumlabel), E'\\n' order by l.enumsortorder) from pg_enum l where l.enumtypid = t.oid)`,
      `case when t.typtype = 'd' then 'of: ' || format_type(t.typbasetype, t.typtypmod) end`,
      `case when t.typtype = 'd' and t.typnotnull then 'not null' end`,
      `'default: ' || t.typdefault`,
      `(select string_agg(format('constraint %I %s', c.conname, pg_get_constraintdef(c.oid)), E'\\n' order by c.conname)
        from pg_constraint c where c.contypid = t.oid)`,
      `(select 'range of: ' || format_type(g.rngsubtype, null) from pg_range g where g.rngtypid = t.oid)`,
      `(select string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), E'\\n' order by a.attnum)
        from pg_attribute a where a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped)`,
      grants(`coalesce(t.typacl, acldefault('T', t.typowner))`),
      comment(`obj_description(t.oid, 'pg_type')`),
    )} as definition
  from pg_type t
  join pg_namespace n on n.oid = t.typnamespace
  left join pg_class c on c.oid = t.typrelid
  where ${ours('n')} and (t.typtype in ('e', 'd', 'r') or c.relkind = 'c') and ${notFromExtension('pg_type', 't.oid')}`

const relations = `
  select format('%s %s', case c.relkind when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence'
      when 'f' then 'foreign table' else 'table' end, c.oid::regclass) as object,
    ${lines(
      `'owner: ' || c.relowner::regrole`,
      flag(`c.relpersistence = 'u'`, 'unlogged'),
      flag('c.relrowsecurity', 'row level security enabled'),
      flag('c.relforcerowsecurity', 'row level security forced'),
      `'partition by: ' || pg_get_partkeydef(c.oid)`,
      `'partition: ' || pg_get_expr(c.relpartbound, c.oid)`,
      `(select string_agg('inherits: ' || i.inhparent::regclass, E'\\n' order by i.inhseqno) from pg_inherits i where i.inhrelid = c.oid)`,
      `'options: ' || array_to_string(c.reloptions, ', ')`,
      `case when c.relkind in ('r', 'p') then 'replica identity: ' || nullif(c.relreplident, 'd')::text end`,
      `(select format('sequence: %s start %s increment %s min %s max %s cache %s%s', format_type(s.seqtypid, null), s.seqstart,
          s.seqincrement, s.seqmin, s.seqmax, s.seqcache, case when s.seqcycle then ' cycle' end)
        from pg_sequence s where s.seqrelid = c.oid)`,
      `(select format('owned by: %s.%I', d.refobjid::regclass, a.attname)
        from pg_depend d join pg_attribute a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
        where c.relkind = 'S' and d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i'))`,
      // Of a view. A column that a table got later stands last in it and among its like in the schema file.
      `(select 'columns: ' || string_agg(quote_ident(a.attname), ', ' order by a.attnum)
        from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and c.relkind in ('v', 'm'))`,
      `case when c.relkind in ('v', 'm') then pg_get_viewdef(c.oid) end`,
      grants(`coalesce(c.relacl, acldefault(case c.relkind when 'S' then 's'::"char" else 'r' end, c.relowner))`),
      comment(`obj_description(c.oid, 'pg_class')`),
    )} as definition
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  where ${ours('n')} and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f') and ${notFromExtension('pg_class', 'c.oid')}`

const columns = `
  select format('column %s.%I', c.oid::regclass, a.attname) as object,
    ${lines(
      `'type: ' || format_type(a.atttypid, a.atttypmod)`,
      `(select 'collation: ' || a.attcollation::regcollation from pg_type t where t.oid = a.atttypid and t.typcollation <> a.attcollation)`,
      flag('a.attnotnull', 'not null'),
      `case a.attidentity when 'a' then 'generated always as identity' when 'd' then 'generated by default as identity' end`,
      `case a.attgenerated when 's' then 'generated: ' else 'default: ' end || pg_get_expr(d.adbin, d.adrelid)`,
      `'compression: ' || nullif(a.attcompression, '')::text`,
      grants('a.attacl'),
      comment('col_description(c.oid, a.attnum)'),
    )} as definition
  from pg_class c
  join pg_namespace n on n.oid = c.relnamespace
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
  where ${ours('n')} and c.relkind in ('r', 'p', 'v', 'm', 'f') and ${notFromExtension('pg_class', 'c.oid')}`

// A constraint trigger is also in pg_constraint; it is told of as a trigger.
const constraints = `
  select format('constraint %I on %s', k.conname, k.conrelid::regclass) as object,
    ${lines(
      'pg_get_constraintdef(k.oid)',
      flag('not k.convalidated', 'not validated'),
      comment(`obj_description(k.oid, 'pg_constraint')`),
    )} as definition
  from pg_constraint k
  join pg_namespace n on n.oid = k.connamespace
  where ${ours('n')} and k.conrelid <> 0 and k.contype <> 't'`

const indexes = `
  select 'index ' || i.indexrelid::regclass as object,
    ${lines(
      'pg_get_indexdef(i.indexrelid)',
      flag('not i.indisvalid', 'not valid'),
      flag('i.indisclustered', 'clustered on'),
      comment(`obj_description(i.indexrelid, 'pg_class')`),
    )} as definition
  from pg_index i
  join pg_class c on c.oid = i.indexrelid
  join pg_namespace n on n.oid = c.relnamespace
  where ${ours('n')}`

const triggers = `
  select format('trigger %I on %s', t.tgname, t.tgrelid::regclass) as object,
    ${lines(
      'pg_get_triggerdef(t.oid)',
      `case t.tgenabled when 'D' then 'disabled' when 'R' then 'enabled for replicas' when 'A' then 'enabled always' end`,
      comment(`obj_description(t.oid, 'pg_trigger')`),
    )} as definition
  from pg_trigger t
  join pg_proc p on p.oid = t.tgfoid
  join pg_namespace n on n.oid = p.pronamespace
  where not t.tgisinternal and ${ours('n')}`

const policies = `
  select format('policy %I on %s', p.polname, p.polrelid::regclass) as object,
    ${lines(
      `case when p.polpermissive then 'permissive' else 'restrictive' end`,
      `case p.polcmd when 'r' then 'for select' when 'a' then 'for insert' when 'w' then 'for update' when 'd' then 'for delete'
        else 'for all' end`,
      `'to ' || (select string_agg(case r when 0 then 'public' else r::regrole::text end, ', ' order by r::regrole::text)
        from unnest(p.polroles) as r)`,
      `'using ' || pg_get_expr(p.polqual, p.polrelid)`,
      `'with check ' || pg_get_expr(p.polwithcheck, p.polrelid)`,
      comment(`obj_description(p.oid, 'pg_policy')`),
    )} as definition
  from pg_policy p`

const functions = `
  select 'function ' || p.oid::regprocedure as object,
    ${lines(
      `'owner: ' || p.proowner::regrole`,
      grants(`coalesce(p.proacl, acldefault('f', p.proowner))`),
      comment(`obj_description(p.oid, 'pg_proc')`),
      `case when p.prokind <> 'a' then rtrim(pg_get_functiondef(p.oid), E'\\n') end`,
      `(select format('aggregate with %s, state %s, final %s', g.aggtransfn, format_type(g.aggtranstype, null), g.aggfinalfn)
        from pg_aggregate g where g.aggfnoid = p.oid)`,
    )} as definition
  from pg_proc p
  join pg_namespace n on n.oid = p.pronamespace
  where ${ours('n')} and ${notFromExtension('pg_proc', 'p.oid')}`

const rules = `
  select format('rule %I on %s', r.rulename, r.ev_class::regclass) as object, pg_get_ruledef(r.oid) as definition
  from pg_rewrite r
  join pg_class c on c.oid = r.ev_class
  join pg_namespace n on n.oid = c.relnamespace
  where ${ours('n')} and r.rulename <> '_RETURN'`

const statistics = `
  select format('statistics %s', s.stxname) as object, pg_get_statisticsobjdef(s.oid) as definition
  from pg_statistic_ext s
  join pg_namespace n on n.oid = s.stxnamespace
  where ${ours('n')}`

const publications = `
  select 'publication ' || p.pubname as object,
    ${lines(
      `'owner: ' || p.pubowner::regrole`,
      flag('p.puballtables', 'all tables'),
      `(select string_agg(format('%I.%I', t.schemaname, t.tablename), E'\\n' order by 1) from pg_publication_tables t
        where t.pubname = p.pubname)`,
    )} as definition
  from pg_publication p`

const eventTriggers = `
  select 'event trigger ' || e.evtname as object,
    ${lines(`'on ' || e.evtevent`, `'tags: ' || array_to_string(e.evttags, ', ')`, `'execute ' || e.evtfoid::regprocedure`, `'enabled: ' || e.evtenabled::text`)} as definition
  from pg_event_trigger e
  join pg_proc p on p.oid = e.evtfoid
  join pg_namespace n on n.oid = p.pronamespace
  where ${ours('n')}`

export const catalogueQueries = [
  schemas,
  roles,
  memberships,
  roleSettings,
  defaultPrivileges,
  extensions,
  types,
  relations,
  columns,
  constraints,
  indexes,
  triggers,
  policies,
  functions,
  rules,
  statistics,
  publications,
  eventTriggers,
]
