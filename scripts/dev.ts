// `npm run dev`: keeps Postgres and PostgREST running and starts the API again whenever a file of src/ changes. With --fresh
// on a temporary data directory. Must leave no process behind, however it ends: the API ends with the channel to it.

import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync, watch } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError, isForThisMachine, readConfig } from '../src/cli/config.ts'
import { openListener } from '../src/http/listener.ts'
import { withDatabase } from '../src/local/admin.ts'
import { describeDemo, seedDemo } from '../src/local/demo.ts'
import { startEmbeddedStack } from '../src/local/stack.ts'
import { StartError } from '../src/process/start-error.ts'
import { stopSignal, untilAborted } from '../src/process/stop-signals.ts'

// Editors write a file in several steps.
const settleMs = 50
const root = join(import.meta.dirname, '..')
const say = (text: string): void => void process.stderr.write(`${text}\n`)

async function dev(): Promise<void> {
  const stopping = stopSignal(() => process.exit(1))
  const config = readConfig(process.env)
  if (config.database.kind === 'supabase')
    throw new StartError('npm run dev uses the embedded stack: unset SUPABASE_URL.')

  // A taken port is found before a database is started for it.
  await (await openListener(config)).close()
  const stack = await startEmbeddedStack({ dataDir: config.database.dataDir, progress: say })
  const { host, port } = config
  stack.note({ api: { host, port, forThisMachine: isForThisMachine(config) } })
  const demo = await withDatabase(stack.databaseUrl, seedDemo)
  if (demo) say(describeDemo(`http://${host}:${port}`, demo))

  const api = keepApiRunning()
  onChange('src', (file) => api.restart(`${file} changed.`))
  onChange('supabase', (file) => {
    if (file.endsWith('.sql')) say(`${file} changed: see "Try changed SQL" in docs/contribute/README.md.`)
  })

  const failure = await Promise.race([stack.failed, untilAborted(stopping).then(() => null)])
  say(failure ?? 'Stopping …')
  await api.stop()
  await stack.stop()
  process.exitCode = failure === null ? 0 : 1
}

/** Restarts follow one another: two changes in a row never start two. */
function keepApiRunning() {
  let child = startApi()
  let turn = Promise.resolve()
  let pending = false
  let stopped = false
  return {
    restart(reason: string) {
      if (pending || stopped) return
      pending = true
      say(`${reason} Restarting the API …`)
      turn = turn.then(async () => {
        await end(child)
        pending = false
        if (!stopped) child = startApi()
      })
    },
    async stop() {
      stopped = true
      await turn
      await end(child)
    },
  }
}

function startApi(): ChildProcess {
  const child = fork(join(root, 'scripts/dev-api.ts'), { cwd: root })
  child.on('exit', (code, signal) => {
    if (code !== 0 && signal === null) say('The API ended. The next change starts it again.')
  })
  return child
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}

function onChange(folder: string, changed: (file: string) => void): void {
  let timer: NodeJS.Timeout | undefined
  watch(join(root, folder), { recursive: true }, (_, name) => {
    // Not the backups and swap files of editors.
    if (name === null || !/\.(ts|js|json|css|html|svg|sql)$/.test(name)) return
    clearTimeout(timer)
    timer = setTimeout(() => changed(join(folder, name)), settleMs)
  }).unref()
}

process.chdir(root)
if (existsSync('.env')) process.loadEnvFile('.env')
if (process.argv.includes('--fresh')) {
  const folder = mkdtempSync(join(tmpdir(), 'usher-dev-'))
  process.env.USHER_DATA_DIR = folder
  say(`USHER_DATA_DIR=${folder}, removed at the end.`)
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
}
try {
  await dev()
  process.exit()
} catch (error) {
  if (!(error instanceof ConfigError || error instanceof StartError)) throw error
  say(error.message)
  process.exit(error instanceof ConfigError ? 2 : 1)
}
