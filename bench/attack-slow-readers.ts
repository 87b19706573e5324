// Measures what clients cost that send requests and never read: `node bench/attack-slow-readers.ts [connections] [checkout]`. Starts Usher as
// a separate process on loopback, opens that many connections that request /openapi.json and read nothing, and prints the memory of the
// process (Linux: /proc) before, during and after, and whether another client is answered meanwhile.

import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const connections = Math.min(Number(process.argv[2] ?? 3_000), 20_000)
const root = resolve(process.argv[3] ?? join(import.meta.dirname, '..'))
const batchSize = 200
// The kernel buffers a few megabytes of the answers, so enough are requested that some stay in the server.
const requestsEach = 8
const request = 'GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
const heldSeconds = 10
const afterSeconds = 35

const dataDir = await mkdtemp(join(tmpdir(), 'usher-bench-'))
const usher = spawn(process.execPath, ['bin/usher.js', 'start'], {
  cwd: root,
  env: { ...process.env, USHER_DATA_DIR: dataDir, PORT: '0', LOG_LEVEL: 'silent', METRICS_PORT: '' },
  stdio: ['ignore', 'pipe', 'inherit'],
})
const ended = new Promise<void>((done) => usher.once('exit', () => done()))
const sockets: Socket[] = []
try {
  const url = new URL(await ready())
  await fetch(new URL('/openapi.json', url)).then((response) => response.text())
  await report('before')

  for (let i = 0; i < connections; i += batchSize) {
    await Promise.all(Array.from({ length: Math.min(batchSize, connections - i) }, () => openSlowReader(url)))
  }
  for (let second = 0; second < heldSeconds; second++) await sleep(1_000)
  await report(`${connections} slow readers`)
  const started = performance.now()
  const answer = await fetch(new URL('/health', url), { signal: AbortSignal.timeout(5_000) }).then(
    ({ status }) => `${status} after ${(performance.now() - started).toFixed(0)} ms`,
    (error: Error) => error.name,
  )
  console.log(`GET /health by another client   ${answer}`)

  await sleep(afterSeconds * 1_000)
  await report(`${afterSeconds} s later, still not reading`)
  for (const socket of sockets) socket.destroy()
  await sleep(5_000)
  await report('5 s after they disconnected')
} finally {
  for (const socket of sockets) socket.destroy()
  usher.kill('SIGTERM')
  await ended
  await rm(dataDir, { recursive: true, force: true })
}

function ready(): Promise<string> {
  let printed = ''
  return new Promise((found, failed) => {
    usher.stdout.on('data', (chunk) => {
      printed += chunk
      const [, url] = /ready at (http:\S+)/.exec(printed) ?? []
      if (url !== undefined) found(url)
    })
    usher.once('exit', () => failed(new Error('Usher did not start.')))
  })
}

/** Resolves when the requests are sent, or the connection was refused. */
function openSlowReader({ hostname, port }: URL): Promise<void> {
  return new Promise((done) => {
    const socket = connect(Number(port), hostname)
    sockets.push(socket)
    socket.pause()
    socket.once('error', () => done())
    socket.once('connect', () => socket.write(request.repeat(requestsEach), () => done()))
  })
}

async function report(when: string): Promise<void> {
  const status = await readFile(`/proc/${usher.pid}/status`, 'utf8')
  const kilobytes = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1])
  const open = sockets.filter((socket) => !socket.destroyed).length
  console.log(`${when.padEnd(30)} ${(kilobytes / 1024).toFixed(0).padStart(6)} MB   ${open} sockets not closed by us`)
}
