// Whatever is mistyped into a row, as Studio's grid sends it: for each column of each table, and of the view that takes rows. The answer is
// a sentence that names the column and shows nothing of the row, or the value is saved and meant to be.

import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from 'vitest'
import { during, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import type { Claims } from './actor.ts'
import { rows } from './tenancy.ts'
import { createTenant, type Tenant } from './tenant-fixture.ts'

type Column = { name: string; type: string; nullable: boolean; kind: string }
type Answer = { sqlstate: string | null; message: string; detail: string; saved: unknown }
type Row = Record<string, unknown>
type Attempt = { about: string; column: Column; value: unknown; statement: string }

const literal = (value: unknown) => `'${JSON.stringify(value).replaceAll("'", "''")}'`
const listed = (row: object) =>
  Object.keys(row)
    .map((column) => `"${column}"`)
    .join(', ')
// As the grid sends them: values come as JSON, and the row is named by its key.
const gridInsert = (table: string, row: object, returning: string) =>
  `insert into public.${table} (${listed(row)}) select ${listed(row)}
   from json_populate_record(null::public.${table}, ${literal(row)}) returning ${returning}`
const gridUpdate = (table: string, changes: object, where: string, returning: string) =>
  `update public.${table} set (${listed(changes)}) = (select ${listed(changes)}
   from json_populate_record(null::public.${table}, ${literal(changes)})) where ${where} returning ${returning}`

/** What is typed into a column of each kind. */
const mistakes: Record<string, Record<string, unknown>> = {
  text: {
    empty: '',
    blank: '  ',
    unseen: '\u3164\u00ad\u200e',
    'too long': 'x'.repeat(20_001),
    'wrong form': ' Ä b?\u0007c ',
    'two lines': 'one\ntwo',
  },
  number: { empty: '', letters: 'twelve', zero: 0, negative: -1, huge: '99999999999999999999', decimals: 1.5 },
  time: { empty: '', words: 'tomorrowish', infinite: 'infinity', 'too early': '0001-01-01', 'too late': '30000-01-01' },
  uuid: { empty: '', word: 'the first', unknown: '00000000-0000-7000-8000-000000000000' },
  enum: { empty: '', other: 'whatever' },
  boolean: { empty: '', other: 'perhaps' },
  array: { none: [], 'with null': [null], word: ['whatever'], unknown: ['00000000-0000-7000-8000-000000000000'] },
  json: { list: [], text: 'text', nested: { a: { b: 1 } }, null: 'null' },
}

/** A value of the wrong type is refused by Postgres itself, as it reads it and before any rule of ours: it shows what was typed. */
const typeErrors = ['22P02', '22003', '22007', '22008', '22023', '22P03', '22P05']

const kindOf = (type: string) =>
  type.endsWith('[]')
    ? 'array'
    : ({
        text: 'text',
        uuid: 'uuid',
        boolean: 'boolean',
        jsonb: 'json',
        'timestamp with time zone': 'time',
        integer: 'number',
        bigint: 'number',
        'numeric(5,2)': 'number',
      }[type] ?? 'enum')

async function columnsOf(table: string): Promise<Column[]> {
  const { rows } = await studio.query<Omit<Column, 'kind'>>(
    `select a.attname as name, format_type(a.atttypid, a.atttypmod) as type, not a.attnotnull as nullable
     from pg_attribute a
     where a.attrelid = ('public.' || $1)::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
     order by a.attnum`,
    [table],
  )
  return rows.map((column) => ({ ...column, kind: kindOf(column.type) }))
}

// Each in a subtransaction that is taken back, with what runs at the end of a transaction.
const attempting = `
  create function pg_temp.attempt(statement text) returns jsonb language plpgsql as $$
  declare
    v_saved jsonb;
    v_message text;
    v_detail text;
  begin
    execute statement into v_saved;
    set constraints all immediate;
    raise exception sqlstate 'DONE0';
  exception when others then
    if sqlstate = 'DONE0' then
      return jsonb_build_object('sqlstate', null, 'message', '', 'detail', '', 'saved', v_saved);
    end if;
    get stacked diagnostics v_message = message_text, v_detail = pg_exception_detail;
    return jsonb_build_object('sqlstate', sqlstate, 'message', v_message, 'detail', v_detail);
  end
  $$;
  grant execute on function pg_temp.attempt to public`

async function answersTo(statements: string[], member?: Claims): Promise<Answer[]> {
  return during(async (client) => {
    await client.query(attempting)
    // Postgres would count these rows to transactions of the next second, and mistakes in row 200 of one are not explained.
    await client.query('select pg_stat_force_next_flush()')
    if (member) {
      await client.query(
        "select set_config('request.jwt.claims', $1, true), set_config('role', 'authenticated', true)",
        [JSON.stringify({ ...member, role: 'authenticated' })],
      )
    }
    const { rows } = await client.query<{ answer: Answer }>(
      'select pg_temp.attempt(s) as answer from unnest($1::text[]) with ordinality u (s, n) order by n',
      [statements],
    )
    return rows.map(({ answer }) => answer)
  })
}

const answerTo = async (statement: string, member?: Claims) => (await answersTo([statement], member))[0] as Answer

/** Rows that are never changed are refused as such, whichever column it is. */
const sealed = /^(.* log: |In email: Only the recipient can switch)/

const keys = ['event_id', 'order_id', 'ticket_type_id', 'organisation_id', 'payment_id', 'user_id', 'id']

/** What is wrong with an answer, or undefined. */
function faultOf({ about, column, value }: Attempt, answer: Answer): string | undefined {
  // A row of others that fits no other cell is refused in the name of either.
  const named = about.endsWith(' foreign') && column.kind === 'uuid' ? [column.name, 'email', ...keys] : [column.name]
  const { sqlstate, message, detail, saved } = answer
  const says = `${about}: ${sqlstate} ${message}${detail ? ` | ${detail}` : ''}`
  if (sqlstate === null) {
    const kept = (saved as Record<string, unknown> | null)?.[column.name]
    if (
      typeof value === 'string' &&
      typeof kept === 'string' &&
      (/^[\s\p{DI}]*$/u.test(kept) || kept.length > 20_000)
    ) {
      return `${about}: is saved`
    }
    if (column.kind === 'number' && Number(kept) < 0) return `${about}: is saved`
    if (column.kind === 'time' && /infinity|^\d{5}|^0001/.test(String(kept))) return `${about}: is saved`
    return undefined
  }
  if (typeErrors.includes(sqlstate)) return /constraint|Failing row/.test(says) ? says : undefined
  if (!sqlstate.startsWith('PT')) return says
  if (!/^\w[ -~]*\.$/.test(message)) return says
  if (sealed.test(message)) return undefined
  return named.some((name) => new RegExp(`\\b${name}\\b`, 'i').test(message)) ? undefined : says
}

let us: Tenant
let them: Tenant
beforeAll(async () => {
  ;[us, them] = await Promise.all([createTenant(), createTenant()])
  // A zone that an event has is not looked up in files any more, for each of a thousand new rows: this is that of a row without one.
  await studio.query("insert into public.events (organisation_id, name) values ($1, 'In UTC')", [
    (await createOrganisation()).id,
  ])
  // Something to be a duplicate of.
  for (const table of ['events', 'ticket_types', 'orders', 'attendees', 'waiting_list_entries']) {
    await studio.query(
      `update public.${table} t set external_id = 'taken'
       from (select distinct on (organisation_id) id from public.${table} where organisation_id = any ($1)) first where t.id = first.id`,
      [[us.id, them.id]],
    )
  }
  await studio.query(
    `insert into public.registrations (event_id, ticket_type_id, name, email) values ($1, $2, 'Guest', 'new@example.com')`,
    [us.event.id, us.event.ticketTypeId],
  )
})

/** A row that could be added. */
const additions: Record<string, () => Record<string, unknown>> = {
  plans: () => ({ name: 'gold', rate_limit_per_minute: 100 }),
  organisations: () => ({ name: 'Acme', slug: `acme-${randomUUID()}` }),
  api_keys: () => ({ organisation_id: us.id, name: 'CRM', prefix: 'usher_live_00000000', scopes: ['events:read'] }),
  registrations: () => ({
    ...{ event_id: us.event.id, ticket_type_id: us.event.ticketTypeId },
    ...{ name: 'Guest', email: 'g@example.com' },
  }),
  email_opt_outs: () => ({ event_id: us.event.id, email: 'new@example.com' }),
  ...Object.fromEntries(Object.entries(rows).map(([table, rowOf]) => [table, () => rowOf(us, them.owner)])),
}

// Nobody sees a blank at the end, and by a name with one nothing is found. It is no mistake, and does not depend on how many rows there are.
test.each(Object.keys(additions))('blanks around the texts of a new row of %s are no part of them', async (table) => {
  const base = additions[table]?.() ?? {}
  const names = (await columnsOf(table))
    .filter(({ name, kind }) => kind === 'text' && typeof base[name] === 'string')
    .map(({ name }) => name)
  const texts = Object.fromEntries(names.map((name) => [name, base[name] as string]))
  const typed = Object.fromEntries(names.map((name) => [name, ` \u00a0${texts[name]}\t `]))
  const insert = gridInsert(table, { ...base, ...typed }, returned(table))
  const { sqlstate, message, saved } = await answerTo(insert)
  expect([sqlstate, message]).toEqual([null, ''])
  expect(saved).toMatchObject(texts)
})

test('blanks around the lines of a text of several are kept', async () => {
  const row = { organisation_id: us.id, name: ' New ', description: '  one\n  two\n' }
  const { saved } = await answerTo(gridInsert('events', row, returned('events')))
  expect(saved).toMatchObject({ name: 'New', description: row.description })
})

/** The row of ours, and one of theirs. */
async function rowsOf(table: string): Promise<[Row | undefined, Row | undefined, string[]]> {
  const owner = table === 'organisations' ? 'id' : 'organisation_id'
  const condition = table === 'plans' ? "name = case $1 when '' then 'x' else 'standard' end" : `${owner} = $1`
  const columns = (await columnsOf(table)).map(({ name }) => name)
  const order = columns.includes('external_id') ? "external_id = 'taken' desc nulls last" : '1'
  const read = async (of: string) =>
    (
      await studio.query(
        `select to_jsonb(t) as row from public.${table} t where ${condition} order by ${order} limit 1`,
        [of],
      )
    ).rows[0]?.row
  const { rows } = await studio.query<{ name: string }>(
    `select a.attname as name from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
     where i.indisprimary and i.indrelid = ('public.' || $1)::regclass`,
    [table],
  )
  return [await read(us.id), await read(them.id), rows.map(({ name }) => name)]
}

const updated = [...Object.keys(additions).filter((table) => table !== 'registrations'), 'webhook_deliveries', 'emails']

/** Each mistake in each column, and what is wrong with the answers. */
async function faults(
  table: string,
  values: (column: Column) => Record<string, unknown>,
  statement: (column: string, value: unknown) => string,
  member?: Claims,
): Promise<(string | undefined)[]> {
  // A member differs in look-ups of rows that they may not see.
  const columns = (await columnsOf(table)).filter(({ kind }) => !member || ['uuid', 'array'].includes(kind))
  const attempts = columns.flatMap((column) =>
    Object.entries({ null: null, ...mistakes[column.kind], ...values(column) })
      .filter(([, value]) => value !== undefined)
      .map(([mistake, value]) => ({
        about: `${table}.${column.name} ${mistake}`,
        column,
        value,
        statement: statement(column.name, value),
      })),
  )
  const answers = await answersTo(
    attempts.map((attempt) => attempt.statement),
    member,
  )
  return attempts
    .map((attempt, i) => {
      const answer = answers[i] as Answer
      return member && deniedToMembers(answer) ? undefined : faultOf(attempt, answer)
    })
    .filter(Boolean)
}

/** What members may not write, Postgres denies them by the name of the table. */
const deniedToMembers = ({ sqlstate, message }: Answer) =>
  sqlstate === '42501' && /^(permission denied for table|new row violates row-level security policy)/.test(message)

const returned = (table: string, member?: Claims) => (member ? 'null::jsonb' : `to_jsonb(${table})`)

describe.each(['an organiser in Studio', 'a member who is signed in'])('by %s', (who) => {
  const member = () => (who.startsWith('a member') ? us.owner : undefined)

  test.each(Object.keys(additions))('a mistake in a new row of %s is explained', async (table) => {
    const base = additions[table]?.() ?? {}
    const [ours, theirs] = await rowsOf(table)
    const insert = (row: Row) => gridInsert(table, { ...base, ...row }, returned(table, member()))
    // The row itself can be added, so what is refused below is the mistake.
    const answer = await answerTo(insert({}), member())
    expect(deniedToMembers(answer) || answer.sqlstate).toEqual(member() ? expect.toBeOneOf([null, true]) : null)
    expect(
      await faults(
        table,
        ({ name }) => ({ duplicate: ours?.[name], foreign: theirs?.[name] }),
        (column, value) => insert({ [column]: value }),
        member(),
      ),
    ).toEqual([])
  })

  test.each(updated)('a mistake in a row of %s is explained', async (table) => {
    const [ours = {}, theirs, key] = await rowsOf(table)
    const values = ({ name }: Column) => ({ same: ours[name], foreign: theirs?.[name] })
    const where = key.map((name) => `"${name}" = '${ours[name]}'`).join(' and ')
    const update = (column: string, value: unknown) =>
      gridUpdate(table, { [column]: value }, where, returned(table, member()))
    expect(await faults(table, values, update, member())).toEqual([])
  })
})

test.each([
  [200, 'PT409'],
  [201, '23505'],
])('a mistake in row %s of a transaction is answered with %s', async (n, sqlstate) => {
  const insert = `insert into public.promo_codes (event_id, code, percent_off)
    select '${us.event.id}', 'NEW' || i % (${n} - 1), 1 from generate_series(1, ${n}) i returning to_jsonb(promo_codes)`
  expect(await answerTo(insert)).toMatchObject({ sqlstate })
})

test('no table is left out but what Usher alone writes', async () => {
  const { rows } = await studio.query<{ name: string }>(
    `select c.relname as name from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by 1`,
  )
  const names = rows.map(({ name }) => name).filter((name) => !updated.includes(name))
  expect(names).toEqual(['audit_entries', 'messages', 'notifications'])
})

// What may be deleted is, with what belongs to it; of the rest the row says why not.
test.each(updated)('a row of %s is deleted, or a sentence says why not', async (table) => {
  const [ours = {}, , key] = await rowsOf(table)
  const where = key.map((name) => `"${name}" = '${ours[name]}'`).join(' and ')
  const statement = `delete from public.${table} where ${where} returning to_jsonb(${table})`
  const answer = await answerTo(statement)
  expect([answer.sqlstate ?? 'PT409', answer.message]).toEqual(['PT409', expect.stringMatching(/^([A-Z][ -~]*\.)?$/)])
})
