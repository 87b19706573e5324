// The courier as an edge function, under the Deno that Supabase runs: it delivers the same rows as the worker, to callers with its
// secret only, and connects to no more addresses than the worker does.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { SignJWT } from 'jose'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import packageLock from '../../package-lock.json' with { type: 'json' }
import { serveApp } from '../../scripts/support/serve-app.ts'
import { generateWebhookTypes, webhookTypes } from '../../scripts/webhook-types.ts'
import { withDatabase } from '../../src/local/admin.ts'
import { type Demo, seedDemo } from '../../src/local/demo.ts'
import { type EmbeddedStack, startEmbeddedStack } from '../../src/local/stack.ts'
import { createLog } from '../../src/process/log.ts'
import { makeDataDirectory } from '../support/data-directory.ts'
import { functionFolder, functionsFolder, spawnDeno } from '../support/deno.ts'
import { pendingWebhook } from '../support/pending-webhook.ts'
import { readPng } from '../support/qr.ts'
import { rest } from '../support/rest.ts'
import { selfSigned, vouchedFor } from '../support/self-signed.ts'
import { startSupabaseGateway } from '../support/supabase-gateway.ts'
import { startWebhookReceiver } from '../support/webhook-receiver.ts'
import { othersOfLoopback, privateHosts } from './hostile-hosts.ts'
import { openMailServer } from './mail-server.ts'

const secret = 'a-secret-of-this-function'
const publishableKey = 'sb_publishable_test'

