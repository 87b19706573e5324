// Calls a function over as many connections as there would be HTTP connections, each call in the transaction that PostgREST would make.
// pgbench where it is installed (npm's Postgres lacks it), else `pg`, which takes more of the machine for itself.

import { execFile, execFileSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import pg from 'pg'
import { type HttpRequest, type Load, type load, summary } from './load.ts'

export const pgbench = (() => {
  try {
    return execFileSync('pgbench', ['--version'], { encoding: 'utf8' }).trim()
  } catch {
    return null
  }
})()

/** `path` of a request is the function, `headers` are the claims, `body` has the arguments. */
export const driveDatabase: typeof load = (options) => {
  const bounded = { ...options, connections: Math.min(options.connections, mostConnections) }
  return pgbench === null ? driveWithPg(bounded) : driveWithPgbench(bounded)
}

// As many as PostgREST has.
const mostConnections = 20

type Options = Parameters<typeof load>[0]

const next = ({ request }: Options): HttpRequest => (typeof request === 'function' ? request() : request)

// Its connections are new in each run, and plan everything once.
const warmUpSeconds = 1

// pgbench repeats one script, so numbers in names and addresses are replaced by a random one.
async function driveWithPgbench(options: Options): Promise<Load> {
  const { url, connections, seconds } = options
  const { path, headers, body } = next(options)
  const args = Object.entries(JSON.parse(body ?? '{}')).map(([name, value]) => {
    const [before, after] = ['name', 'email'].includes(name) ? String(value).split(/\d+/) : []
    const unique = before !== undefined && after !== undefined
    return `${name} => ${unique ? `concat(${literal(before)}, :nth::bigint, ${literal(after)})` : literal(value)}`
  })
  const folder = await mkdtemp(join(tmpdir(), 'usher-pgbench-'))
  try {
    const script = [
      '\\set nth random(1, 9000000000000)',
      'begin;',
      `select set_config('request.jwt.claims', ${literal(JSON.stringify(headers))}, true), set_config('role', '${headers.role}', true);`,
      'select private.check_request();',
      `select api.${path}(${args.join(', ')});`,
      'commit;',
    ]
    await writeFile(join(folder, 'script.sql'), script.join('\n'))
    const duration = String(Math.ceil(seconds + warmUpSeconds))
    const flags = ['-n', '-M', 'prepared', '-l', '-f', 'script.sql', '-c', String(connections), '-T', duration]
    await promisify(execFile)('pgbench', [...flags, url], { cwd: folder })
    const log = (await readdir(folder)).find((name) => name.startsWith('pgbench_log')) as string
    // client, number, microseconds, script, and the time of its end in seconds and microseconds.
    const lines = (await readFile(join(folder, log), 'utf8')).split('\n').filter(Boolean)
    const all = lines
      .map((line) => line.split(' ').map(Number))
      .map(([, , us = 0, , s = 0, rest = 0]) => ({
        ms: us / 1000,
        end: s + rest / 1e6,
      }))
    const first = Math.min(...all.map(({ end }) => end)) + warmUpSeconds
    const warm = all.filter(({ end }) => end > first)
    const rate = warm.length / (Math.max(...warm.map(({ end }) => end)) - first)
    return { ...summary(warm.map(({ ms }) => ms)), rate, answers: all.length, statuses: { done: all.length } }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const literal = (value: unknown): string =>
  typeof value === 'string' ? `'${value.replaceAll("'", "''")}'` : String(value)

async function driveWithPg(options: Options): Promise<Load> {
  const { url, connections, seconds } = options
  const times: number[] = []
  const statuses: Record<string, number> = {}
  const clients = Array.from({ length: connections }, () => new pg.Client(url))
  await Promise.all(clients.map((client) => client.connect()))
  const started = performance.now()
  const isOver = () => performance.now() - started > seconds * 1000
  await Promise.all(
    clients.map(async (client) => {
      while (!isOver()) {
        const began = performance.now()
        const done = await callOnce(client, next(options)).then(
          () => 'done',
          (error: { code?: string }) => error.code ?? 'failed',
        )
        times.push(performance.now() - began)
        statuses[done] = (statuses[done] ?? 0) + 1
      }
    }),
  )
  const elapsed = (performance.now() - started) / 1000
  await Promise.all(clients.map((client) => client.end()))
  return { ...summary(times), rate: times.length / elapsed, answers: times.length, statuses }
}

async function callOnce(client: pg.Client, { path, headers, body }: HttpRequest): Promise<void> {
  const args = Object.entries(JSON.parse(body ?? '{}'))
  try {
    await client.query('begin')
    await client.query({
      name: 'claims',
      text: "select set_config('request.jwt.claims', $1, true), set_config('role', $2, true)",
      values: [JSON.stringify(headers), headers.role],
    })
    await client.query({ name: 'check', text: 'select private.check_request()' })
    const named = args.map(([name], i) => `${name} => $${i + 1}`).join(', ')
    await client.query({ name: path, text: `select api.${path}(${named})`, values: args.map(([, value]) => value) })
    await client.query('commit')
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}
