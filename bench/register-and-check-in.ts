// Measures the CPU time that registrations and check-ins take in the database: `node bench/register-and-check-in.ts [checkout] [rounds]`.
// Compares the schema of this checkout with that of another one, in alternating rounds on two scratch databases. Prints the CPU time of
// the backend per call in the fastest round, because other load only adds to it, and the ratio of the two.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { applyMigrations } from '../src/embedded/migrate.ts'
import { startScratchDatabase } from '../src/embedded/scratch.ts'

const here = join(import.meta.dirname, '..')
const folders = [...new Set([process.argv[2] ?? here, here])]
const rounds = Number(process.argv[3] ?? 12)
const guests = 200

const kinds = ['free', 'priced', 'with an external_id', 'check-in'] as const
type Kind = (typeof kinds)[number]

const { signal } = new AbortController()
const subjects = await Promise.all(folders.map(open))
try {
  for (let i = 0; i < rounds; i++) for (const subject of i % 2 ? subjects : subjects.toReversed()) await subject.round()
  for (const kind of kinds) {
    const cost = subjects.map((subject) => subject.milliseconds(kind))
    const figures = subjects.map(({ folder }, i) => `${folder === here ? 'here' : 'there'} ${cost[i]?.toFixed(3)} ms`)
    const [there = Number.NaN, ours] = cost
    console.log(`${kind}: ${figures.join(', ')}${ours === undefined ? '' : `, ratio ${(ours / there).toFixed(3)}`}`)
  }
} finally {
  for (const subject of subjects) await subject.close()
}

async function open(folder: string) {
  const database = await startScratchDatabase(signal)
  await applyMigrations(database.databaseUrl, { projectDir: folder })
  const client = new pg.Client({ connectionString: database.databaseUrl })
  await client.connect()
  const one = async (sql: string, values: unknown[] = []) => (await client.query(sql, values)).rows[0]
  const { pid } = await one('select pg_backend_pid() as pid')
  const { id: organisation } = await one("insert into public.organisations (name, slug) values ('B', 'b') returning id")
  const { id: event } = await one(
    `insert into public.events (organisation_id, name, slug, starts_at, ends_at, capacity)
     values ($1, 'B', 'b', now() + interval '1 day', now() + interval '2 days', 1000000) returning id`,
    [organisation],
  )
  const { id: ticketType } = await one(
    "insert into public.ticket_types (event_id, name, price) values ($1, 'B', 100) returning id",
    [event],
  )
  await client.query("update public.events set status = 'published' where id = $1", [event])
  const least = new Map<Kind, number>()
  let nth = 0

  /** One call as PostgREST makes it: one transaction, with the role of the scope. */
  async function call(role: string, sql: string, values: unknown[]) {
    await client.query('begin')
    await client.query("select set_config('request.jwt.claims', $1, true), set_config('role', $2, true)", [
      JSON.stringify({ role, organisation_id: organisation, source: 'api' }),
      role,
    ])
    const { rows } = await client.query(sql, values)
    await client.query('commit')
    return rows[0].answer
  }
  const register = (more: { method?: string; externalId?: string }) =>
    call(
      'scope_attendees_write',
      `select api.register_attendee(event_id => $1, ticket_type_id => $2, name => 'Mary Jackson', email => 'mary@example.com',
         payment_method => $3, external_id => $4) as answer`,
      [event, ticketType, more.method, more.externalId],
    )

  return {
    folder,
    async round() {
      const codes: string[] = []
      const work: Record<Kind, (i: number) => Promise<unknown>> = {
        free: async () => codes.push((await register({})).data.attendees[0].ticket_code),
        priced: () => register({ method: 'invoice' }),
        'with an external_id': () => register({ externalId: `crm-${nth++}` }),
        'check-in': (i) =>
          call('scope_checkin_write', 'select api.check_in(event_id => $1, code => $2) as answer', [event, codes[i]]),
      }
      for (const kind of kinds) {
        const before = cpuMs(pid)
        for (let i = 0; i < guests; i++) await work[kind](i)
        least.set(kind, Math.min(cpuMs(pid) - before, least.get(kind) ?? Number.POSITIVE_INFINITY))
      }
    },
    milliseconds: (kind: Kind) => (least.get(kind) ?? Number.NaN) / guests,
    async close() {
      await client.end()
      await database.remove()
    },
  }
}

/** User and system time of a process, which Linux counts in hundredths of a second. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10
}
