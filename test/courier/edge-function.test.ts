// The courier as an edge function, under the Deno that Supabase runs: it delivers the same rows as the worker, to callers with its
// secret only, and connects to no more addresses than the worker does.

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { SignJWT } from 'jose'
import { PNG } from 'pngjs'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import packageLock from '../../package-lock.json' with { type: 'json' }
import { serveApp } from '../../scripts/support/serve-app.ts'
import { withDatabase } from '../../src/admin.ts'
import { type Demo, seedDemo } from '../../src/embedded/demo.ts'
import { type EmbeddedStack, startEmbeddedStack } from '../../src/embedded/stack.ts'
import { createLog } from '../../src/process/log.ts'
import { makeDataDirectory } from '../support/data-directory.ts'
import { functionFolder, functionsFolder, spawnDeno } from '../support/deno.ts'
import { pendingWebhook } from '../support/pending-webhook.ts'
import { readPng } from '../support/qr.ts'
import { rest } from '../support/rest.ts'
import { selfSigned, vouchedFor } from '../support/self-signed.ts'
import { startSupabaseGateway } from '../support/supabase-gateway.ts'
import { startWebhookReceiver, status } from '../support/webhook-receiver.ts'
import { othersOfLoopback, privateHosts } from './hostile-hosts.ts'
import { startMailServer } from './mail-server.ts'

const secret = 'a-secret-of-this-function'
const publishableKey = 'sb_publishable_test'

