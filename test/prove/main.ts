// The command line of the proofs.

import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'
import { useTemporaryFolder } from '../../scripts/support/temporary-folder.ts'
import type { Problem } from './history.ts'
import { proveHostile } from './hostile/report.ts'
import { mutants } from './mutants.ts'
import { patchedTree } from './patched-tree.ts'
import { prove } from './prove.ts'
import { conclude, doubt, lineOf } from './report.ts'
import { proveStrangers } from './strangers/strangers.ts'
import { proveUpgrade } from './upgrade/main.ts'
import { databaseWith } from './upgrade/rounds.ts'
import { migrationFiles } from './upgrade/versions.ts'

const help = `Usage: npm run prove -- [part] [options]

Proves what docs/contribute/reliability.md promises, against real processes in temporary folders. Every run draws its
choices from a seed. Exits with 0 if nothing is wrong, otherwise with 1.

Parts, and how long each takes on two idle cores
  (none)          Clients write while Postgres, PostgREST, the API, the courier and Redis are killed, stopped and
                  cut off. Then every answer is compared with the database. 1 minute and a half.
  --hostile       Sends malformed and malicious requests, checks each answer, and measures memory. 5 minutes.
  --strangers     Calls everything that a key, a member or nobody must not reach, and measures time. 10 minutes.
  --upgrade       Applies each migration under load, and restores dumps into other clusters. 4 minutes.
  --mutants       Breaks Usher on purpose, and says what notices each fault. 7 minutes; with --upgrade, 2.

Options
  --seed N        Makes the choices of an earlier run again. Default: random. What happens at once may still differ.
  --minutes N     How long the clients write. Default: 1.
  --pause N       Seconds between two faults, on average. Default: 1.
  --history FILE  Appends each attempt of the clients to FILE, one line of JSON each.
  --requests N    How many requests --hostile sends. Default: 100000.
  --only X        --hostile: the request with this number. --strangers: files whose names contain X.
                  --mutants: faults whose names contain X.
  --help          Prints this text.

Repeat a run
  The first line of a run is the command that repeats it. A problem of --hostile names its request:
    npm run prove -- --hostile --seed 7 --only 4711
`

const { values } = parseArgs({
  options: {
    help: { type: 'boolean', default: false },
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

if (values.help) {
  console.log(help)
  process.exit(0)
}
if (values.strangers) {
  console.log(`Seed ${seed}. Again: npm run prove -- --strangers --seed ${seed}`)
  process.exit(conclude((await proveStrangers(seed, console.log, values.only)).problems) ? 0 : 1)
}

const folder = useTemporaryFolder()
process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1))
if (values.upgrade) process.exit((await proveUpgrade(folder, seed, values.mutants, values.only)) ? 0 : 1)
const template = await databaseWith(folder, migrationFiles())

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

const isRight = await (values.hostile ? meanHarm() : values.mutants ? doubtMutants() : believe())
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
  return conclude(report.problems.map(lineOf))
}

function meanHarm(): Promise<boolean> {
  const { only, requests } = values
  const round = { seed, requests: Number(requests), ...(only !== undefined && { only: Number(only) }) }
  return withDataDirectory((dataDir) => proveHostile(dataDir, round, console.log))
}

function doubtMutants(): Promise<boolean> {
  const broken = Object.entries(mutants).map(([name, { database: mutate, source, aim }]) => {
    const run = async () => {
      const by = new Set<string>()
      const tree = source && (await patchedTree(join(folder, 'tree'), source))
      // What clients happen to do in a few seconds on a busy machine may not touch what is broken: then they get more.
      for (let round = 0; by.size === 0 && round < 3; round++) {
        const how = { seed: seed + round, seconds: 8 * 2 ** round, pause: 0.5, mutate, tree, aim }
        const report = await withDataDirectory((dataDir) => prove(dataDir, how))
        for (const problem of report.problems) by.add(noticedBy(problem))
      }
      if (tree) await rm(tree, { recursive: true })
      return by
    }
    return [name, run] as const
  })
  return doubt(Object.fromEntries(broken), values.only)
}
