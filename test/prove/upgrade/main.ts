// `npm run prove -- --upgrade`: each upgrade since the baseline, a dump that is restored, and what must not leave it. With --mutants: broken
// ones, and what noticed.

import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Problem } from '../history.ts'
import { conclude, doubt, lineOf } from '../report.ts'
import { type Restoring, restoreElsewhere } from './restored.ts'
import { databaseWith, rollThrough } from './rounds.ts'
import { type ExtraMigration, migrationFiles, type Step, stepsSinceBaseline } from './versions.ts'

const extra = (sql: string): ExtraMigration[] => [
  {
    name: '29990101000000_rehearsal.sql',
    sql: `set local lock_timeout = '2s';\nset local statement_timeout = '60s';\n${sql}`,
  },
]

// With somebody who reads the tables for long: it gets its lock when it is tried again.
const rehearsal = extra('alter table public.attendees add column rehearsal text;')

const brokenMigrations: Record<string, ExtraMigration[]> = {
  'a migration drops a column that the version before writes': extra(
    'alter table public.payments drop column method cascade;',
  ),
  'a migration locks a table for long': extra(
    'lock table public.orders in access exclusive mode;\nselect pg_sleep(15);',
  ),
}

const brokenCopies: Record<string, NonNullable<Restoring['mutate']>> = {
  'nothing holds the deliveries of a copy': (database) =>
    database.query(
      "create or replace function private.is_held() returns boolean language plpgsql stable set search_path = '' as $$ begin return false; end $$",
    ),
  'a dump is restored without its installation': (database) => database.query('delete from private.installations'),
}

/** @returns whether nothing is wrong; of broken ones, whether each was noticed. */
export async function proveUpgrade(folder: string, seed: number, isDoubted: boolean, only = ''): Promise<boolean> {
  const say = (line: string) => console.log(`  ${line}`)
  const steps = stepsSinceBaseline()
  if (typeof steps === 'string') console.log(`Not upgraded: ${steps}.`)
  const rolling = typeof steps === 'string' ? [] : steps
  let rounds = 0
  const roll = (through: Step[], migrations: ExtraMigration[], writes: number) =>
    inFolder(join(folder, `upgrade${rounds++}`), (path) =>
      rollThrough(path, through, {
        seed,
        writes,
        extra: migrations,
        ...(isDoubted ? { isSmall: true } : { say }),
      }),
    )
  const restoring = (round: Partial<Restoring>) =>
    inFolder(join(folder, `restore${rounds++}`), async (path) => {
      const dataDir = await databaseWith(path, migrationFiles())
      return restoreElsewhere(dataDir, path, { seed, writes: 40, ...(isDoubted ? {} : { say }), ...round })
    })

  if (isDoubted) {
    const noticed = async (round: Promise<{ problems: Problem<string>[] }>) => {
      const found = (await round).problems.filter(({ rule }) => rule !== 'log')
      return new Set(found.map(({ rule }) => rule))
    }
    const broken = {
      ...mapped(brokenMigrations, (migrations) => () => noticed(roll([], migrations, 20))),
      ...mapped(brokenCopies, (mutate) => () => noticed(restoring({ mutate }))),
    }
    return doubt(broken, only)
  }

  console.log(`Seed ${seed}. Again: npm run prove -- --upgrade --seed ${seed}`)
  const problems: Problem<string>[] = []
  const upgraded = await roll(rolling, rehearsal, 60)
  for (const [what, times] of [...upgraded.tally].toSorted()) console.log(`${String(times).padStart(7)}  ${what}`)
  console.log(
    `${migrationFiles().length - 1} migrations since the baseline in ${rolling.length} upgrades, and one that is rehearsed, tried again ${upgraded.retries} times: ` +
      `${upgraded.calls} calls (${JSON.stringify(upgraded.outcomes)}), ${upgraded.notifications} webhooks received, ${upgraded.rows} rows in the end.`,
  )
  problems.push(...upgraded.problems)
  for (const over of [false, true]) {
    const report = await restoring({ over })
    console.log(
      `A dump of ${report.calls} calls, with ${report.pending} to send, restored ${over ? 'over an installation that has run' : 'into an empty cluster'}: ` +
        `${report.sent} after the release.`,
    )
    problems.push(...report.problems)
  }
  return conclude(problems.map(lineOf))
}

const mapped = <T, U>(all: Record<string, T>, of: (one: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(all).map(([name, one]) => [name, of(one)]))

async function inFolder<T>(path: string, work: (path: string) => Promise<T>): Promise<T> {
  await mkdir(path)
  try {
    return await work(path)
  } finally {
    await rm(path, { recursive: true, force: true })
  }
}
