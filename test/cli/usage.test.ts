// What the command line says when it is asked for help, asked for nonsense, or nothing runs. Data goes to standard output,
// everything else to standard error; 1 means it failed, 2 that the command or the configuration is wrong.

import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { readConfig } from '../../src/cli/config.ts'
import { start } from '../../src/cli/start.ts'
import { StartError } from '../../src/process/start-error.ts'
import { cleanUp, temporaryFolder, usher, usherProcess } from './support.ts'

let dataDir: string
beforeAll(() => {
  dataDir = join(temporaryFolder(), 'data')
})
afterAll(cleanUp)

const key = (...more: string[]) => ['keys', 'create', '--organisation', 'demo', '--name', 'x', ...more]

// What `run` returns has to become the exit code, and what is printed has to come out.
describe.concurrent('as a process', () => {
  test.each<[string[], number, 'stdout' | 'stderr', RegExp]>([
    [['--help'], 0, 'stdout', /^Usage: usher[\s\S]+First steps:[\s\S]+\$ usher start/],
    [['--version'], 0, 'stdout', /^0\.\d+\.\d+\n$/],
    [['strat'], 2, 'stderr', /unknown command 'strat'/],
    [['db-url'], 1, 'stderr', /^No Usher runs on .+\. Start it with: npm start/],
  ])('%j ends with %i', async (args, code, stream, said) => {
    const outcome = await usherProcess(args, dataDir)
    expect(outcome).toMatchObject({ code, signal: null, stdout: '', stderr: '', [stream]: expect.stringMatching(said) })
  })
})

test.each([
  ['ExperimentalWarning', /^$/],
  ['DeprecationWarning', /^\(node:\d+\) DeprecationWarning: of a test\n/],
])('an %s of Node is printed as %s', async (name, printed) => {
  const warn = `process.once('beforeExit',()=>process.emitWarning('of%20a%20test','${name}'))`
  const { stderr } = await usherProcess(['--version'], dataDir, {
    NODE_OPTIONS: `--import=data:text/javascript,${warn}`,
  })
  expect(stderr).toMatch(printed)
})

test.each([['start'], ['courier']])(
  '%s says at once that Node would send calls on this machine to a proxy',
  async (command) => {
    const proxied = { HTTP_PROXY: 'http://127.0.0.1:9', NODE_USE_ENV_PROXY: '1' }
    const { code, stdout, stderr } = await usherProcess([command], dataDir, proxied)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(
      /^HTTP_PROXY and NODE_USE_ENV_PROXY are set, .+ Set NO_PROXY=127\.0\.0\.1,localhost as well\.\n$/,
    )
    expect(existsSync(dataDir)).toBe(false)
  },
)

/** Of the command line, as its help names them: those below a command, and below those. */
async function commandsBelow(path: string[]): Promise<string[][]> {
  const { code, stdout, stderr } = await usher([...path, '--help'], dataDir)
  expect([code, stderr]).toEqual([0, ''])
  const [, listed = ''] = stdout.split('\nCommands:\n')
  const names = [...listed.matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name = '']) => name)
  const below = names.filter((name) => name !== 'help').map((name) => commandsBelow([...path, name]))
  return [path, ...(await Promise.all(below)).flat()]
}

test('every command explains itself on standard output, in a sentence', async () => {
  const commands = await commandsBelow([])
  expect(commands.map((path) => path.join(' '))).toEqual(
    expect.arrayContaining(['start', 'courier', 'doctor', 'db-url', 'import', 'door-link', 'keys rotate']),
  )
  for (const path of commands) {
    const { stdout } = await usher([...path, '--help'], dataDir)
    expect(stdout).toMatch(new RegExp(`^Usage: ${['usher', ...path].join(' ')} .*\n\n[A-Z].+`))
  }
})

