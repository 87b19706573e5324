// The courier of `usher start` is a process of its own: it is started again when it dies, ends with its parent, and asks the database
// little while there is nothing to do.

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startDeliveries } from '../../src/cli/deliveries.ts'
import { readConfig } from '../../src/config/config.ts'
import { findRunningStack } from '../../src/embedded/stack.ts'
import { createCourierRpc } from '../../src/gateway/courier-rpc.ts'
import { createDataApi } from '../../src/gateway/data-api.ts'
import { createTokens } from '../../src/gateway/tokens.ts'
import { createLog } from '../../src/process/log.ts'
import { identify, isRunning, type ProcessIdentity } from '../../src/process/processes.ts'
import { copyDataDirectory } from '../support/data-directory.ts'
import { cleanUp, familyOf, type Started, startUsher, temporaryFolder, waitFor } from './support.ts'

let dataDir: string
let started: Started
let database: pg.Client
beforeAll(async () => {
  dataDir = await copyDataDirectory(join(temporaryFolder(), 'data'))
  const env = { POSTMARK_WEBHOOK_SECRET: 'not-for-the-courier' }
  started = await startUsher({ dataDir, env })
  database = new pg.Client((await findRunningStack(dataDir))?.databaseUrl)
  await database.connect()
})
afterAll(async () => {
  await database?.end()
  await cleanUp()
})

/** Null: it does not run, or not yet. */
function courier(): ProcessIdentity | null {
  const [pid] = familyOf(started.child.pid as number).filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('courier-main.ts')
    } catch {
      return false
    }
  })
  return pid === undefined ? null : identify(pid)
}

const emails = () => {
  try {
    return readdirSync(join(dataDir, 'mail')).filter((name) => name.endsWith('.eml')).length
  } catch {
    return 0
  }
}

/** As in Studio: nobody tells the courier. */
const registerBySql = () =>
  database.query(
    `with ordered as (
       insert into public.orders (event_id, name, email) select id, 'Mary Jackson', 'mary@example.com' from public.events limit 1
       returning id, event_id
     )
     insert into public.attendees (order_id, ticket_type_id, name, email)
     select o.id, (select t.id from public.ticket_types t where t.event_id = o.event_id limit 1), 'Mary Jackson', 'mary@example.com'
     from ordered o`,
  )

test('a ticket of a row that was typed is sent, and so is one after the courier was killed', async () => {
  await registerBySql()
  await expect.poll(emails).toBe(1)
  const killed = courier() ?? expect.unreachable()
  process.kill(killed.pid, 'SIGKILL')
  await waitFor(() => started.stderr().includes('The courier runs again.'))
  expect(isRunning(killed)).toBe(false)
  expect(started.stderr()).toContain('The courier ended unexpectedly (signal SIGKILL). Starting it again')
  await registerBySql()
  await expect.poll(emails).toBe(2)
  await waitFor(() => started.stderr().includes('"msg":"e-mail"'))
})

test('it has no secret but those that it uses', () => {
  const { pid } = courier() ?? expect.unreachable()
  expect(readFileSync(`/proc/${started.child.pid}/environ`, 'utf8')).toContain('not-for-the-courier')
  expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain('not-for-the-courier')
})

test('while nothing is due, a courier makes one call for all of its queues', async () => {
  const { dataApiUrl, jwtSecret } = (await findRunningStack(dataDir)) ?? expect.unreachable()
  const tokens = await createTokens({ secret: jwtSecret })
  const call = createCourierRpc(createDataApi(dataApiUrl, tokens), tokens)
  const calls: string[] = []
  const polls = () => calls.filter((fn) => fn === 'poll_queues').length
  // The queue of notifications is fanned out first.
  await expect.poll(() => call('poll_queues', {})).toEqual([])
  const { stop } = startDeliveries(
    readConfig({ USHER_DATA_DIR: dataDir }),
    async (fn, args) => {
      calls.push(fn)
      return call(fn, args)
    },
    createLog('silent'),
    undefined,
    () => [],
  )
  await expect.poll(polls).toBeGreaterThan(3)
  await stop()
  const others = calls.filter((fn) => fn !== 'poll_queues').sort()
  // Each of them at intervals of its own, of which the first began with the start.
  expect(others).toEqual(['enforce_payment_deadlines', 'erased_emails', 'expire_waiting_list_offers', 'purge'])
})

test('it ends when its parent is killed', async () => {
  const left = courier() ?? expect.unreachable()
  await database.end()
  started.child.kill('SIGKILL')
  await started.ended
  await waitFor(() => !isRunning(left))
  // The next start ends what else was left.
  await startUsher({ dataDir })
})
