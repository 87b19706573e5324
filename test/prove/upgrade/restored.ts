// A dump of an installation with webhooks and e-mails that are still to be sent, restored into another cluster: what was written is there,
// keys work, nothing leaves it until it is released, and then what was pending is sent once.

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
import { disagreementsSql } from '../../../src/local/invariants.ts'
import { applyMigrations } from '../../../src/local/migrate.ts'
import { loadOrCreateSecrets } from '../../../src/local/secrets.ts'
import { openMailServer } from '../../courier/mail-server.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'
import { createCrowd } from '../clients.ts'
import type { Problem } from '../history.ts'
import { comeToRest, openHall, withClient } from '../prove.ts'
import { createRandom } from '../random.ts'
import { createSend } from '../send.ts'
import { type ProveStack, startProveStack } from '../stack.ts'
import { dump, restore } from './dump.ts'
import { moreWrites } from './rolling.ts'
import { type Done, missingWebhooks, tellStory } from './story.ts'

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
  let apiKey = ''
  let calls = 0
  let stack: ProveStack | undefined
  const tell = (name: string): Promise<Done> =>
    tellStory({ apiUrl: stack?.apiUrls[0] ?? '', apiKey, prefix, name, history: [] })
  try {
    stack = await startProveStack(dataDir, { mailPort: mail.port })
    await stack.settled()
    const { hall, keys } = await openHall(stack, 4, receiver.url)
    apiKey = keys[0] ?? ''
    const crowd = createCrowd(hall, createSend(stack.apiUrls), keys, prefix)
    let isOver = false
    const working = keys.map((_, i) => crowd.work(i, createRandom(seed + i), () => isOver))
    await moreWrites(crowd, writes)
    isOver = true
    await Promise.all(working)
    calls = crowd.history.length
    await withClient(stack.databaseUrl, (client) => comeToRest(client, false))
    stack.signal('courier', 'SIGSTOP')
    const unsent = await tell('unsent')
    add('story', 'before the dump', unsent.problems)
    const pending = await withClient(stack.databaseUrl, pendingIn)
    mkdirSync(dumped)
    // Postgres may run as another user.
    chmodSync(dumped, 0o777)
    await withClient(stack.superuserUrl, (database) => dump(database, dumped))
    await stack.stop()
    stack = undefined
    const before = { webhooks: received(), emails: mail.received.length }
    say(`dumped, with ${pending.notifications.length} notifications and ${pending.emails.length} e-mails to send`)
    if (pending.notifications.length === 0 || pending.emails.length === 0) {
      add('restore', 'the dump', ['holds nothing that is still to be sent'])
    }

    const logFile = join(folder, 'copy.log')
    await onNewCluster(copy, dataDir, async (urls) => {
      if (!over) await restoreInto(urls, dumped, over)
      if (mutate) await withClient(urls.superuserUrl, mutate)
    })
    stack = await startProveStack(copy, { mailPort: mail.port, logFile })
    await stack.settled()
    if (over) await restoreInto(stack, dumped, over)
    const copied = await tell('copy')
    add('story', 'in the copy', copied.problems)
    add('story', 'in the copy', (await tell('later')).problems)
    await sleep(2000)
    add('sent from a copy', 'webhooks', received().slice(before.webhooks.length))
    const subjects = mail.received.slice(before.emails).map(({ subject }) => subject ?? '')
    add('sent from a copy', 'e-mails', subjects)
    add('restore', 'invariants', await disagreements(stack))
    add('silent copy', 'who looks is told', await untold(stack, copy, logFile))

    const { rows } = await withClient(stack.databaseUrl, (database) =>
      database.query<{ said: string }>('select private.release_deliveries() as said'),
    )
    say(rows[0]?.said ?? '')
    add('story', 'released', await missingWebhooks(copied, receiver))
    await nothingPending(stack)
    const sent = received().slice(before.webhooks.length)
    const times = Map.groupBy(sent, (id) => id)
    const lost = pending.notifications.filter((id) => !times.has(id))
    add('webhook lost', 'after the release', lost)
    const doubled = [...times].flatMap(([id, all]) => (all.length > 1 || before.webhooks.includes(id) ? [id] : []))
    add('sent twice', 'webhooks', doubled)
    const emails = await withClient(stack.databaseUrl, (database) =>
      database.query<{ id: string }>("select id from public.emails where status = 'sent' and sent_at > $1", [
        pending.at,
      ]),
    )
    const unsentEmails = pending.emails.filter((id) => !emails.rows.some((row) => row.id === id))
    add('e-mail lost', 'after the release', unsentEmails)
    const news = mail.received.length - before.emails
    if (news !== emails.rows.length) add('sent twice', 'e-mails', [`${news} came, of ${emails.rows.length}`])
    add('restore', 'invariants', await disagreements(stack))
    return {
      problems,
      calls,
      pending: `${pending.notifications.length} notifications, ${pending.emails.length} e-mails`,
      sent: `${sent.length} webhooks, ${news} e-mails`,
    }
  } finally {
    await stack?.stop()
    await receiver.close()
    await mail.close()
  }
}

async function pendingIn(database: pg.Client) {
  const ids = async (sql: string) => (await database.query<{ id: string }>(sql)).rows.map(({ id }) => id)
  const { rows } = await database.query<{ at: Date }>('select now() as at')
  return {
    at: rows[0]?.at,
    notifications: await ids(
      `select d.notification_id as id from public.webhook_deliveries d where d.status = 'pending'
       union select n.id from public.notifications n where n.queued_for is not null`,
    ),
    emails: await ids("select id from public.emails where status = 'queued'"),
  }
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

/** As docs/operations.md has it. */
async function restoreInto({ databaseUrl, superuserUrl }: Urls, dumped: string, over: boolean): Promise<void> {
  await withClient(superuserUrl, (database) => restore(database, dumped, over))
  await withClient(databaseUrl, (database) => database.query('select private.after_restore()'))
}

/** Waits until everything was sent. It leaves claims alone, which would be sent twice. */
const nothingPending = ({ databaseUrl }: Urls): Promise<void> =>
  withClient(databaseUrl, async (database) => {
    const deadline = Date.now() + 120_000
    for (;;) {
      const { notifications, emails } = await pendingIn(database)
      if (notifications.length + emails.length === 0) return
      if (Date.now() > deadline)
        throw new Error(`${notifications.length} notifications and ${emails.length} e-mails stay`)
      await sleep(50)
    }
  })

const disagreements = ({ databaseUrl }: Urls): Promise<string[]> =>
  withClient(databaseUrl, async (database) =>
    (await database.query(disagreementsSql, [null])).rows.map((row) => JSON.stringify(row)),
  )

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
