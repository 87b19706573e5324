// `npm run evaluate`: serves the errands to whatever client plays them, and judges what became of them. See README.md.

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
import { arrange, walk } from './round.ts'
import { serveErrands, type Verdict } from './serve.ts'
import { openSession } from './session.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    help: { type: 'boolean' },
    errand: { type: 'string' },
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

  --serve PORT                           Prints an address, a key and words for each errand, to be played by a
                                         model in any MCP client; runs until stopped.
  --check PORT NAME N 'ANSWER'           Judges one errand; with - the answer is read from standard input.
  --check PORT                           Judges all that were played.
  --again PORT NAME N                    Arranges one again.
  --confirmations WHICH                  asked: a person confirms what cannot be undone (default). none: nobody.
  --shortest                             Walks the shortest path of each errand, without a model. 20 seconds.
  --errand NAME                          Only this errand.

Each line printed: right or WRONG, calls, refused calls, bytes, tokens, errand and wording.`

const confirmations = confirmationsOfKeys.find((which) => which === values.confirmations)
const chosen = errands.filter(({ name }) => values.errand === undefined || name === values.errand)

try {
  await run()
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
}

async function run(): Promise<void> {
  if (confirmations === undefined) throw new Error(`--confirmations is one of ${confirmationsOfKeys.join(', ')}.`)
  if (values.serve !== undefined) await serve(Number(values.serve))
  else if (values.again !== undefined)
    console.log(JSON.stringify(await ask(values.again, `again/${positionals.join('/')}`)))
  else if (values.check !== undefined) await check(values.check)
  else if (values.shortest) await walkAll()
  else console.log(help)
}

/** Until it is stopped. */
async function serve(port: number): Promise<void> {
  const stopping = stopSignal(() => process.exit(1))
  await withUsher(async (database, apiUrl) => {
    const served = await serveErrands(chosen, { database, apiUrl, port, ...(confirmations && { confirmations }) })
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

async function walkAll(): Promise<void> {
  const stopping = stopSignal(() => process.exit(1))
  await withUsher(async (database, apiUrl) => {
    const verdicts: Verdict[] = []
    for (const errand of chosen) {
      if (stopping.aborted) break
      const round = await arrange(errand, database, apiUrl, confirmations)
      if (verdicts.length === 0) await printList(apiUrl, round.key)
      const { turns, wrong } = await walk(database, round, apiUrl)
      const refused = turns.filter(({ isError }) => isError).length
      const right = wrong.length === 0
      verdicts.push({ errand: errand.name, wording: 1, right, wrong, refused, ...costOf(turns), made: turns })
      print(verdicts.at(-1) as Verdict)
    }
    summarise(verdicts)
  })
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

function print({ right, calls, refused, bytes, tokens, errand, wording, wrong }: Verdict): void {
  const figures = [calls, refused, bytes, tokens].map((figure) => String(figure).padStart(6)).join('')
  console.log(`${right ? 'right' : 'WRONG'} ${figures}  ${errand} ${wording}`)
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
