// npm run prove -- [--minutes 1] [--seed 1] [--pause 1] [--history file]
// npm run prove -- --hostile [--requests 100000] [--seed 1] [--only number]
// npm run prove -- --strangers [--seed 1] [--only part]
// npm run prove -- --upgrade [--seed 1] [--mutants [--only name]]
// npm run prove -- --mutants [--only name]
//
// Faults under load, hostile input, what strangers may do and see, upgrades and restores, and broken builds with what noticed each: see
// docs/reliability.md.

import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { appendFile, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { startScratchDatabase } from '../../scripts/support/scratch-database.ts'
import { useTemporaryFolder } from '../../scripts/support/temporary-folder.ts'
import { applyMigrations } from '../../src/local/migrate.ts'
import type { Problem } from './history.ts'
import { proveHostile } from './hostile/report.ts'
import { mutants } from './mutants.ts'
import { patchedTree } from './patched-tree.ts'
import { prove } from './prove.ts'
import { proveStrangers } from './strangers/strangers.ts'
import { proveUpgrade } from './upgrade/main.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: `${Math.floor(Math.random() * 1e6)}` },
    pause: { type: 'string', default: '1' },
    history: { type: 'string' },
    mutants: { type: 'boolean', default: false },
    strangers: { type: 'boolean', default: false },
    only: { type: 'string' },
    hostile: { type: 'boolean', default: false },
    requests: { type: 'string', default: '100000' },
    upgrade: { type: 'boolean', default: false },
  },
})
const seed = Number(values.seed)

if (values.strangers) {
  console.log(`Seed ${seed}. Again: npm run prove -- --strangers --seed ${seed}`)
  const { problems } = await proveStrangers(seed, console.log, values.only)
  console.log(problems.length === 0 ? 'Nothing is wrong.' : problems.join('\n'))
  process.exit(problems.length === 0 ? 0 : 1)
}

const folder = useTemporaryFolder()
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
if (values.upgrade) process.exit((await proveUpgrade(folder, seed, values.mutants, values.only)) ? 0 : 1)
const template = join(folder, 'template')
await mkdir(template)
const database = await startScratchDatabase(new AbortController().signal, template)
await applyMigrations(database.databaseUrl)
await database.stop()
for (const file of ['postgres.port', 'postgres.log']) await rm(join(template, file))
// What outlives a killed process does so without waiting for the disk.
await appendFile(join(template, 'database', 'postgresql.conf'), 'fsync = off\nfull_page_writes = off\n')

async function withDataDirectory<T>(work: (dataDir: string) => Promise<T>): Promise<T> {
  const dataDir = join(folder, 'round')
  await promisify(execFile)('cp', ['-a', template, dataDir])
  try {
    return await work(dataDir)
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

const noticedBy = ({ rule, about }: Problem) =>
  rule === 'invariant' || rule === 'trespass' ? `${rule} "${about}"` : rule

const isRight = await (values.hostile ? meanHarm() : values.mutants ? doubt() : believe())
process.exit(isRight ? 0 : 1)

async function believe(): Promise<boolean> {
  console.log(`Seed ${seed}. Again: npm run prove -- --seed ${seed} --minutes ${values.minutes}`)
  const report = await withDataDirectory((dataDir) =>
    prove(dataDir, {
      seed,
      seconds: Number(values.minutes) * 60,
      pause: Number(values.pause),
      isWhole: true,
      ...(values.history && { historyFile: values.history }),
      say: (line) => console.log(`  ${line}`),
    }),
  )
  for (const [what, times] of [...report.tally].toSorted()) console.log(`${String(times).padStart(7)}  ${what}`)
  console.log(
    `${report.calls} attempts (${JSON.stringify(report.outcomes)}), ${report.faults.length} faults, ${report.copies} requests sent twice; ` +
      `${report.notifications} webhooks and ${report.emails} e-mails received, ${report.repeated} of these more than once; ` +
      `${report.keys} keys lost what they had.`,
  )
  for (const { rule, about, detail } of report.problems.slice(0, 50)) console.log(`${rule}: ${about}: ${detail}`)
  console.log(report.problems.length === 0 ? 'Nothing is wrong.' : `${report.problems.length} problems.`)
  return report.problems.length === 0
}

async function meanHarm(): Promise<boolean> {
  const { only, requests } = values
  const round = { seed, requests: Number(requests), ...(only !== undefined && { only: Number(only) }) }
  return withDataDirectory((dataDir) => proveHostile(dataDir, round, console.log))
}

async function doubt(): Promise<boolean> {
  let isEachCaught = true
  for (const [name, { database: mutate, source, aim }] of Object.entries(mutants)) {
    if (values.only !== undefined && !name.includes(values.only)) continue
    const startedAt = performance.now()
    const by = new Set<string>()
    const tree = source && (await patchedTree(join(folder, 'tree'), source))
    // What clients happen to do in a few seconds on a busy machine may not touch what is broken.
    for (let round = 0; by.size === 0 && round < 3; round++) {
      const how = { seed: seed + round, seconds: 8, pause: 0.5, mutate, tree, aim }
      const report = await withDataDirectory((dataDir) => prove(dataDir, how))
      for (const problem of report.problems) by.add(noticedBy(problem))
    }
    if (tree) await rm(tree, { recursive: true })
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
    isEachCaught &&= by.size > 0
    console.log(`${by.size > 0 ? 'caught ' : 'MISSED '} ${name} (${seconds} s): ${[...by].join('; ') || 'by nothing'}`)
  }
  return isEachCaught
}
