// The API as a process of its own, as `usher start` runs it, of which memory and handles can be measured.

import { once } from 'node:events'
import { join } from 'node:path'
import { freePort } from '../../../src/local/ports.ts'
import { startEmbeddedStack } from '../../../src/local/stack.ts'
import { spawnProgram, untilHealthy } from '../stack.ts'
import type { Measured, Target } from './hostile.ts'

export type ApiProcess = Target & Required<Pick<Target, 'measure' | 'complaints'>> & { stop(): Promise<void> }

/** @param dataDir a data directory whose database is migrated. */
export async function startApiProcess(dataDir: string): Promise<ApiProcess> {
  const stack = await startEmbeddedStack({ dataDir, progress: () => {} })
  const port = await freePort()
  const gauge = join(import.meta.dirname, 'gauge.ts')
  const child = spawnProgram(['--expose-gc', '--import', gauge, 'scripts/dev-api.ts'], {
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    // Stages are set from addresses of their own: signing in is limited by address.
    env: { USHER_DATA_DIR: dataDir, PORT: `${port}`, DELIVERIES: 'false', LOG_LEVEL: 'error', TRUST_PROXY: 'true' },
  })
  const kill = () => void child.kill('SIGKILL')
  process.once('exit', kill)
  const ended = once(child, 'exit')
  let said = ''
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const apiUrl = `http://127.0.0.1:${port}`
  await untilHealthy(apiUrl, () => child.exitCode !== null).catch((error) => {
    throw new Error(`${error.message} ${said}`)
  })

  return {
    apiUrl,
    databaseUrl: stack.databaseUrl,
    async measure() {
      // One that has ended measures nothing, and complaints() says so.
      if (!child.connected) return undefined
      const answered = once(child, 'message', { signal: AbortSignal.timeout(60_000) })
      child.send('measure', () => {})
      const [measured] = await Promise.race([answered, ended.then(() => [undefined])])
      return measured as Measured | undefined
    },
    complaints() {
      const lines = said.split('\n').filter((line) => /"level":[56]0|^\s+at |Error/.test(line))
      const gone =
        child.exitCode === null && child.signalCode === null ? [] : [`the API has ended: ${said.slice(-2_000)}`]
      return [...gone, ...lines.map((line) => `logged: ${line.slice(0, 1_000)}`)]
    },
    async stop() {
      process.off('exit', kill)
      child.kill('SIGKILL')
      await ended
      await stack.stop()
    },
  }
}