describe('beside a Supabase project', () => {
  let dataDir: string
  let stack: EmbeddedStack
  let gateway: Awaited<ReturnType<typeof startSupabaseGateway>>
  let app: Awaited<ReturnType<typeof serveApp>>
  let demo: Demo
  let send: ReturnType<typeof rest>
  beforeAll(async () => {
    dataDir = await makeDataDirectory()
    stack = await startEmbeddedStack({ dataDir, progress: () => {} })
    gateway = await startSupabaseGateway(stack.dataApiUrl, publishableKey)
    demo = (await withDatabase(stack.databaseUrl, seedDemo)) as Demo
    app = await serveApp({ dataApiUrl: stack.dataApiUrl, jwtSecret: stack.jwtSecret, log: createLog('silent') })
    send = rest(demo.key, app.url)
  })
  afterAll(async () => {
    await app.close()
    await gateway.close()
    await stack.stop()
    await rm(dataDir, { recursive: true, force: true })
  })

  /** The function as Supabase would serve it, until the test ends. */
  async function serveFunction(environment: Record<string, string> = {}) {
    const mail = await startMailServer()
    const deno = spawnDeno('edge-runtime.ts', [join(functionFolder, 'index.ts')], {
      SUPABASE_URL: gateway.url,
      SUPABASE_PUBLISHABLE_KEYS: JSON.stringify({ default: publishableKey }),
      USHER_JWT_SECRET: stack.jwtSecret,
      COURIER_SECRET: secret,
      SMTP_URL: mail.url,
      MAIL_FROM: 'tickets@example.com',
      WEBHOOKS_TO_LOOPBACK: 'true',
      ...environment,
    })
    const log = text(deno.stderr)
    onTestFinished(() => void deno.kill('SIGKILL'))
    const port = Promise.race([once(deno.stdout, 'data').then(String), log.then((said) => Promise.reject(Error(said)))])
    const url = `http://127.0.0.1:${Number(await port)}/`
    return {
      mail,
      async run(authorization = `Bearer ${secret}`, method = 'POST') {
        const response = await fetch(url, { method, headers: { Authorization: authorization } })
        return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) }
      },
    }
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
    const { run, mail } = await serveFunction()

    expect(await run()).toMatchObject({ status: 200, body: { webhooks: 1, ticket_emails: 1, logos: 0, purged: 0 } })
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
    const { run, mail } = await serveFunction()
    await run()
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
    const { run } = await serveFunction()
    expect((await run()).body).toMatchObject({ ticket_emails: 1, expired: 0, reminded: 0 })
    await send('PATCH', `/orders/${id}`, { payment_due_at: '2020-01-01T00:00:00Z' })
    expect((await run()).body).toMatchObject({ ticket_emails: 1, expired: 1, reminded: 0 })
    expect((await send('GET', `/orders/${id}`)).body.data).toMatchObject({
      status: 'cancelled',
      cancellation_reason: 'expired',
    })
  })

  test('fetches a logo', async () => {
    const logo = PNG.sync.write(new PNG({ width: 30, height: 8 }))
    const server = await startWebhookReceiver()
    onTestFinished(() => server.close())
    server.answerWith(status(200, {}, logo))
    const sql = (text: string, values: string[]) =>
      withDatabase(stack.databaseUrl, async (client) => (await client.query(text, values)).rows)
    await sql("update public.organisations set logo_url = $1 where slug = 'demo'", [`${server.url}/logo.png`])
    const { run } = await serveFunction()

    expect((await run()).body).toMatchObject({ logos: 1 })
    const [stored] = await sql("select api.get_logo(id) as logo from public.organisations where slug = 'demo'", [])
    expect(stored.logo).toEqual({ content_type: 'image/png', content: logo.toString('base64'), width: 30, height: 8 })
  })

  test('leaves what is more than its share to the next run', async () => {
    for (let i = 0; i < 42; i += 1) await register()
    const { run, mail } = await serveFunction()
    expect((await run()).body).toMatchObject({ ticket_emails: 40 })
    expect((await run()).body).toMatchObject({ ticket_emails: 2 })
    expect(mail.received).toHaveLength(42)
  })

  test('does nothing for who does not know the secret', async () => {
    const attendee = await register()
    const { run, mail } = await serveFunction()
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
    const { run } = await serveFunction({ SUPABASE_URL: 'http://127.0.0.1:9' })
    const { status, headers, body } = await run()
    expect(status).toBe(503)
    expect(headers.get('Retry-After')).toBe('1')
    expect(body.error).toMatchObject({ code: 'temporarily_unavailable', retryable: true })
  })

  /** An example function of supabase/functions, until the test ends. */
  async function serveExample(name: string, environment: Record<string, string>): Promise<string> {
    const folder = join(functionsFolder, name)
    const deno = spawnDeno('edge-runtime.ts', [join(folder, 'index.ts')], environment, folder)
    const log = text(deno.stderr)
    onTestFinished(() => void deno.kill('SIGKILL'))
    const port = Promise.race([once(deno.stdout, 'data').then(String), log.then((said) => Promise.reject(Error(said)))])
    return `http://127.0.0.1:${Number(await port)}/`
  }

  test('are consumed by the example function: verified, kept once, and said in a chat', async () => {
    const run = (sql: string) => withDatabase(stack.databaseUrl, (client) => client.query(sql))
    await run(readFileSync(join(functionsFolder, 'webhook-consumer/table.sql'), 'utf8'))
    const chat = await startWebhookReceiver()
    const serviceKey = await new SignJWT({ role: 'service_role' })
      .setProtectedHeader({ alg: 'HS256' })
      .setExpirationTime('5m')
      .sign(new TextEncoder().encode(stack.jwtSecret))
    const project = await startSupabaseGateway(stack.dataApiUrl, serviceKey)
    onTestFinished(async () => {
      await chat.close()
      await project.close()
    })
    const types = ['attendee.checked_in', 'order.completed']
    const { data: endpoint } = (await send('POST', '/webhook-endpoints', { url: 'http://localhost:9/', types })).body
    const url = await serveExample('webhook-consumer', {
      SUPABASE_URL: project.url,
      SUPABASE_SERVICE_ROLE_KEY: serviceKey,
      WEBHOOK_SECRET: endpoint.secret,
      CHAT_WEBHOOK_URL: chat.url,
    })
    await send('PATCH', `/webhook-endpoints/${endpoint.id}`, { url })
    const attendee = await register()
    await send('POST', '/check-ins', { event_id: demo.eventId, code: attendee.ticket_code })

    // The chat is away: the webhook is tried again, and nothing is kept of it.
    chat.answerWith((response) => void response.writeHead(503).end())
    const courier = await serveFunction()
    await courier.run()
    chat.answerWith((response) => void response.writeHead(200).end())
    const deliveries = async () =>
      (await send('GET', `/webhook-deliveries?webhook_endpoint_id=${endpoint.id}`)).body.data as {
        id: string
        type: string
        status: string
      }[]
    expect((await deliveries()).map(({ type, status }) => [type, status]).sort()).toEqual([
      ['attendee.checked_in', 'pending'],
      ['order.completed', 'delivered'],
    ])
    for (const { id } of await deliveries()) await send('POST', `/webhook-deliveries/${id}/redeliver`)
    await courier.run()
    for (const { id } of await deliveries()) await send('POST', `/webhook-deliveries/${id}/redeliver`)
    await courier.run()

    expect((await deliveries()).map(({ status }) => status)).toEqual(['delivered', 'delivered'])
    const { rows } = await run("select type, data ->> 'object' as object from public.webhook_inbox order by type")
    expect(rows).toEqual([
      { type: 'attendee.checked_in', object: 'attendee' },
      { type: 'order.completed', object: 'order' },
    ])
    expect(chat.received.map(({ body }) => JSON.parse(body))).toEqual(Array(2).fill({ text: 'Mary Jackson is here.' }))
    const forged = await fetch(url, {
      method: 'POST',
      body: '{}',
      headers: { 'webhook-id': 'x', 'webhook-timestamp': '1' },
    })
    expect(forged.status).toBe(401)
    await run('drop table public.webhook_inbox')
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
  })

  test.each([
    [{ COURIER_SECRET: 'short' }, 'COURIER_SECRET must be set, to at least 16 letters'],
    [{ SUPABASE_URL: '' }, 'SUPABASE_URL must be set.'],
    [{ SUPABASE_PUBLISHABLE_KEYS: 'sb_publishable_x' }, 'SUPABASE_PUBLISHABLE_KEYS must be a JSON object'],
    [{ SUPABASE_PUBLISHABLE_KEYS: '' }, 'SUPABASE_PUBLISHABLE_KEY must be set'],
    [{ USHER_JWT_SECRET: '' }, 'USHER_JWT_SECRET or USHER_SIGNING_KEY must be set'],
    [{ SMTP_URL: '' }, 'POSTMARK_SERVER_TOKEN or SMTP_URL must be set'],
    [{ MAIL_FROM: '' }, 'MAIL_FROM must be set'],
  ])('does not start with %j, and says why', async (environment, reason) => {
    await expect(serveFunction(environment)).rejects.toThrow(reason)
  })
})

