// Usher as it runs in production, each part a process that may die at any moment: Postgres, PostgREST, two API processes, the courier, and
// Redis where it is installed. Each is started again when it ends. Between them, and before the mail service, are proxies.

import { type ChildProcess, execFileSync, type StdioOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, openSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findPostgres, findPostgrest } from '../../src/local/binaries.ts'
import { databaseUrlFor } from '../../src/local/client.ts'
import { superuser } from '../../src/local/cluster.ts'
import { openDataDirectory } from '../../src/local/data-directory.ts'
import { startDatabase } from '../../src/local/database-server.ts'
import { freePort } from '../../src/local/ports.ts'
import { startPostgrest } from '../../src/local/postgrest.ts'
import { type RunRecord, writeRunRecord } from '../../src/local/run-record.ts'
import { loadOrCreateSecrets } from '../../src/local/secrets.ts'
import { type FailingProxy, startProxy } from './proxy.ts'

export const repository = join(import.meta.dirname, '../..')
/** That of bin/usher.js, which spares a process half of its start. */
const compileCache = join(repository, 'node_modules/.cache/usher')
const redisBinary = '/usr/bin/redis-server'
const prlimitBinary = '/usr/bin/prlimit'

/** A part that runs: its process, and its end. */
type Part = { pid: number; ended: Promise<unknown>; stop(): Promise<unknown> }

export type ProveStack = {
  databaseUrl: string
  superuserUrl: string
  redisUrl: string | undefined
  /** Through a proxy each. */
  apiUrls: string[]
  parts: string[]
  proxies: Record<string, FailingProxy>
  /** @returns false: it does not run at this moment. */
  signal(part: string, signal: NodeJS.Signals): boolean
  /** Parts whose clock can be set. */
  clocks: string[]
  /** From now on the part's time of day is off by so much. */
  setClock(part: string, milliseconds: number): void
  /** Postgres cannot write beyond so many bytes of a file, as where a disk is full; undefined: it can. @returns false: not on this machine. */
  limitFiles(bytes: number | undefined): boolean
  /** Kills one process of Postgres that serves a connection, upon which Postgres ends all others and recovers. */
  killBackend(nth: number): boolean
  /** Replaces the courier, or an API as behind a load balancer: the new one is ready before the old one is told to end. */
  deploy(part: string, code: string): Promise<void>
  /** Resolves when each part runs. */
  settled(): Promise<void>
  stop(): Promise<void>
}

type StackOptions = {
  /** Of the mail service. */
  mailPort: number
  /** The folder of the code that APIs and courier are started from. */
  code?: string | undefined
  /** One API, which delivers as well, in place of two and a courier. */
  isSmall?: boolean | undefined
  /** Where what they log is appended; without it they log nothing. */
  logFile?: string
}