describe.concurrent('a wrong command', () => {
  test.each([
    [[], /Usage: usher/],
    [['start', '--port', '80'], /unknown option '--port'/],
    [key('--scopes', 'events:read,events:delete'), /events:delete.*Allowed: all, events:read/],
    [key(), /--scopes/],
    [key('--scopes', 'all', '--expires', 'tomorrow'), /such as 90d, 24h/],
    [['keys', 'list'], /--organisation/],
    [['keys', 'revoke'], /'key'/],
    [['keys', 'rotate', 'usher_live_abcdefgh', '--overlap', '24'], /such as 90d, 24h/],
    [['organisations', 'create', '--name', 'Acme'], /--slug/],
  ])('%j ends with 2 and says on standard error what is wrong', async (args, complaint) => {
    const { code, stdout, stderr } = await usher(args, dataDir)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(complaint)
    expect(stderr).not.toMatch(/^ +at /m)
  })
})

describe.concurrent('a wrong configuration', () => {
  test.each([
    [{ PORT: 'http' }, /^PORT must be a port number from 0 to 65535\.\n$/],
    [{ PORT: '70000', LOG_LEVEL: 'loud' }, /^PORT .+\.\nLOG_LEVEL .+\.\n$/],
    [
      { SUPABASE_URL: 'http://127.0.0.1:9', SUPABASE_JWT_SECRET: 'x'.repeat(32), SUPABASE_PUBLISHABE_KEY: 'x' },
      /^SUPABASE_PUBLISHABLE_KEY must be set/,
    ],
  ])('%j ends `usher start` with 2, naming each variable', async (env, complaint) => {
    const { code, stdout, stderr } = await usher(['start'], dataDir, env)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(complaint)
  })

  // Found by the start itself.
  test('two listeners on one port end it with 2 as well, after the warning', async () => {
    const env = { PORT: '3000', METRICS_PORT: '3000', TRUST_PROXY: 'true' }
    const { code, stdout, stderr } = await usherProcess(['start'], dataDir, env)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^Warning: TRUST_PROXY=true .+\nMETRICS_PORT and PORT are both 3000\. .+\n$/)
  })

  test('a command that needs the database says which variable is missing beside SUPABASE_URL', async () => {
    const env = {
      SUPABASE_URL: 'http://127.0.0.1:54321',
      SUPABASE_PUBLISHABLE_KEY: 'x',
      SUPABASE_JWT_SECRET: 'x'.repeat(32),
    }
    const { code, stdout, stderr } = await usher(['keys', 'list', '--organisation', 'demo'], dataDir, env)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(/^DATABASE_URL must be set with SUPABASE_URL/)
  })
})

describe.concurrent('with nothing running', () => {
  test.each([
    [['organisations', 'create', '--name', 'Acme', '--slug', 'acme']],
    [['keys', 'list', '--organisation', 'demo']],
  ])('%j ends with 1 and says how to start it', async (args) => {
    const { code, stdout, stderr } = await usher(args, dataDir)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^No Usher runs on .+\. Start it with: npm start/)
  })

  test('a database that cannot be reached is said to be so, without its password', async () => {
    const env = { DATABASE_URL: 'postgresql://postgres:hunter2@127.0.0.1:9/postgres' }
    const { code, stdout, stderr } = await usher(['keys', 'list', '--organisation', 'demo'], dataDir, env)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^Cannot connect to the database: /)
    expect(stderr).not.toContain('hunter2')
  })
})

test('a taken port ends the start with 1 before anything else is begun, and names PORT', async () => {
  const squatter = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => squatter.once('listening', resolve))
  onTestFinished(() => void squatter.close())
  const { port } = squatter.address() as { port: number }

  const { code, stdout, stderr } = await usherProcess(['start'], dataDir, { PORT: String(port) })
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toBe(`Another program uses port ${port} on 127.0.0.1. Stop it, or set PORT to a free port.\n`)
})

test.each([
  [
    'a host that is no address of this machine',
    { HOST: '203.0.113.1' },
    /^HOST 203\.0\.113\.1 is not an address of this machine\./,
  ],
  ['a Redis that is away', { REDIS_URL: 'redis://127.0.0.1:9' }, /^REDIS_URL cannot be reached/],
])('%s ends the start before anything else is begun, and is named', async (_, env, complaint) => {
  const config = readConfig({ USHER_DATA_DIR: dataDir, PORT: '0', ...env })
  const error = await start(config, pino({ level: 'silent' }), () => {}).catch((error) => error)
  expect(error).toBeInstanceOf(StartError)
  expect(error.message).toMatch(complaint)
  expect(existsSync(dataDir)).toBe(false)
})
