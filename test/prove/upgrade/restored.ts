// A dump of an installation with webhooks and e-mails that are still to be sent, restored into another cluster: what was written is there,
// keys work, nothing leaves it until it is released, and then what was pending is sent once, and so is what clients wrote there.

import { chmodSync, cpSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { examine } from '../../../src/cli/doctor/doctor.ts'
import { findPostgres } from '../../../src/local/binaries.ts'
import { databaseUrlFor } from '../../../src/local/client.ts'
import { superuser } from '../../../src/local/cluster.ts'
import { openDataDirectory } from '../../../src/local/data-directory.ts'
import { startDatabase } from '../../../src/local/database-server.ts'
import { applyMigrations } from '../../../src/local/migrate.ts'
import { loadOrCreateSecrets } from '../../../src/local/secrets.ts'
import { openMailServer } from '../../courier/mail-server.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'
import { createCrowd } from '../clients.ts'
import type { Problem } from '../history.ts'
import { comeToRest, holdAgainst, openHall, withClient } from '../prove.ts'
import { createRandom } from '../random.ts'
import { createSend } from '../send.ts'
import { type ProveStack, startProveStack } from '../stack.ts'
import { dump, restore } from './dump.ts'
import { moreWrites } from './rolling.ts'

export type Restoring = {
  seed: number
  /** Acknowledged writes before the dump. */
  writes: number
  /** The target has run before, and its owner does not stop at errors. */
  over?: boolean
  /** Breaks the restored database: a superuser's statements. */
  mutate?: (database: pg.Client) => Promise<unknown>
  say?: (line: string) => void
}

export type RestoreReport = { problems: Problem<string>[]; calls: number; pending: string; sent: string }

/** @param dataDir that of the installation: migrated, and nothing runs on it. @param folder for the other one. */
export async function restoreElsewhere(dataDir: string, folder: string, round: Restoring): Promise<RestoreReport> {
  const { seed, writes, over = false, mutate, say = () => {} } = round
  const problems: Problem<string>[] = []
  const add = (rule: string, about: string, details: string[]) =>
    problems.push(...details.map((detail) => ({ rule, about, detail })))
  const [mail, receiver] = [await openMailServer(), await startWebhookReceiver()]
  const received = () => receiver.received.map(({ headers }) => String(headers['webhook-id']))
  const dumped = join(folder, 'dump')
  const copy = join(folder, 'copy')
  const prefix = `k${seed}`
  let stack: ProveStack | undefined
  const apiUrls: string[] = []
  const run = async (path: string, logFile?: string): Promise<ProveStack> => {
    stack = await startProveStack(path, { mailPort: mail.port, ...(logFile !== undefined && { logFile }) })
    apiUrls.splice(0, apiUrls.length, ...stack.apiUrls)
    await stack.settled()
    return stack
  }
  try {
    const original = await run(dataDir)
    const { hall, keys } = await openHall(original, 4, receiver.url)
    const crowd = createCrowd(hall, createSend(apiUrls), keys, prefix)
    const work = async (more: number) => {
      let isOver = false
      const working = keys.map((_, i) => crowd.work(i, createRandom(seed + crowd.history.length + i), () => isOver))
      await moreWrites(crowd, more)
      isOver = true
      await Promise.all(working)
    }
    await work(writes)
    await withClient(original.databaseUrl, (client) => comeToRest(client, false))
    original.signal('courier', 'SIGSTOP')
    await work(15)
    const pending = await withClient(original.databaseUrl, pendingIn)
    mkdirSync(dumped)
    // Postgres may run as another user.
    chmodSync(dumped, 0o777)
    await withClient(original.superuserUrl, (database) => dump(database, dumped))
    await original.stop()
    stack = undefined
    const before = { webhooks: received().length, emails: mail.received.length }
    say(`dumped, with ${pending.notifications} notifications and ${pending.emails} e-mails to send`)
    if (pending.notifications === 0 || pending.emails === 0) {
      add('restore', 'the dump', ['holds nothing that is still to be sent'])
    }

    const logFile = join(folder, 'copy.log')
    await onNewCluster(copy, dataDir, async (urls) => {
      if (!over) await restoreInto(urls, dumped, over)
      if (mutate) await withClient(urls.superuserUrl, mutate)
    })
    const copied = await run(copy, logFile)
    if (over) await restoreInto(copied, dumped, over)
    await work(15)
    await sleep(2000)
    add('sent from a copy', 'webhooks', received().slice(before.webhooks))
    const subjects = mail.received.slice(before.emails).map(({ subject }) => subject ?? '')
    add('sent from a copy', 'e-mails', subjects)
    add('silent copy', 'who looks is told', await untold(copied, copy, logFile))

    return await withClient(copied.databaseUrl, async (database) => {
      const { rows } = await database.query<{ said: string }>('select private.release_deliveries() as said')
      say(rows[0]?.said ?? '')
      problems.push(...(await comeToRest(database, false)))
      const seen = { prefix, received: new Set(received()), mailServer: mail, copies: {}, courierCuts: [] }
      problems.push(...(await holdAgainst(database, crowd, seen)).problems)
      const times = Map.groupBy(received(), (id) => id)
      add(
        'sent twice',
        'webhooks',
        [...times].flatMap(([id, all]) => (all.length > 1 ? [id] : [])),
      )
      return {
        problems,
        calls: crowd.history.length,
        pending: `${pending.notifications} notifications, ${pending.emails} e-mails`,
        sent: `${received().length - before.webhooks} webhooks, ${mail.received.length - before.emails} e-mails`,
      }
    })
  } finally {
    await stack?.stop()
    await receiver.close()
    await mail.close()
  }
}

async function pendingIn(database: pg.Client): Promise<{ notifications: number; emails: number }> {
  const { rows } = await database.query(`select
    (select count(*)::int from public.webhook_deliveries where status = 'pending')
      + (select count(*)::int from public.notifications where queued_for is not null) as notifications,
    (select count(*)::int from public.emails where status = 'queued') as emails`)
  return rows[0]
}

type Urls = { databaseUrl: string; superuserUrl: string }

/** Makes a data directory with a cluster of its own and the secrets of the original, migrated; nothing runs on it afterwards. */
async function onNewCluster(path: string, original: string, work: (urls: Urls) => Promise<void>): Promise<void> {
  mkdirSync(path, { mode: 0o700 })
  const directory = openDataDirectory(path)
  cpSync(openDataDirectory(original).secrets, directory.secrets)
  const secrets = loadOrCreateSecrets(directory)
  const server = await startDatabase({
    directory,
    binaries: await findPostgres(),
    secrets,
    durable: false,
    progress: () => {},
    signal: new AbortController().signal,
  })
  try {
    const urls = {
      databaseUrl: databaseUrlFor('postgres', secrets.postgresPassword, server.port),
      superuserUrl: databaseUrlFor(superuser, secrets.superuserPassword, server.port),
    }
    await applyMigrations(urls.databaseUrl)
    await work(urls)
  } finally {
    await server.stop()
  }
}

/** As docs/operate/backup.md has it. */
async function restoreInto({ databaseUrl, superuserUrl }: Urls, dumped: string, over: boolean): Promise<void> {
  await withClient(superuserUrl, (database) => restore(database, dumped, over))
  await withClient(databaseUrl, (database) => database.query('select private.after_restore()'))
}

/** Who of the log, /ready and the doctor does not say that it is a copy, and what to do; each process learns it within ten seconds. */
async function untold(stack: ProveStack, dataDir: string, logFile: string): Promise<string[]> {
  const deadline = Date.now() + 60_000
  for (;;) {
    const silent = await silentNow(stack, dataDir, logFile)
    if (silent.length === 0 || Date.now() > deadline) return silent
    await sleep(200)
  }
}

async function silentNow(stack: ProveStack, dataDir: string, logFile: string): Promise<string[]> {
  const ready = (await (await fetch(`${stack.apiUrls[0]}/ready`)).json()) as { deliveries?: string }
  const found = (await examine({ USHER_DATA_DIR: dataDir })).find(({ check }) => check === 'deliveries')
  const fix = 'npx usher deliveries release'
  return [
    readFileSync(logFile, 'utf8').includes(fix) ? [] : ['the log does not say it'],
    ready.deliveries === 'held' ? [] : ['/ready does not say it'],
    found?.status === 'failed' && found.fix?.includes(fix) ? [] : ['the doctor does not say it'],
  ].flat()
}
