// `npm run evaluate`: plays the errands with a model that the environment names, or serves them to be played by hand. See README.md.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { serveApp } from '../../scripts/support/serve-app.ts'
import { confirmationsOfKeys } from '../../src/local/admin.ts'
import { startEmbeddedStack } from '../../src/local/stack.ts'
import { createLog } from '../../src/process/log.ts'
import { stopSignal, untilAborted } from '../../src/process/stop-signals.ts'
import { countTokens } from '../support/tokens.ts'
import { costOf, median } from './cost.ts'
import { errands } from './errands/index.ts'
import type { Database } from './organisation.ts'
import { choose, type Model, play } from './play.ts'
import { arrange, judge, type Round, walk } from './round.ts'
import { serveErrands, type Verdict } from './serve.ts'
import { openSession, type Turn } from './session.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: 'boolean', default: false },
    errand: { type: 'string' },
    wording: { type: 'string' },
    serve: { type: 'string' },
    check: { type: 'string' },
    again: { type: 'string' },
    shortest: { type: 'boolean', default: false },
    confirmations: { type: 'string', default: 'asked' },
  },
})
const help = `Usage: npm run evaluate -- [options]

Gives a model the errands of an organiser (test/evaluation/errands), each in three wordings, and judges what
became of the data and what the model answered. Starts an Usher of its own, which sends nothing.

  (none)                  Plays with the model that EVALUATE_URL (of chat completions), EVALUATE_MODEL and
                          EVALUATE_KEY name. Takes as long as the model does.
  --shortest              Walks the shortest path of each errand instead, without a model. 20 seconds.
  --errand NAME           Only this errand.
  --wording N             Only this wording, 1 to 3.
  --confirmations WHICH   asked: a person confirms what cannot be undone (default). none: nobody is asked.

Play by hand, or with an agent that has a shell
  --serve PORT                           Prints an address, a key and words for each errand; runs until stopped.
  --check PORT NAME N 'ANSWER'           Judges one errand; with - the answer is read from standard input.
  --check PORT                           Judges all that were played.
  --again PORT NAME N                    Arranges one again.

Each line printed: right or WRONG, calls, refused calls, bytes, tokens, errand and wording.`

const confirmations = confirmationsOfKeys.find((which) => which === values.confirmations)
const wording = values.wording === undefined ? undefined : Number(values.wording)

try {
  await run()
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}

async function run(): Promise<void> {
  if (values.help) return console.log(help)
  if (confirmations === undefined) throw new Error(`--confirmations is one of ${confirmationsOfKeys.join(', ')}.`)
  if (values.serve !== undefined) await serve(Number(values.serve))
  else if (values.again !== undefined)
    console.log(JSON.stringify(await ask(values.again, `again/${positionals.join('/')}`)))
  else if (values.check !== undefined) await check(values.check)
  else await playAll()
}

/** Until it is stopped. */
async function serve(port: number): Promise<void> {
  const stopping = stopSignal(() => process.exit(1))
  await withUsher(async (database, apiUrl) => {
    const served = await serveErrands(errands, { database, apiUrl, port, ...(confirmations && { confirmations }) })
    console.log(JSON.stringify(served.entries(), null, 2))
    console.error(`${served.entries().length} errands are served: --check ${port} ERRAND WORDING ANSWER judges one.`)
    await untilAborted(stopping)
    await served.close()
  })
}

async function check(port: string): Promise<void> {
  const [name, number, ...words] = positionals
  if (name === undefined) {
    const verdicts = (await ask(port, 'verdicts')) as Verdict[]
    for (const verdict of verdicts) print(verdict)
    summarise(verdicts)
    return
  }
  const answer = words[0] === '-' ? await text(process.stdin) : words.join(' ')
  const verdict = (await ask(port, `verdicts/${name}/${number}`, words.length > 0 ? answer : undefined)) as Verdict
  print(verdict)
  for (const { tool, args, isError } of verdict.made)
    console.log(`  ${tool} ${JSON.stringify(args)}${isError ? ' (refused)' : ''}`)
  process.exitCode = verdict.right ? 0 : 1
}