describe('beside a Supabase project', () => {
  let dataDir: string
  let stack: EmbeddedStack
  let gateway: Awaited<ReturnType<typeof startSupabaseGateway>>
  let app: Awaited<ReturnType<typeof serveApp>>
  let demo: Demo
  let send: ReturnType<typeof rest>
  let mail: Awaited<ReturnType<typeof openMailServer>>
  let served: ReturnType<typeof serveFunction>
  const examples: ReturnType<typeof spawnDeno>[] = []
  beforeAll(async () => {
    dataDir = await makeDataDirectory()
    stack = await startEmbeddedStack({ dataDir, progress: () => {} })
    gateway = await startSupabaseGateway(stack.dataApiUrl, publishableKey)
    demo = (await withDatabase(stack.databaseUrl, seedDemo)) as Demo
    app = await serveApp({ dataApiUrl: stack.dataApiUrl, jwtSecret: stack.jwtSecret, log: createLog('silent') })
    send = rest(demo.key, app.url)
    mail = await openMailServer()
    served = serveFunction()
  })
  // Each begins with nothing that is due, and an empty mailbox.
  beforeEach(async () => {
    await run()
    mail.received.length = 0
  })
  afterAll(async () => {
    for (const deno of [served?.deno, ...examples]) deno?.kill('SIGKILL')
    await mail?.close()
    await app.close()
    await gateway.close()
    await stack.stop()
    await rm(dataDir, { recursive: true, force: true })
  })

  /** The function as Supabase would serve it. */
  const serveFunction = (environment: Record<string, string> = {}) =>
    serve([join(functionFolder, 'index.ts')], {
      SUPABASE_URL: gateway.url,
      SUPABASE_PUBLISHABLE_KEYS: JSON.stringify({ default: publishableKey }),
      USHER_JWT_SECRET: stack.jwtSecret,
      COURIER_SECRET: secret,
      SMTP_URL: mail.url,
      MAIL_FROM: 'tickets@example.com',
      WEBHOOKS_TO_LOOPBACK: 'true',
      ...environment,
    })

  async function run(authorization = `Bearer ${secret}`, method = 'POST') {
    const response = await fetch(await served.url, { method, headers: { Authorization: authorization } })
    return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) }
  }

  async function register() {
    const guest = { ticket_type_id: demo.ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' }
    const { body } = await send('POST', `/events/${demo.eventId}/registrations`, guest)
    return body.data.attendees[0] as { id: string; ticket_code: string }
  }

  test('delivers what is pending, signed and with a ticket, once', async () => {
    const receiver = await startWebhookReceiver()
    onTestFinished(() => receiver.close())
    const url = `${receiver.url}/hooks`
    const endpoint = (await send('POST', '/webhook-endpoints', { url, types: ['order.completed'] })).body.data
    const attendee = await register()

    expect(await run()).toMatchObject({ status: 200, body: { webhooks: 1, ticket_emails: 1, purged: 0 } })
    expect(receiver.received.map((webhook) => webhook.verified(endpoint.secret))).toMatchObject([
      { type: 'order.completed', data: { attendees: [{ id: attendee.id }] } },
    ])
    expect(mail.received).toMatchObject([{ envelope: { to: ['mary@example.com'] } }])
    const picture = mail.received[0]?.attachments.find(({ mimeType }) => mimeType === 'image/png')
    expect(readPng(Buffer.from(picture?.content as ArrayBuffer))).toBe(attendee.ticket_code)

    const deliveries = await send('GET', `/webhook-deliveries?webhook_endpoint_id=${endpoint.id}`)
    expect(deliveries.body.data).toMatchObject([{ status: 'delivered', last_response: { status: 204 } }])
    const { ticket_email } = (await send('GET', `/attendees/${attendee.id}`)).body.data
    expect(ticket_email).toMatchObject({ status: 'sent', last_error: null })

    expect(await run()).toMatchObject({ status: 200, body: { webhooks: 0, ticket_emails: 0, purged: 0 } })
    expect([receiver.received.length, mail.received.length]).toEqual([1, 1])
  })

  test('sends nothing of a copy, and says so', async () => {
    const sql = (text: string) => withDatabase(stack.databaseUrl, (client) => client.query(text))
    await sql("update private.installations set names = '{project:abcdefghijklmnopqrst}'")
    await register()
    expect((await run()).body).toMatchObject({ ticket_emails: 0, held: true })
    await sql('select private.release_deliveries()')
    const { body } = await run()
    expect(body).toMatchObject({ ticket_emails: 1 })
    expect(body).not.toHaveProperty('held')
    expect(mail.received).toHaveLength(1)
  })

  test('cancels an order that is overdue, and claims the e-mail of it in the same run', async () => {
    const priced = (await send('POST', `/events/${demo.eventId}/ticket-types`, { name: 'Seat', price: 4900 })).body.data
    const buyer = {
      ticket_type_id: priced.id,
      name: 'Mary Jackson',
      email: 'mary@example.com',
      payment_method: 'invoice',
    }
    const { id } = (await send('POST', `/events/${demo.eventId}/registrations`, buyer)).body.data
    expect((await run()).body).toMatchObject({ ticket_emails: 1, expired: 0, reminded: 0 })
    await send('PATCH', `/orders/${id}`, { payment_due_at: new Date().toISOString(), expire_now: true })
    expect((await run()).body).toMatchObject({ ticket_emails: 1, expired: 1, reminded: 0 })
    expect((await send('GET', `/orders/${id}`)).body.data).toMatchObject({
      status: 'cancelled',
      cancellation_reason: 'expired',
    })
  })

  test('leaves what is more than its share to the next run', async () => {
    const attendees = Array.from({ length: 21 }, (_, i) => ({ name: `Guest ${i}`, email: `g${i}@example.com` }))
    const group = { ticket_type_id: demo.ticketTypeId, attendees }
    for (let i = 0; i < 2; i += 1) {
      expect((await send('POST', `/events/${demo.eventId}/registrations`, group)).status).toBe(201)
    }
    expect((await run()).body).toMatchObject({ ticket_emails: 40 })
    expect((await run()).body).toMatchObject({ ticket_emails: 2 })
    expect(mail.received).toHaveLength(42)
  })

  test('does nothing for who does not know the secret', async () => {
    const attendee = await register()
    for (const authorization of ['', 'Bearer', 'Bearer another', `Basic ${btoa(`usher:${secret}`)}`, publishableKey]) {
      const { status, headers, body } = await run(authorization)
      expect(status).toBe(401)
      expect(headers.get('WWW-Authenticate')).toBe('Bearer realm="usher courier"')
      expect(body.error).toMatchObject({ code: 'invalid_credentials', retryable: false })
    }
    const asked = await run(undefined, 'GET')
    expect(asked).toMatchObject({ status: 405, body: { error: { code: 'method_not_allowed' } } })
    expect(asked.headers.get('Allow')).toBe('POST')
    expect(mail.received).toHaveLength(0)
    const { ticket_email } = (await send('GET', `/attendees/${attendee.id}`)).body.data
    expect(ticket_email).toMatchObject({ status: 'queued' })
  })

  test('says that it is to be called again where the database cannot be reached', async () => {
    await gateway.close()
    const { status, headers, body } = await run()
    gateway = await startSupabaseGateway(stack.dataApiUrl, publishableKey, Number(new URL(gateway.url).port))
    expect(status).toBe(503)
    expect(headers.get('Retry-After')).toBe('1')
    expect(body.error).toMatchObject({ code: 'temporarily_unavailable', retryable: true })
  })

  /** An example function of supabase/functions. */
  async function serveExample(name: string, environment: Record<string, string>): Promise<string> {
    const folder = join(functionsFolder, name)
    const { deno, url } = serve([join(folder, 'index.ts')], environment, folder)
    examples.push(deno)
    return url
  }

  describe('webhooks are consumed by the example function', () => {
    let url: string
    let chat: Awaited<ReturnType<typeof startWebhookReceiver>>
    let project: Awaited<ReturnType<typeof startSupabaseGateway>>
    let endpoint: { id: string; secret: string }
    let environment: Record<string, string>
    /** Deliveries of the tests before. */
    let earlier: string[] = []
    const sql = async (text: string) => (await withDatabase(stack.databaseUrl, (client) => client.query(text))).rows
    /** PostgREST writes to no table that it has not seen. A Supabase project tells it of each table by itself. */
    async function createInbox(inboxUrl: string, serviceKey: string): Promise<void> {
      await sql(readFileSync(join(functionsFolder, 'webhook-consumer/table.sql'), 'utf8'))
      await sql("notify pgrst, 'reload schema'")
      const headers = {
        apikey: serviceKey,
        Authorization: `Bearer ${serviceKey}`,
        'Content-Type': 'application/json',
        'Content-Profile': 'public',
      }
      const write = { method: 'PATCH', headers, body: '{"posted_at":null}' }
      await vi.waitUntil(async () => (await fetch(`${inboxUrl}?webhook_id=eq.none`, write)).status === 204, {
        timeout: 120_000,
      })
    }
    const ok = (response: ServerResponse) => void response.writeHead(200).end()
    beforeAll(async () => {
      chat = await startWebhookReceiver()
      // The project's own gateway puts such a token in the place of a secret key.
      const serviceKey = await new SignJWT({ role: 'service_role' })
        .setProtectedHeader({ alg: 'HS256' })
        .setExpirationTime('5m')
        .sign(new TextEncoder().encode(stack.jwtSecret))
      project = await startSupabaseGateway(stack.dataApiUrl, serviceKey)
      await createInbox(`${project.url}/rest/v1/webhook_inbox`, serviceKey)
      const types = ['attendee.checked_in', 'order.completed']
      endpoint = (await send('POST', '/webhook-endpoints', { url: 'http://localhost:9/', types })).body.data
      environment = {
        SUPABASE_URL: project.url,
        SUPABASE_SECRET_KEYS: JSON.stringify({ default: serviceKey }),
        WEBHOOK_SECRET: endpoint.secret,
        CHAT_WEBHOOK_URL: chat.url,
      }
      url = await serveExample('webhook-consumer', environment)
      await send('PATCH', `/webhook-endpoints/${endpoint.id}`, { url })
    })
    beforeEach(async () => {
      chat.answerWith(ok)
      chat.received.length = 0
      await sql('truncate public.webhook_inbox')
      earlier = []
      earlier = (await deliveries()).map(({ id }) => id)
    })
    afterAll(async () => {
      await send('DELETE', `/webhook-endpoints/${endpoint.id}`)
      await sql('drop table public.webhook_inbox')
      await chat.close()
      await project.close()
    })

    const said = () => chat.received.map(({ body }) => JSON.parse(body).text)
    const inbox = () => sql('select type, posted_at is not null as posted from public.webhook_inbox order by type')
    const deliveries = async () => {
      const { body } = await send('GET', `/webhook-deliveries?webhook_endpoint_id=${endpoint.id}`)
      type Delivery = { id: string; type: string; status: string; last_error: string; last_response: unknown }
      return (body.data as Delivery[]).filter(({ id }) => !earlier.includes(id))
    }
    /** What became of each, with the reason of the last attempt that failed. */
    const outcomes = async () =>
      (await deliveries()).map(({ status, last_error, last_response }) =>
        status === 'delivered' ? status : { status, last_error, last_response },
      )
    const redeliverAll = async () => {
      for (const { id } of await deliveries()) {
        expect(await send('POST', `/webhook-deliveries/${id}/redeliver`)).toMatchObject({ status: 200 })
      }
      // A run that could not finish is followed by another, as by the schedule.
      await expect.poll(() => run()).toMatchObject({ status: 200, body: { webhooks: 0 } })
    }
    const arrive = async () => {
      const attendee = await register()
      await send('POST', '/check-ins', { event_id: demo.eventId, code: attendee.ticket_code })
    }

    test('verified, kept once, and said once, however often they arrive; a test is said, too', async () => {
      await arrive()
      await send('POST', `/webhook-endpoints/${endpoint.id}/test`)
      await run()
      await redeliverAll()
      expect(await outcomes()).toEqual(['delivered', 'delivered', 'delivered'])
      expect(await inbox()).toEqual([
        { type: 'attendee.checked_in', posted: true },
        { type: 'order.completed', posted: false },
        { type: 'webhook_endpoint.test', posted: true },
      ])
      expect(said().sort()).toEqual(['Mary Jackson is here.', 'Usher reaches this chat.'])
      const headers = { 'webhook-id': 'x', 'webhook-timestamp': '1' }
      expect((await fetch(url, { method: 'POST', body: '{}', headers })).status).toBe(401)
    })

    test.each([
      ['refuses', (response: ServerResponse) => void response.writeHead(503).end()],
      ['hangs', () => {}],
    ])('what is said later when the chat %s', async (_, answer) => {
      chat.answerWith(answer)
      await arrive()
      await run()
      expect((await deliveries()).map(({ type, status }) => [type, status]).sort()).toEqual([
        ['attendee.checked_in', 'pending'],
        ['order.completed', 'delivered'],
      ])
      expect(await inbox()).toContainEqual({ type: 'attendee.checked_in', posted: false })
      chat.received.length = 0
      chat.answerWith(ok)
      await redeliverAll()
      expect(said()).toEqual(['Mary Jackson is here.'])
      expect(await outcomes()).toEqual(['delivered', 'delivered'])
    })

    test('what is said by the next attempt when the function ends between keeping it and saying it', async () => {
      const asked = new Promise<void>((resolve) => chat.answerWith(() => resolve()))
      await arrive()
      const running = run()
      await asked
      examples.at(-1)?.kill('SIGKILL')
      await running
      expect(await inbox()).toContainEqual({ type: 'attendee.checked_in', posted: false })

      chat.received.length = 0
      chat.answerWith(ok)
      url = await serveExample('webhook-consumer', environment)
      await send('PATCH', `/webhook-endpoints/${endpoint.id}`, { url })
      // The one that ended keeps the others off for six seconds.
      await expect
        .poll(async () => {
          await redeliverAll()
          return said()
        })
        .toEqual(['Mary Jackson is here.'])
    })

    test('what five requests for one webhook at the same time say once', async () => {
      const body = JSON.stringify({
        type: 'attendee.checked_in',
        timestamp: '2026-11-26T10:00:00Z',
        data: { name: 'Mary' },
      })
      const now = new Date()
      const headers = {
        'webhook-id': 'msg_5',
        'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
        'webhook-signature': new Webhook(endpoint.secret).sign('msg_5', now, body),
      }
      chat.answerWith((response) => void setTimeout(() => response.writeHead(200).end(), 200))
      const post = async () => (await fetch(url, { method: 'POST', body, headers })).status
      const answers = await Promise.all(Array.from({ length: 5 }, post))
      expect(said()).toEqual(['Mary is here.'])
      expect(answers.filter((status) => status !== 204 && status !== 503)).toEqual([])
      expect([await post(), said().length]).toEqual([204, 1])
    })

    test.each([
      ['WEBHOOK_SECRET', 'whsec_', 'WEBHOOK_SECRET must be set'],
      ['CHAT_WEBHOOK_URL', 'hooks.slack.com', 'CHAT_WEBHOOK_URL must be set'],
      ['SUPABASE_SECRET_KEYS', '', 'SUPABASE_SECRET_KEYS has no key'],
    ])('nothing of it where %s is %j, and the start says so', async (name, value, sentence) => {
      await expect(serveExample('webhook-consumer', { ...environment, [name]: value })).rejects.toThrow(sentence)
    })
  })

  test('has types of its payloads that are those of this Usher', async () => {
    expect(readFileSync(webhookTypes, 'utf8'), 'Run: npm run webhook-types').toBe(await generateWebhookTypes())
  })

  test('a Database Webhook is handled as pg_net sends it, with its secret only', async () => {
    const url = await serveExample('database-webhook', { DATABASE_WEBHOOK_SECRET: secret })
    await register()
    const { rows } = await withDatabase(stack.databaseUrl, (client) =>
      client.query(
        `select jsonb_build_object(
           'type', 'INSERT', 'schema', 'public', 'table', 'notifications', 'record', to_jsonb(n), 'old_record', null
         ) as payload from public.notifications n where n.type = 'order.completed' order by n.id desc limit 1`,
      ),
    )
    const post = (authorization: string) =>
      fetch(url, { method: 'POST', body: JSON.stringify(rows[0].payload), headers: { Authorization: authorization } })
    expect(await (await post(`Bearer ${secret}`)).json()).toMatchObject({ handled: true, type: 'order.completed' })
    expect((await post('Bearer another')).status).toBe(401)

    for (const body of ['{"type":', 'null', '[]', '{"type":"INSERT","table":"notifications","record":{}}']) {
      const refused = await fetch(url, { method: 'POST', body, headers: { Authorization: `Bearer ${secret}` } })
      expect([body, refused.status]).toEqual([body, 400])
    }
  })
})

