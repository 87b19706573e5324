// Measures what concurrent bodies of 32,000 unknown fields cost: `node bench/attack-unknown-fields.ts [bodies] [checkout]`. Starts Usher as a
// separate process, so that its memory can be measured, sends 150 such bodies at once, and prints bytes in and out, the peak memory of
// the server, and whether it still answers.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const bodies = Number(process.argv[2] ?? 150)
const checkout = resolve(process.argv[3] ?? join(import.meta.dirname, '..'))
const body = JSON.stringify(
  Object.fromEntries(Array.from({ length: 32_000 }, (_, i) => [i.toString(36).padStart(3, '0'), 1])),
)
const port = 20_000 + (process.pid % 20_000)
const url = `http://127.0.0.1:${port}`

const dataDir = await mkdtemp(join(tmpdir(), 'usher-bench-'))
const server = spawn(process.execPath, ['bin/usher.js', 'start'], {
  cwd: checkout,
  env: { ...process.env, PORT: String(port), USHER_DATA_DIR: dataDir, LOG_LEVEL: 'silent' },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const ended = once(server, 'exit')
try {
  const key = await printedKey()
  const before = await peak()
  const started = performance.now()
  const agent = new Agent({ maxSockets: Number.POSITIVE_INFINITY })
  const answers = await Promise.all(Array.from({ length: bodies }, () => post(key, agent)))
  const seconds = ((performance.now() - started) / 1000).toFixed(1)
  const statuses = Object.entries(Object.groupBy(answers, ({ status }) => status)).map(
    ([s, all]) => `${all?.length} × ${s}`,
  )
  const out = answers.reduce((sum, answer) => sum + answer.bytes, 0)
  console.log(`${bodies} bodies of ${body.length} bytes at once, answered in ${seconds} s: ${statuses.join(', ')}`)
  console.log(`bytes out   ${out}, ${Math.round(out / bodies)} each`)
  console.log(`peak memory ${before} MB before, ${await peak().catch(() => 'unknown')} MB after`)
  const alive = await fetch(`${url}/health`).then(
    (response) => response.ok,
    () => false,
  )
  console.log(`survived    ${alive}`)
} finally {
  if (server.exitCode === null && server.signalCode === null) server.kill('SIGTERM')
  await ended
  await stopOrphans()
  await rm(dataDir, { recursive: true, force: true })
}

function printedKey(): Promise<string> {
  let printed = ''
  return new Promise((resolve, reject) => {
    void ended.then(() => reject(new Error(`the server did not start: ${printed}`)))
    server.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      printed += chunk
      const key = /usher_live_\w+/.exec(printed)?.[0]
      if (key !== undefined && printed.includes('check-ins')) resolve(key)
    })
  })
}

/** A server that crashed leaves its database running, with a working directory inside that of this run. */
async function stopOrphans(): Promise<void> {
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const cwd = await readlink(`/proc/${pid}/cwd`).catch(() => '')
    if (cwd.startsWith(dataDir)) process.kill(Number(pid), 'SIGINT')
  }
}

/** Peak resident memory, in MB. */
async function peak(): Promise<number> {
  const status = await readFile(`/proc/${server.pid}/status`, 'utf8')
  return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024)
}

function post(key: string, agent: Agent): Promise<{ status: number | string; bytes: number }> {
  return new Promise((done) => {
    let bytes = 0
    const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
    const sent = request(`${url}/api/v1/events`, { method: 'POST', headers, agent }, (res) => {
      res.on('data', (chunk: Buffer) => {
        bytes += chunk.length
      })
      res.on('close', () => done({ status: res.complete ? (res.statusCode ?? 0) : 'cut off', bytes }))
    })
    sent.on('error', (error: NodeJS.ErrnoException) => done({ status: error.code ?? 'error', bytes }))
    sent.end(body)
  })
}