/** @param dataDir a data directory whose database is migrated. */
export async function startProveStack(dataDir: string, options: StackOptions): Promise<ProveStack> {
  const { mailPort, code = repository, isSmall = false, logFile } = options
  const apis = isSmall ? ['API 1'] : ['API 1', 'API 2']
  const directory = openDataDirectory(dataDir)
  const secrets = loadOrCreateSecrets(directory)
  const binaries = await findPostgres()
  const { signal } = new AbortController()
  const ports = {
    postgres: await freePort(),
    api: await Promise.all(apis.map(() => freePort())),
    redis: await freePort(),
  }
  const restPorts = { port: await freePort(), adminPort: await freePort() }
  const toPostgres = await startProxy(ports.postgres)
  const toPostgrest = await startProxy(restPorts.port, 'HTTP')
  const toApi = await Promise.all(ports.api.map((port) => startProxy(port, 'HTTP')))
  const toMail = await startProxy(mailPort)
  const toRedis = await startProxy(ports.redis)
  const hasRedis = !isSmall && existsSync(redisBinary)
  const proxies: Record<string, FailingProxy> = {
    'PostgREST–Postgres': toPostgres,
    'API–PostgREST': toPostgrest,
    ...Object.fromEntries(apis.map((name, i) => [`client–${name}`, toApi[i] as FailingProxy])),
    'courier–mail service': toMail,
    ...(hasRedis && { 'API–Redis': toRedis }),
  }
  const clocks = mkdtempSync(join(tmpdir(), 'clocks-'))

  const record: RunRecord = {
    usher: { pid: process.pid },
    ready: true,
    dataApiUrl: `http://127.0.0.1:${toPostgrest.port}`,
  }
  const note = (change: Partial<RunRecord>) => writeRunRecord(directory, Object.assign(record, change))

  let isStopping = false
  const running = new Map<string, Part>()
  const watching: Promise<void>[] = []
  /** Runs it until the end, whatever becomes of it. */
  async function keep(name: string, start: () => Promise<Part>): Promise<void> {
    running.set(name, await start())
    const watch = async () => {
      while (!isStopping) {
        const ending = running.get(name)
        await ending?.ended
        // It was replaced.
        if (ending && running.get(name) !== ending) continue
        running.delete(name)
        while (!isStopping) {
          await sleep(100)
          const part = await start().catch(() => undefined)
          if (part === undefined) continue
          running.set(name, part)
          if (isStopping) await part.stop()
          break
        }
      }
    }
    watching.push(watch())
  }

  const deployed = new Map<string, string>()
  const output = logFile === undefined ? 'ignore' : openSync(logFile, 'a')
  const node = (name: string, args: string[], env: NodeJS.ProcessEnv) => async (): Promise<Part> => {
    const child = spawnProgram(['--import', join(import.meta.dirname, 'shifted-clock.ts'), ...args], {
      folder: deployed.get(name) ?? code,
      stdio: ['ignore', output, output],
      env: {
        USHER_DATA_DIR: dataDir,
        LOG_LEVEL: logFile === undefined ? 'fatal' : 'warn',
        WEBHOOKS_TO_LOOPBACK: 'true',
        WEBHOOK_TIMEOUT_SECONDS: '2',
        SMTP_URL: `smtp://127.0.0.1:${toMail.port}`,
        MAIL_FROM: 'tickets@example.com',
        // Visitors of pages have an address each.
        TRUST_PROXY: '1',
        CLOCK_FILE: join(clocks, name),
        ...env,
      },
    })
    return partOf(child)
  }

  await keep('Postgres', async () => {
    const server = await startDatabase({
      directory,
      binaries,
      secrets,
      durable: true,
      requiredPort: ports.postgres,
      progress: () => {},
      onSpawn: (identity, port) => note({ postgres: { ...identity, port } }),
      signal,
    })
    return { pid: server.identity.pid, ended: server.ended, stop: server.stop }
  })
  await keep('PostgREST', async () => {
    const server = await startPostgrest({
      directory,
      binary: findPostgrest(),
      secrets,
      postgresPort: toPostgres.port,
      ports: restPorts,
      onSpawn: (identity) => note({ postgrest: identity }),
      signal,
    })
    return { pid: server.identity.pid, ended: server.ended, stop: server.stop }
  })
  if (hasRedis) {
    await keep('Redis', async () =>
      partOf(
        spawn(redisBinary, ['--port', `${ports.redis}`, '--bind', '127.0.0.1', '--save', ''], { stdio: 'ignore' }),
      ),
    )
  }
  const startApi = (i: number) => () =>
    node(`API ${i + 1}`, ['scripts/dev-api.ts'], {
      PORT: `${ports.api[i]}`,
      DELIVERIES: `${isSmall}`,
      ...(hasRedis && { REDIS_URL: `redis://127.0.0.1:${toRedis.port}` }),
    })()
  for (const i of ports.api.keys()) await keep(`API ${i + 1}`, startApi(i))
  if (!isSmall) await keep('courier', node('courier', ['bin/usher.js', 'courier'], {}))

  const settled = async () => {
    for (const port of ports.api) await untilHealthy(`http://127.0.0.1:${port}`)
  }

  return {
    databaseUrl: databaseUrlFor('postgres', secrets.postgresPassword, ports.postgres),
    superuserUrl: databaseUrlFor(superuser, secrets.superuserPassword, ports.postgres),
    redisUrl: hasRedis ? `redis://127.0.0.1:${ports.redis}` : undefined,
    apiUrls: toApi.map(({ port }) => `http://127.0.0.1:${port}`),
    parts: ['Postgres', 'PostgREST', ...apis, ...(isSmall ? [] : ['courier']), ...(hasRedis ? ['Redis'] : [])],
    proxies,
    signal(part, name) {
      const pid = running.get(part)?.pid
      if (pid === undefined) return false
      try {
        return process.kill(pid, name)
      } catch {
        return false
      }
    },
    clocks: isSmall ? apis : [...apis, 'courier'],
    setClock: (part, milliseconds) => writeFileSync(join(clocks, part), `${milliseconds}`),
    limitFiles(bytes) {
      const postmaster = running.get('Postgres')?.pid
      if (postmaster === undefined || !existsSync(prlimitBinary)) return false
      // The hard limit stays, so that whoever set this may lift it.
      for (const pid of [postmaster, ...childrenOf(postmaster)]) {
        try {
          execFileSync(prlimitBinary, ['--pid', `${pid}`, `--fsize=${bytes ?? 'unlimited'}:`], { stdio: 'ignore' })
        } catch {
          // It has ended meanwhile.
        }
      }
      return true
    },
    killBackend(nth) {
      const postmaster = running.get('Postgres')?.pid
      if (postmaster === undefined) return false
      const backends = childrenOf(postmaster, 'authenticator')
      const pid = backends[nth % Math.max(backends.length, 1)]
      try {
        return pid !== undefined && process.kill(pid, 'SIGKILL')
      } catch {
        return false
      }
    },
    async deploy(name, folder) {
      deployed.set(name, folder)
      const before = running.get(name)
      const i = apis.indexOf(name)
      if (i >= 0) {
        ports.api[i] = await freePort()
        running.set(name, await startApi(i)())
        await settled()
        toApi[i]?.retarget(ports.api[i])
      }
      if (before) process.kill(before.pid, 'SIGTERM')
      await before?.ended
    },
    settled,
    async stop() {
      isStopping = true
      for (const name of [...running.keys()].reverse()) {
        const part = running.get(name)
        try {
          if (part) process.kill(part.pid, 'SIGCONT')
        } catch {}
        await part?.stop()
      }
      await Promise.all(watching)
      for (const part of running.values()) await part.stop()
      for (const proxy of [...Object.values(proxies), toRedis]) await proxy.close()
      rmSync(clocks, { recursive: true, force: true })
    },
  }
}