describe('its webhooks', () => {
  async function sendUnderDeno(urls: string[], environment: Record<string, string> = {}) {
    const deno = spawnDeno('send-webhooks.ts', [JSON.stringify(urls.map((url) => pendingWebhook(url)))], environment)
    const [said, complaints] = await Promise.all([text(deno.stdout), text(deno.stderr)])
    expect(complaints).toBe('')
    return JSON.parse(said) as { kind: string; status?: number; error?: string }[]
  }

  test('reach no place that is private, however it is written', async () => {
    const receiver = await startWebhookReceiver()
    onTestFinished(() => receiver.close())
    const hosts = [...othersOfLoopback, ...privateHosts]
    expect(hosts.length).toBeGreaterThan(40)
    const results = await sendUnderDeno(hosts.map((host) => `https://${host}:${receiver.port}/`))
    const others = results.filter(({ error }) => error !== 'The address is not allowed: it is private or reserved.')
    expect(others).toEqual([])
    expect(receiver.connections()).toBe(0)
    // The receiver could have been reached.
    expect(await sendUnderDeno([`${receiver.url}/`])).toMatchObject([{ kind: 'answered', status: 204 }])
  })

  const trusted = vouchedFor()
  test.skipIf(trusted === undefined)('are sent over TLS where the certificate is for that very host', async () => {
    const { authority, ...tls } = trusted as NonNullable<typeof trusted>
    const receiver = await startWebhookReceiver({ tls })
    const folder = await mkdtemp(join(tmpdir(), 'usher-edge-tls-'))
    onTestFinished(async () => {
      await receiver.close()
      await rm(folder, { recursive: true })
    })
    await writeFile(join(folder, 'authority.pem'), authority)
    const urls = [`https://localhost:${receiver.port}/`, `https://127.0.0.1:${receiver.port}/`]
    expect(await sendUnderDeno(urls, { DENO_CERT: join(folder, 'authority.pem') })).toMatchObject([
      { kind: 'answered', status: 204 },
      { kind: 'unanswered', error: 'TLS: the certificate is not valid.' },
    ])
    expect(receiver.received).toHaveLength(1)
  })

  // Without openssl there is no certificate to refuse.
  const tls = selfSigned(2)
  test.skipIf(tls === undefined)('are not sent where nobody vouches for the certificate', async () => {
    const receiver = await startWebhookReceiver({ tls: tls as NonNullable<typeof tls> })
    onTestFinished(() => receiver.close())
    expect(await sendUnderDeno([`${receiver.url}/`])).toMatchObject([{ kind: 'unanswered', error: /^TLS: / }])
    expect(receiver.received).toHaveLength(0)
  })
})

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