/** A function for Deno. Its address rejects with what it complained of, if it does not start. */
function serve(args: string[], environment: Record<string, string>, folder?: string) {
  const deno = spawnDeno('edge-runtime.ts', args, environment, folder)
  const complaints = text(deno.stderr).then((said) => Promise.reject(Error(said)))
  const listening = once(deno.stdout, 'data').then(([port]) => `http://127.0.0.1:${Number(port)}/`)
  const url = Promise.race([listening, complaints])
  // Whoever asks for it is told.
  url.catch(() => {})
  return { deno, url }
}

// All in one process, which takes a tenth of a second or two to start.
test('its webhooks reach no place that is private, however it is written, and over TLS that very host alone', async () => {
  // Without openssl there is no certificate to trust or to refuse.
  const [trusted, unknown] = [vouchedFor(), selfSigned(2)]
  const plain = await startWebhookReceiver()
  const vouched = await startWebhookReceiver(trusted && { tls: trusted })
  const unvouched = await startWebhookReceiver(unknown && { tls: unknown })
  const folder = await mkdtemp(join(tmpdir(), 'usher-edge-tls-'))
  onTestFinished(async () => {
    await Promise.all([plain.close(), vouched.close(), unvouched.close()])
    await rm(folder, { recursive: true })
  })
  await writeFile(join(folder, 'authority.pem'), trusted?.authority ?? '')
  const hosts = [...othersOfLoopback, ...privateHosts]
  expect(hosts.length).toBeGreaterThan(40)

  const [reached, ofVouched, ofAnother, ofUnvouched, ...ofHosts] = await sendUnderDeno(
    [
      `${plain.url}/`,
      `https://localhost:${vouched.port}/`,
      `https://127.0.0.1:${vouched.port}/`,
      `https://localhost:${unvouched.port}/`,
      ...hosts.map((host) => `https://${host}:${plain.port}/`),
    ],
    trusted && { DENO_CERT: join(folder, 'authority.pem') },
  )
  const others = ofHosts.filter(({ error }) => error !== 'The address is not allowed: it is private or reserved.')
  expect(others).toEqual([])
  // The receiver could be reached, and was by its own address alone.
  expect(reached).toMatchObject({ kind: 'answered', status: 204 })
  expect([plain.connections(), ofHosts.length]).toEqual([1, hosts.length])

  if (trusted === undefined || unknown === undefined) return
  expect(ofVouched).toMatchObject({ kind: 'answered', status: 204 })
  expect(ofAnother).toMatchObject({ kind: 'unanswered', error: 'TLS: the certificate is not valid.' })
  expect(ofUnvouched).toMatchObject({ kind: 'unanswered', error: /^TLS: / })
  expect([vouched.received.length, unvouched.received.length]).toEqual([1, 0])
})

