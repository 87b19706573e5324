// docs/operate/examples, against a running Usher and the programs that read them. Without its program a test is skipped.

import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { Agent, request } from 'undici'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { renderGuide } from '../../src/apps/docs/guides.ts'
import { readConfig } from '../../src/cli/config.ts'
import { type Running, start } from '../../src/cli/start.ts'
import { guides } from '../../src/http/guides.ts'
import { type HttpListener, openListener } from '../../src/http/listener.ts'
import { createLog } from '../../src/process/log.ts'
import { cleanUp, end, freePort, repository, temporaryFolder } from '../cli/support.ts'
import { copyDataDirectory } from '../support/data-directory.ts'
import { selfSigned } from '../support/self-signed.ts'

const examples = join(repository, 'docs/operate/examples')
const read = (name: string) => readFileSync(join(examples, name), 'utf8')
const alerts = read('alerts.yml')
  .split(/^ {6}- alert: /m)
  .slice(1)
const dashboard = JSON.parse(read('dashboard.json'))

/** As they stand in alerts.yml, on one line or in an indented block. */
const exprOf = (alert: string) =>
  /^ +expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)/m.exec(alert)?.slice(1).join('').trim() ?? ''
const queries: string[] = [
  ...alerts.map(exprOf),
  ...[...dashboard.panels.flatMap(({ targets }: { targets: unknown[] }) => targets), ...dashboard.annotations.list].map(
    ({ expr }: { expr: string }) => expr.replaceAll('$__rate_interval', '5m'),
  ),
]

const packages = { promtool: 'prometheus', 'systemd-analyze': 'systemd', nginx: 'nginx-light', caddy: 'caddy' }

/** Without the program the title says what to install. */
function withProgram(program: keyof typeof packages, title: string, body: () => void): void {
  const installed = spawnSync(program, ['help']).error === undefined
  describe.skipIf(!installed)(installed ? title : `${title} (skipped: install ${packages[program]})`, body)
}

let usher: Running
beforeAll(async () => {
  const dataDir = await copyDataDirectory(join(temporaryFolder(), 'data'))
  const settings = { USHER_DATA_DIR: dataDir, PORT: '0', METRICS_PORT: '0', TRUST_PROXY: '1' }
  usher = await start(readConfig(settings), createLog('silent'), () => {})
})
afterAll(async () => {
  await usher.stop()
  await cleanUp()
})

const withKey = () => ({ Authorization: `Bearer ${usher.demo?.key}`, 'Content-Type': 'application/json' })

type Send = (path: string, options: object) => ReturnType<typeof request>
const directly: Send = (path, options) => request(usher.url + path, options)

/** A registration of a new guest. @returns the status */
async function register(send: Send, headers = {}): Promise<number> {
  const { eventId, ticketTypeId } = usher.demo ?? expect.unreachable()
  const guest = { ticket_type_id: ticketTypeId, name: 'Mary Jackson', email: `${crypto.randomUUID()}@example.com` }
  const options = { method: 'POST', headers: { ...withKey(), ...headers }, body: JSON.stringify(guest) }
  return (await send(`/api/v1/events/${eventId}/registrations`, options)).statusCode
}

test('each alert has a severity, a summary and a section that exists', () => {
  const lacking = alerts.filter((alert) => {
    const [, name, id] = /^ +runbook_url: https:\/\/usher\.example\.com\/docs\/(\S+)#(\S+)$/m.exec(alert) ?? []
    const page = guides.find((guide) => guide.name === name)
    const hasSection = page !== undefined && renderGuide(page, '<!-- content -->').includes(`<h2 id="${id}"`)
    return !hasSection || !/severity: (critical|warning) }/.test(alert) || !/^ +summary: .{10}/m.test(alert)
  })
  expect(alerts.length).toBeGreaterThan(0)
  expect(lacking).toEqual([])
})

test('alerts and dashboard name only metrics that a running Usher has', async () => {
  await register(directly)
  const scrape = async () => (await fetch(`${usher.metricsUrl}/metrics`)).text()
  await expect.poll(scrape).toContain('usher_delivery_duration_seconds_bucket')
  const exposed = new Set(['up', ...(await scrape()).split('\n').map((line) => line.split(/[{ ]/, 1)[0])])
  const named = queries.flatMap(
    (query) => query.replace(/\{[^}]*\}|\[[^\]]*\]|\b(by|on)\s*\([^)]*\)/g, '').match(/\b[a-z]\w+\b(?!\s*\()/g) ?? [],
  )
  const words = ['by', 'on', 'or', 'unless']
  expect(named.length).toBeGreaterThan(queries.length)
  expect(named.filter((name) => !exposed.has(name) && !words.includes(name))).toEqual([])
})

withProgram('promtool', 'Prometheus', () => {
  const promtool = (...args: string[]) => execFileSync('promtool', args, { cwd: examples, stdio: 'pipe' })

  test('takes the configuration, and each alert fires when it should', () => {
    promtool('check', 'config', 'prometheus.yml')
    promtool('test', 'rules', 'alerts.test.yml')
    expect(alerts.filter((alert) => !read('alerts.test.yml').includes(alert.split('\n', 1)[0] ?? ''))).toEqual([])
  })

  test('reads each query of the dashboard', () => {
    const file = join(temporaryFolder(), 'queries.yml')
    const rules = queries.map((expr, i) => ({ record: `query_${i}`, expr }))
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }))
    promtool('check', 'rules', file)
  })
})