async function ask(port: string, path: string, body?: string): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}/${path}`, body === undefined ? {} : { method: 'POST', body })
  const answer = await response.json()
  if (!response.ok) throw new Error((answer as { error: string }).error)
  return answer
}

async function playAll(): Promise<void> {
  const model = values.shortest ? undefined : modelOfEnvironment()
  // By its shortest path an errand is the same whatever its words.
  const chosen = choose(errands, values.errand, values.shortest ? 1 : wording)
  const stopping = stopSignal(() => process.exit(1))
  await withUsher(async (database, apiUrl) => {
    const verdicts: Verdict[] = []
    for (const one of chosen) {
      if (stopping.aborted) break
      const round = await arrange(one.errand, database, apiUrl, confirmations)
      if (verdicts.length === 0) await printList(apiUrl, round.key)
      const { turns, wrong, asked } = await (model === undefined
        ? { ...(await walk(database, round, apiUrl)), asked: false }
        : playAndJudge(model, database, round, one.wording, apiUrl))
      const refused = turns.filter(({ isError }) => isError).length
      const verdict = {
        errand: one.errand.name,
        wording: one.wording,
        right: wrong.length === 0,
        wrong,
        refused,
        asked,
        ...costOf(turns),
        made: turns,
      }
      verdicts.push(verdict)
      print(verdict)
    }
    summarise(verdicts)
  })
}

async function playAndJudge(
  model: Model,
  database: Database,
  round: Round,
  wording: number,
  apiUrl: string,
): Promise<{ turns: Turn[]; wrong: string[]; asked: boolean }> {
  try {
    const { turns, answer, asked } = await play(model, database, round, wording, apiUrl)
    return { turns, wrong: await judge(database, round, answer), asked }
  } catch (error) {
    // The endpoint of the model fails at times: the other errands go on.
    return { turns: [], wrong: [(error as Error).message], asked: false }
  }
}

function modelOfEnvironment(): Model {
  const { EVALUATE_URL: url, EVALUATE_MODEL: name, EVALUATE_KEY: key } = process.env
  if (url === undefined || name === undefined) {
    console.error(
      'Set EVALUATE_URL (of chat completions), EVALUATE_MODEL and, if it wants one, EVALUATE_KEY; or see --serve in test/evaluation/README.md.',
    )
    process.exit(2)
  }
  return { url, name, key }
}

/** Runs an Usher on a data directory of its own, without a courier: nothing is sent. */
async function withUsher(work: (database: Database, apiUrl: string) => Promise<void>): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'usher-errands-'))
  try {
    const stack = await startEmbeddedStack({ dataDir, progress: () => {} })
    const database = new pg.Pool({ connectionString: stack.databaseUrl, max: 2 })
    const app = await serveApp({ dataApiUrl: stack.dataApiUrl, jwtSecret: stack.jwtSecret, log: createLog('error') })
    try {
      await work(database, app.url)
    } finally {
      await app.close()
      await database.end()
      await stack.stop()
    }
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
}

async function printList(apiUrl: string, key: string): Promise<void> {
  const session = await openSession(apiUrl, key)
  const tools = await session.tools()
  await session.close()
  console.log(
    `${tools.length} tools, ${countTokens(JSON.stringify(tools) + session.instructions)} tokens with the instructions\n`,
  )
}

function print({ right, calls, refused, bytes, tokens, errand, wording, wrong, asked }: Verdict): void {
  const figures = [calls, refused, bytes, tokens].map((figure) => String(figure).padStart(6)).join('')
  console.log(`${right ? 'right' : 'WRONG'} ${figures}  ${errand} ${wording}${asked ? ' (asked first)' : ''}`)
  for (const sentence of wrong) console.log(`        ${sentence}`)
}

function summarise(verdicts: readonly Verdict[]): void {
  const right = verdicts.filter((verdict) => verdict.right)
  const atOnce = right.filter(({ refused }) => refused === 0)
  const [calls, bytes, tokens] = (['calls', 'bytes', 'tokens'] as const).map((figure) =>
    median(verdicts.map((verdict) => verdict[figure])),
  )
  console.log(`
columns: calls, of them refused, bytes, tokens
right ${right.length} of ${verdicts.length}, without a refused call ${atOnce.length}
median: ${calls} calls, ${bytes} bytes, ${tokens} tokens`)
}