async function sendUnderDeno(urls: string[], environment: Record<string, string> = {}) {
  const deno = spawnDeno('send-webhooks.ts', [JSON.stringify(urls.map((url) => pendingWebhook(url)))], environment)
  const [said, complaints] = await Promise.all([text(deno.stdout), text(deno.stderr)])
  expect(complaints).toBe('')
  return JSON.parse(said) as { kind: string; status?: number; error?: string }[]
}

test('it is deployed with the packages that it needs, as they are tested', () => {
  const { imports } = JSON.parse(readFileSync(join(functionFolder, 'deno.json'), 'utf8'))
  const packages: Record<string, { version?: string }> = packageLock.packages
  const needed = [...packagesOf(join(functionFolder, 'index.ts'))].sort()
  expect(needed).toContain('undici')
  const tested = needed.map((name) => [name, `npm:${name}@${packages[`node_modules/${name}`]?.version}`])
  expect(imports).toEqual(Object.fromEntries(tested))
})

/** The packages that a module imports, itself or through what it imports; types come from nowhere. */
function packagesOf(file: string, seen = new Set<string>()): Set<string> {
  const found = new Set<string>()
  if (seen.has(file) || !file.endsWith('.ts')) return found
  seen.add(file)
  const statements = readFileSync(file, 'utf8').matchAll(/^(?:import|export) (?!type )[^'"`;]*?from '([^']+)'/gm)
  for (const [, specifier = ''] of statements) {
    if (specifier.startsWith('.')) for (const name of packagesOf(join(dirname(file), specifier), seen)) found.add(name)
    else if (!specifier.startsWith('node:')) found.add(specifier)
  }
  return found
}
