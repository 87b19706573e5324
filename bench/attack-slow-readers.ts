// What do connections cost that ask and never read? `node bench/attack-slow-readers.ts [connections] [folder of another checkout]`
// starts Usher as a process of its own on loopback, opens so many connections that ask for /openapi.json and read nothing, and
// prints the memory of that process (Linux: /proc) before, during and after, and whether somebody else is answered meanwhile.

import { spawn } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const connections = Math.min(Number(process.argv[2] ?? 3_000), 20_000)
const root = resolve(process.argv[3] ?? join(import.meta.dirname, '..'))
const atOnce = 200
// The kernel takes a few megabytes of an answer off the server: enough to be asked that some of it stays.
const requestsEach = 8
const request = 'GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'
const heldSeconds = 10
const afterSeconds = 35

const dataDir = await mkdtemp(join(tmpdir(), 'usher-bench-'))
const usher = spawn(process.execPath, ['src/cli.ts', 'start'], {
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

  for (let i = 0; i < connections; i += atOnce) {
    await Promise.all(Array.from({ length: Math.min(atOnce, connections - i) }, () => ask(url)))
  }
  for (let second = 0; second < heldSeconds; second++) await sleep(1_000)
  await report(`${connections} that do not read`)
  const started = performance.now()
  const answer = await fetch(new URL('/health', url), { signal: AbortSignal.timeout(5_000) }).then(
    ({ status }) => `${status} after ${(performance.now() - started).toFixed(0)} ms`,
    (error: Error) => error.name,
  )
  console.log(`somebody else's GET /health    ${answer}`)

  await sleep(afterSeconds * 1_000)
  await report(`${afterSeconds} s later, still not reading`)
  for (const socket of sockets) socket.destroy()
  await sleep(5_000)
  await report('5 s after they left')
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
    usher.once('exit', () => failed(new Error('Usher did not start')))
  })
}

/** Resolves when it has asked, or was turned away. */
function ask({ hostname, port }: URL): Promise<void> {
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
