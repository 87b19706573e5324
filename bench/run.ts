// `npm run bench`: measures Usher beside its baselines. `npm run bench -- --help` explains the options and the tables.

import { cpus } from 'node:os'
import { resolve } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import type { Effort } from './compare.ts'
import { printOutcome } from './report.ts'
import { scenarios } from './scenarios/index.ts'
import { stopAll } from './stack.ts'

const reading = `
Scenarios:
${scenarios.map(({ name, question }) => `  ${name.padEnd(20)}${question}`).join('\n')}

Subjects, each on a stack of its own:
  usher               Usher over REST
  postgrest           PostgREST called directly with a ready token, as a client of Supabase calls it
  base                Usher of another checkout (--base)
  hosted              Usher in front of a Data API 20 ms away; "hosted base": the same of another checkout

How to read a table:
  A figure is the median over the rounds, with the lowest and the highest in brackets. Subjects take turns in each
  round, so other load on the machine meets all of them: trust the ratios below a table more than its figures.
  node, postgrest, postgres and load are CPU time for each answer in ms (Linux): of the process that answers HTTP, of
  PostgREST, of Postgres with all connections, and of the load generator, which shares the machine with the subject.
  After the load the database is counted: acknowledged writes that are missing (lost), writes that are there twice
  (duplicated), tickets beyond the quantity (oversold), and free places of a sale that sold out (unsold).

Exit code: 1 if such a count is not 0. A missed target is printed only.
Leave the machine idle otherwise: an API is one process, and loses more to other load than PostgREST does.
Fewer than 3 rounds of 3 seconds show only that a scenario works.`

const positive = (text: string): number => {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('It must be a positive integer.')
  return Number(text)
}

const names = (text: string): string[] => {
  const chosen = text.split(',')
  const unknown = chosen.filter((name) => !scenarios.some((scenario) => scenario.name === name))
  if (unknown.length > 0) throw new InvalidArgumentError(`Unknown: ${unknown.join(', ')}.`)
  return chosen
}

const program = new Command('npm run bench --')
  .description('Measures Usher beside PostgREST called directly and beside another checkout.')
  .option('--scenario <names>', 'some scenarios, with commas between them; default: all', names)
  .option('--rounds <n>', 'turns of each subject', positive, 5)
  .option('--seconds <n>', 'length of each turn', positive, 5)
  .option('--rows <n>', 'rows of the larger database of reads-and-lists', positive, 1_000_000)
  .option('--base <directory>', 'another checkout to compare with', (directory) => resolve(directory))
  .addHelpText('after', reading)
  .parse()
const { scenario: chosen, ...effort } = program.opts<Effort & { scenario?: string[] }>()

const interrupted = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => reject(new Error(`Ended by ${signal}.`)))
})
interrupted.catch(() => {})

const machine = `${cpus().length} × ${cpus()[0]?.model}, Node ${process.version}`
console.log(
  `${new Date().toISOString().slice(0, 10)}, ${machine}; rounds: ${effort.rounds}, seconds: ${effort.seconds}`,
)
let isFaulty = false
for (const { name, question, run } of scenarios.filter(({ name }) => chosen?.includes(name) ?? true)) {
  console.log(`\n${name}: ${question}`)
  try {
    const outcome = await Promise.race([run(effort), interrupted])
    printOutcome(outcome)
    isFaulty ||= Object.values(outcome.faults).some((n) => n > 0)
  } finally {
    await stopAll()
  }
}
process.exit(isFaulty ? 1 : 0)
