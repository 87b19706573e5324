// Stopping as a person does it, in a terminal and through npm: the signal comes twice, from the terminal and from npm. However
// often it comes, everything ends and no child is left. `npm run bench:stop` shows how long it takes.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, describe, expect, test } from 'vitest'
import { copyDataDirectory } from '../support/data-directory.ts'
import { hasTerminals, openTerminal, type Terminal } from '../support/pseudo-terminal.ts'
import {
  cleanUp,
  end,
  environment,
  familyOf,
  freePort,
  identityOf,
  processesOn,
  repository,
  runningAmong,
  serversOf,
  spawnUsher,
  startUsher,
  statOf,
  temporaryFolder,
  waitFor,
} from './support.ts'

const ctrlC = '\x03'

// Tests that run beside one another have no hook of their own.
const terminals: Terminal[] = []
afterAll(async () => {
  await Promise.all(terminals.map(({ child }) => end(child)))
  await cleanUp()
})

const dataDirOfItsOwn = () => copyDataDirectory(join(temporaryFolder(), 'data'))

async function npmStart(dataDir: string): Promise<Terminal> {
  const env = environment(dataDir, { PORT: String(await freePort()) })
  const terminal = openTerminal('npm start', { cwd: repository, env })
  terminals.push(terminal)
  return terminal
}

/** The process group that Ctrl-C reaches, by the pid of Usher. */
function groupOf(dataDir: string): number {
  const { usher } = JSON.parse(readFileSync(join(dataDir, 'running.json'), 'utf8')) as { usher: { pid: number } }
  return Number(statOf(usher.pid)[2])
}

/** Npm may go before Usher does. A run that was ended rather than stopped leaves its record. */
async function expectNothingLeft(dataDir: string): Promise<void> {
  const record = join(dataDir, 'running.json')
  await waitFor(() => processesOn(dataDir).length === 0 && !existsSync(record))
}

// A machine of continuous integration has to have one, or these tests would be skipped without anybody noticing.
describe.skipIf(!hasTerminals && process.env.CI !== 'true')('in a terminal, through npm start', () => {
  const ways: [string, (terminal: Terminal, dataDir: string) => Promise<void>][] = [
    [
      'two Ctrl-C',
      async (terminal) => {
        terminal.type(ctrlC)
        await sleep(100)
        terminal.type(ctrlC)
      },
    ],
    [
      'two SIGTERM to the process group',
      async (_, dataDir) => {
        const group = groupOf(dataDir)
        process.kill(-group, 'SIGTERM')
        await sleep(20)
        process.kill(-group, 'SIGTERM')
      },
    ],
    ['closing the terminal', async (terminal) => void terminal.child.kill('SIGKILL')],
  ]

  test.concurrent.each(ways)('%s ends everything and leaves no child', async (_, stop) => {
    const dataDir = await dataDirOfItsOwn()
    const terminal = await npmStart(dataDir)
    await waitFor(() => terminal.screen().includes('Usher is ready'))
    expect(runningAmong(serversOf(dataDir))).toHaveLength(2)
    await stop(terminal, dataDir)
    await expectNothingLeft(dataDir)
    await terminal.ended
  })

  test.concurrent('two Ctrl-C while it starts end everything and leave no child', async () => {
    const dataDir = await dataDirOfItsOwn()
    const terminal = await npmStart(dataDir)
    await waitFor(() => terminal.screen().includes('Starting PostgREST'))
    terminal.type(ctrlC)
    await sleep(50)
    terminal.type(ctrlC)
    await expectNothingLeft(dataDir)
    await terminal.ended
  })
})

describe.runIf(process.platform === 'linux')('a stop that takes its time', () => {
  /** Usher whose children do not heed anything but SIGKILL. */
  async function startSuspended() {
    const dataDir = await dataDirOfItsOwn()
    const { child, stderr, ended } = await startUsher({ dataDir, env: { LOG_LEVEL: 'silent' } })
    const servers = serversOf(dataDir)
    for (const { pid } of servers) for (const one of familyOf(pid)) process.kill(one, 'SIGSTOP')
    return { dataDir, child, stderr, ended, servers }
  }

  test.concurrent('with Postgres and PostgREST suspended, SIGTERM ends all of them', async () => {
    const { dataDir, child, servers, ended } = await startSuspended()
    child.kill('SIGTERM')
    await ended
    expect(runningAmong(servers)).toEqual([])
    expect(processesOn(dataDir)).toEqual([])
  })

  test.concurrent('a second signal within five seconds changes nothing, one later forces it, and leaves no child', async () => {
    const { dataDir, child, servers, stderr, ended } = await startSuspended()
    child.kill('SIGTERM')
    await sleep(2_000)
    child.kill('SIGTERM')
    await sleep(200)
    expect(runningAmong([identityOf(child)])).toHaveLength(1)
    expect(stderr()).not.toContain('Stopping at once')
    await sleep(3_000)
    child.kill('SIGTERM')
    expect(await ended).toMatchObject({ code: 1, signal: null })
    expect(stderr()).toContain('Stopping at once')
    expect(runningAmong(servers)).toEqual([])
    expect(processesOn(dataDir)).toEqual([])
  })
})

test('usher courier stops cleanly, however often it is told to', async () => {
  const dataDir = await dataDirOfItsOwn()
  const started = await startUsher({ dataDir })
  const courier = spawnUsher(['courier'], { dataDir })
  await waitFor(() => courier.stdout().includes('The courier is ready'))
  for (let i = 0; i < 5; i += 1) {
    courier.child.kill(i % 2 === 0 ? 'SIGINT' : 'SIGTERM')
    await sleep(5)
  }
  expect(await courier.ended).toMatchObject({ code: 0, signal: null })
  await end(started.child)
})