withProgram('systemd-analyze', 'systemd', () => {
  test('takes the unit', () => {
    const file = join(temporaryFolder(), 'usher@.service')
    writeFileSync(file, read('usher@.service').replace('/usr/bin/node', process.execPath))
    const { stderr, status } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
  })
})

/** The proxy by its example, in front of two addresses until the test ends. `send` is the client. */
async function inFront(proxy: 'nginx' | 'caddy', first: string, second: string) {
  const folder = mkdtempSync(join(tmpdir(), 'usher-proxy-'))
  const port = await freePort()
  const write = (name: string, text: string) => {
    const local = text.replace('127.0.0.1:3001', new URL(first).host).replace('127.0.0.1:3002', new URL(second).host)
    writeFileSync(join(folder, name), local)
    return join(folder, name)
  }
  const url = proxy === 'nginx' ? `https://127.0.0.1:${port}` : `http://127.0.0.1:${port}`
  const args =
    proxy === 'nginx'
      ? ['-p', folder, '-c', nginxFiles(write, folder, port)]
      : ['run', '--config', caddyFile(write, url)]
  const child = spawn(proxy, args, { stdio: 'ignore', env: { ...process.env, HOME: folder } })
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } })
  onTestFinished(async () => {
    await Promise.all([dispatcher.destroy(), end(child)])
    rmSync(folder, { recursive: true })
  })
  const send = (path: string, options = {}) => request(url + path, { dispatcher, ...options })
  await expect.poll(() => send('/').catch(() => undefined)).toBeDefined()
  return { send, log: () => readFileSync(join(folder, 'usher.log'), 'utf8') }
}

type Write = (name: string, text: string) => string

const caddyFile = (write: Write, url: string) =>
  write('Caddyfile', `{\n  admin off\n}\n${read('Caddyfile').replace('usher.example.com', url)}`)

function nginxFiles(write: Write, folder: string, port: number): string {
  const { key, cert } = selfSigned(1) ?? expect.unreachable('openssl is missing')
  write('privkey.pem', key)
  write('fullchain.pem', cert)
  const site = read('nginx.conf')
    .replace(/^server \{\n {2}listen 80;.*?^\}\n/ms, '')
    .replace(/ +listen \[::\].*\n/, '')
    .replace('listen 443 ssl http2', `listen 127.0.0.1:${port} ssl http2`)
    .replaceAll(/\/etc\/letsencrypt\/live\/[^/]+|\/var\/log\/nginx/g, folder)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`)
  const main = `daemon off; user ${userInfo().username}; pid pid; error_log error.log; events {}`
  return write('nginx.conf', `${main}\nhttp {\n${paths.join('\n')}\n${site}\n}`)
}

async function listener({ ended = false } = {}): Promise<HttpListener> {
  const opened = await openListener({ host: '127.0.0.1', port: 0 })
  onTestFinished(opened.close)
  if (ended) await opened.close()
  return opened
}

for (const proxy of ['nginx', 'caddy'] as const) {
  withProgram(proxy, proxy, () => {
    test('passes a write that one process does not take to the other, and lets Usher refuse what is too large', async () => {
      const { send } = await inFront(proxy, (await listener({ ended: true })).url, usher.url)
      for (let i = 0; i < 4; i++) expect(await register(send)).toBe(201)
      const body = JSON.stringify({ name: 'x'.repeat(2_500_000) })
      const refused = await send('/api/v1/events', { method: 'POST', headers: withKey(), body })
      expect([refused.statusCode, await refused.body.text()]).toEqual([
        413,
        expect.stringContaining('payload_too_large'),
      ])
    })

    test('names the client last, keeps its connections, and passes an export on while it is written', async () => {
      const upstream = await listener()
      let finish = () => {}
      upstream.serve((req, res) => {
        if (!req.url?.includes('/exports/')) return void res.end()
        res.write(JSON.stringify(req.headers))
        finish = () => void (req.url?.endsWith('?cut') ? res.destroy() : res.end())
      })
      const { send } = await inFront(proxy, upstream.url, upstream.url)
      // Debian 12's Caddy 2.6.2 ends an answer that was cut off as if it were complete.
      for (const path of ['/exports/token', ...(proxy === 'nginx' ? ['/api/v1/exports/orders?cut'] : [])]) {
        const rows = (await send(path, { headers: { 'X-Forwarded-For': '192.0.2.7' } })).body[Symbol.asyncIterator]()
        const seen = JSON.parse(String((await rows.next()).value))
        expect([seen['x-forwarded-for'].split(', ').at(-1), seen.connection ?? 'kept']).toEqual(['127.0.0.1', 'kept'])
        finish()
        if (path.endsWith('?cut')) await expect(rows.next()).rejects.toThrow()
        else expect((await rows.next()).done).toBe(true)
      }
    })
  })
}

withProgram('nginx', 'nginx while a process starts', () => {
  test('passes reads, and writes with a key, to the other, and logs no secret', async () => {
    const { send, log } = await inFront('nginx', (await listener()).url, usher.url)
    for (let i = 0; i < 4; i++) {
      expect(await register(send, { 'Idempotency-Key': crypto.randomUUID() })).toBe(201)
      expect((await send('/ready?token=secret')).statusCode).toBe(200)
    }
    await send('/t/secret')
    await expect.poll(log).toContain('GET /ready')
    expect(log()).not.toContain('secret')
  })
})
