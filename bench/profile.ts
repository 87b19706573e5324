// `npm run bench -- --profile`: where Postgres spends the time of one call, by statement and by function.

import { appendFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type pg from 'pg'
import { callsOneByOne, kinds, openSide } from './single-call.ts'
import { connectAsSuperuser, startStack } from './stack.ts'

// `all` also counts the statements within functions.
const settings = `
shared_preload_libraries = 'pg_stat_statements'
pg_stat_statements.track = all
pg_stat_statements.track_planning = on
track_functions = all
`

export async function profile(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'usher-bench-'))
  try {
    await (await startStack(dataDir)).stop()
    appendFileSync(join(dataDir, 'database/postgresql.auto.conf'), settings)
    const stack = await startStack(dataDir, undefined, { DELIVERIES: 'false' })
    const superuser = await connectAsSuperuser(stack, dataDir)
    try {
      await superuser.query('create extension pg_stat_statements')
      const side = await openSide(stack)
      for (const kind of kinds) {
        const calls = kind.perSecond > 1 ? 200 : 1
        await kind.prepare?.(side, calls + Math.ceil(calls / 2))
        await callsOneByOne(kind, side, Math.ceil(calls / 2))
        await superuser.query('select pg_stat_statements_reset(), pg_stat_reset()')
        await callsOneByOne(kind, side, calls)
        // Sessions report their counts once a second at most, when they are idle.
        await new Promise((resolve) => setTimeout(resolve, 1_500))
        await print(superuser, kind.name, calls)
      }
    } finally {
      await superuser.end()
      await stack.stop()
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function print(superuser: pg.Client, name: string, calls: number): Promise<void> {
  const statements = await superuser.query(
    `select plans, calls, 1000 * (total_plan_time) / $1::integer as plan_us, 1000 * total_exec_time / $1::integer as exec_us,
       regexp_replace(query, '\\s+', ' ', 'g') as query
     from pg_stat_statements where query !~ 'pg_stat' order by total_plan_time + total_exec_time desc limit 45`,
    [calls],
  )
  console.log(`\n${name}, microseconds for each of ${calls} calls\n    plans    calls  planning executing  statement`)
  for (const { plans, calls: times, plan_us, exec_us, query } of statements.rows) {
    console.log(
      [plans / calls, times / calls, plan_us, exec_us].map((n) => Number(n).toFixed(1).padStart(9)).join(' '),
      ` ${query.slice(0, 110)}`,
    )
  }
  const functions = await superuser.query(
    `select calls, 1000 * self_time / $1::integer as self_us, 1000 * total_time / $1::integer as total_us, schemaname || '.' || funcname as name
     from pg_stat_user_functions order by self_time desc limit 45`,
    [calls],
  )
  console.log('    calls      self     total  function')
  for (const { calls: times, self_us, total_us, name } of functions.rows) {
    console.log([times / calls, self_us, total_us].map((n) => Number(n).toFixed(1).padStart(9)).join(' '), ` ${name}`)
  }
}