/** A process of Usher's own, of this code or another. */
export function spawnProgram(
  args: string[],
  { folder = repository, stdio, env }: { folder?: string; stdio: StdioOptions; env: NodeJS.ProcessEnv },
): ChildProcess {
  const { PATH, HOME, TMPDIR } = process.env
  // As for `usher start`. Other code is elsewhere, and what is compiled of it would stay there.
  const cache = folder === repository && { NODE_COMPILE_CACHE: compileCache }
  const all = { PATH, HOME, TMPDIR, SUPABASE_URL: '', DATABASE_URL: '', LOG_FORMAT: 'json', ...cache, ...env }
  return spawn(process.execPath, args, { cwd: folder, stdio, env: all })
}

/** @param isGone it has ended, so that there is no need to wait. */
export async function untilHealthy(url: string, isGone = () => false): Promise<void> {
  const deadline = Date.now() + 240_000
  const isReady = () =>
    fetch(`${url}/health`, { signal: AbortSignal.timeout(2000) }).then(
      ({ ok }) => ok,
      () => false,
    )
  while (!(await isReady())) {
    if (Date.now() > deadline || isGone()) throw new Error('The API does not come.')
    await sleep(50)
  }
}

function partOf(child: ChildProcess): Part {
  const ended = once(child, 'exit')
  // It must not outlive this process, however that ends.
  const kill = () => void child.kill('SIGKILL')
  process.once('exit', kill)
  void ended.then(() => process.off('exit', kill))
  return {
    pid: child.pid ?? 0,
    ended,
    async stop() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Of Linux: the processes of a Postgres, or those that serve the connections of a role. */
function childrenOf(pid: number, role = ''): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((one) => {
      try {
        const stat = readFileSync(`/proc/${one}/stat`, 'utf8')
        const isChild = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === pid
        return isChild && readFileSync(`/proc/${one}/cmdline`, 'utf8').includes(role)
      } catch {
        return false
      }
    })
}
