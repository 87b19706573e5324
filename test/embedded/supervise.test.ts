// How often a server that ends by itself is started again, with real processes that live as long as the test says.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { supervise } from '../../src/local/supervise.ts'
import { ending } from '../../src/process/processes.ts'

function launch() {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' })
  const ended = ending(child)
  const stop = async () => {
    child.kill()
    await ended
  }
  onTestFinished(stop)
  return { child, ended, stop }
}

type Options = {
  restartDelaysMs: number[]
  recoveredAfterMs: number
  beforeRestart?: (signal: AbortSignal) => Promise<unknown>
}

function supervised({ beforeRestart = async () => {}, ...options }: Options) {
  const started: ChildProcess[] = []
  const reports: string[] = []
  const start = () => {
    const server = launch()
    started.push(server.child)
    return server
  }
  const { failed, stop } = supervise({
    name: 'Sleep',
    first: start(),
    async restart(signal) {
      await beforeRestart(signal)
      return start()
    },
    report: (message) => reports.push(message),
    ...options,
  })
  const killLast = async () => {
    const count = started.length
    started.at(-1)?.kill('SIGKILL')
    await Promise.race([failed, expect.poll(() => started.length).toBe(count + 1)])
  }
  return { started, reports, failed, stop, killLast }
}

test('one that ends again and again is given up after so many attempts in a row', async () => {
  const { started, reports, failed, killLast } = supervised({ restartDelaysMs: [0, 0], recoveredAfterMs: 60_000 })
  for (let i = 0; i < 3; i += 1) await killLast()
  expect(await failed).toBe('Sleep stopped unexpectedly (signal SIGKILL) and could not be restarted.')
  expect(started).toHaveLength(3)
  expect(reports.filter((report) => report === 'Sleep runs again.')).toHaveLength(2)
})

test('ends that are far apart do not add up', async () => {
  const { started, failed, stop, killLast } = supervised({ restartDelaysMs: [0, 0], recoveredAfterMs: 50 })
  for (let i = 0; i < 6; i += 1) {
    await sleep(60)
    await killLast()
  }
  expect(started).toHaveLength(7)
  expect(await Promise.race([failed, 'no failure'])).toBe('no failure')
  await stop()
  expect(started.map((child) => child.signalCode)).not.toContain(null)
})

test('a restart that is finished after the stop began is ended as well, and the stop with it', async () => {
  const { started, stop, reports } = supervised({
    restartDelaysMs: [0],
    recoveredAfterMs: 60_000,
    beforeRestart: (signal) => once(signal, 'abort'),
  })
  started[0]?.kill('SIGKILL')
  await expect.poll(() => reports).toHaveLength(1)
  // Until the restart waits for it.
  await sleep(50)
  await stop()
  expect(started.map(({ signalCode }) => signalCode)).not.toContain(null)
  expect(reports).toHaveLength(1)
})
