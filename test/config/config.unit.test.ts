import { generateKeyPairSync } from 'node:crypto'
import { expect, test } from 'vitest'
import { ConfigError, doubtOfMetricsPort, doubtOfTrustProxy, readConfig } from '../../src/cli/config.ts'
import { readFunctionConfig } from '../../supabase/functions/courier/config.ts'

const privateJwk = JSON.stringify(
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
)
const publicJwk = JSON.stringify(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' }))

const supabase = {
  SUPABASE_URL: 'https://abc.supabase.co',
  SUPABASE_PUBLISHABLE_KEY: 'sb_publishable_abc',
  SUPABASE_JWT_SECRET: 'x'.repeat(32),
}

/** The sentences of the refusal, one for each variable. */
function complaints(environment: NodeJS.ProcessEnv): string[] {
  try {
    readConfig(environment)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.message.split('\n')
  }
  throw new Error(`accepted: ${JSON.stringify(environment)}`)
}

test('an empty environment is an embedded stack in .usher on port 3000, for this machine alone', () => {
  expect(readConfig({})).toEqual({
    port: 3000,
    host: '127.0.0.1',
    maxConnections: 2000,
    keepAliveSeconds: 5,
    hstsIncludeSubDomains: false,
    oauth: true,
    metrics: undefined,
    logLevel: 'info',
    allowedHosts: [],
    trustProxy: false,
    redisUrl: undefined,
    database: { kind: 'embedded', dataDir: '.usher' },
    mail: { directory: '.usher/mail' },
    mailFrom: 'tickets@localhost',
    postmarkWebhookSecret: undefined,
    retentionDays: 30,
    auditRetentionDays: 365,
    webhookTimeoutSeconds: 15,
    webhooksToLoopback: true,
    deliveries: true,
    databaseUrl: undefined,
  })
})

test('every variable is read', () => {
  expect(
    readConfig({
      ...supabase,
      PORT: '8080',
      HOST: '0.0.0.0',
      MAX_CONNECTIONS: '500',
      KEEP_ALIVE_SECONDS: '65',
      HSTS_INCLUDE_SUBDOMAINS: 'true',
      OAUTH: 'false',
      METRICS_PORT: '9464',
      METRICS_HOST: '10.0.0.5',
      LOG_LEVEL: 'warn',
      LOG_FORMAT: 'pretty',
      PUBLIC_URL: 'https://api.example.com/',
      ALLOWED_HOSTS: 'api.example.com, tickets.example.com,',
      TRUST_PROXY: '2',
      REDIS_URL: 'rediss://user:secret@redis.example.com:6380/1',
      SMTP_URL: 'smtps://user:secret@mail.example.com',
      MAIL_FROM: 'tickets@example.com',
      POSTMARK_WEBHOOK_SECRET: 's'.repeat(16),
      RETENTION_DAYS: '7',
      AUDIT_RETENTION_DAYS: '90',
      WEBHOOK_TIMEOUT_SECONDS: '5',
      WEBHOOKS_TO_LOOPBACK: 'true',
      DELIVERIES: 'false',
      DATABASE_URL: 'postgresql://postgres:secret@db.example.com:5432/postgres',
    }),
  ).toEqual({
    port: 8080,
    host: '0.0.0.0',
    maxConnections: 500,
    keepAliveSeconds: 65,
    hstsIncludeSubDomains: true,
    oauth: false,
    metrics: { host: '10.0.0.5', port: 9464 },
    logLevel: 'warn',
    logFormat: 'pretty',
    publicUrl: 'https://api.example.com',
    allowedHosts: ['api.example.com', 'tickets.example.com'],
    trustProxy: 2,
    redisUrl: 'rediss://user:secret@redis.example.com:6380/1',
    database: {
      kind: 'supabase',
      url: 'https://abc.supabase.co/rest/v1',
      publishableKey: 'sb_publishable_abc',
      signingKey: { secret: 'x'.repeat(32) },
    },
    mail: { smtpUrl: 'smtps://user:secret@mail.example.com' },
    mailFrom: 'tickets@example.com',
    postmarkWebhookSecret: 's'.repeat(16),
    retentionDays: 7,
    auditRetentionDays: 90,
    webhookTimeoutSeconds: 5,
    webhooksToLoopback: true,
    webhooksToLoopbackSetting: true,
    deliveries: false,
    databaseUrl: 'postgresql://postgres:secret@db.example.com:5432/postgres',
  })
})

test.each([
  ['true', true],
  ['false', false],
  ['1', 1],
  ['loopback', 'loopback'],
  ['10.0.0.0/8', '10.0.0.0/8'],
  ['loopback, 10.0.0.0/8', 'loopback, 10.0.0.0/8'],
])('TRUST_PROXY %s is what Express understands by it', (given, meant) => {
  expect(readConfig({ TRUST_PROXY: given }).trustProxy).toBe(meant)
})

test.each([
  ['PORT', 'http', /number from 0 to 65535/],
  ['PORT', '65536', /number from 0 to 65535/],
  ['PORT', '-1', /number from 0 to 65535/],
  ['PORT', '30.5', /number from 0 to 65535/],
  ['HOST', ' ', /not be empty/],
  ['MAX_CONNECTIONS', '9', /connections from 10 to 999999/],
  ['KEEP_ALIVE_SECONDS', '0', /seconds from 1 to 999/],
  ['USHER_DATA_DIR', ' ', /not be empty/],
  ['LOG_LEVEL', 'verbose', /trace, debug, info, warn, error, fatal, silent/],
  ['LOG_FORMAT', 'yaml', /json or pretty/],
  ['PUBLIC_URL', 'usher.example.com', /http or https URL/],
  ['PUBLIC_URL', 'ftp://usher.example.com', /http or https URL/],
  ['PUBLIC_URL', 'https://usher.example.com/?', /a query or a fragment/],
  ['PUBLIC_URL', 'https://usher.example.com/#docs', /a query or a fragment/],
  ['PUBLIC_URL', 'https://me:secret@usher.example.com', /a user name or a password/],
  ['ALLOWED_HOSTS', 'https://api.example.com', /without scheme or port/],
  ['ALLOWED_HOSTS', 'api.example.com:3000', /without scheme or port/],
  ['TRUST_PROXY', 'yes please', /true, false, a number .+ addresses or subnets/],
  ['TRUST_PROXY', '10.0.0.0/99', /true, false, a number .+ addresses or subnets/],
  ['REDIS_URL', 'localhost:6379', /redis:\/\/ or rediss:\/\//],
  ['REDIS_URL', 'https://redis.example.com', /redis:\/\/ or rediss:\/\//],
  ['SMTP_URL', 'mail.example.com', /smtp:\/\/ or smtps:\/\//],
  ['MAIL_FROM', 'tickets', /an e-mail address/],
  ['POSTMARK_WEBHOOK_SECRET', 'short', /at least 16 characters/],
  ['RETENTION_DAYS', '0', /days from 1 to 9999/],
  ['WEBHOOK_TIMEOUT_SECONDS', '60', /seconds from 1 to 59/],
  ['WEBHOOKS_TO_LOOPBACK', 'yes', /true or false/],
  ['DELIVERIES', 'no', /true or false/],
  ['HSTS_INCLUDE_SUBDOMAINS', 'yes', /true or false/],
  ['SUPABASE_URL', 'abc.supabase.co', /http or https/],
  ['SUPABASE_URL', 'ftp://abc.supabase.co', /http or https/],
  ['SUPABASE_PUBLISHABLE_KEY', ' ', /not be empty/],
  ['SUPABASE_JWT_SECRET', 'short', /at least 32 characters/],
  ['SUPABASE_SIGNING_KEY', 'no JSON', /private JSON Web Key/],
  ['SUPABASE_SIGNING_KEY', publicJwk, /private JSON Web Key/],
  ['SUPABASE_SIGNING_KEY', '{"kty":"EC","d":"nonsense"}', /private JSON Web Key/],
  ['DATABASE_URL', 'mysql://localhost/usher', /postgresql:\/\//],
  ['DATABASE_URL', 'localhost:5432', /postgresql:\/\//],
])('%s=%j is refused: the variable is named, and what is allowed', (variable, value, allowed) => {
  const [complaint, ...others] = complaints({ ...supabase, [variable]: value })
  expect(others).toEqual([])
  expect(complaint).toMatch(new RegExp(`^${variable} .+\\.$`))
  expect(complaint).toMatch(allowed)
})

test.each([
  ['https://usher.example.com', 'https://usher.example.com'],
  ['https://usher.example.com/', 'https://usher.example.com'],
  ['https://USHER.example.com:8443/tickets//', 'https://usher.example.com:8443/tickets'],
  ['http://[::1]:3000/a/b', 'http://[::1]:3000/a/b'],
])('PUBLIC_URL %s is the base of links without a slash at its end', (given, meant) => {
  expect(readConfig({ PUBLIC_URL: given }).publicUrl).toBe(meant)
})

test('several wrong variables are all named at once', () => {
  const wrong = { PORT: 'http', LOG_LEVEL: 'loud', REDIS_URL: 'here', DATABASE_URL: 'there', HOST: ' ' }
  const named = complaints(wrong).map((sentence) => sentence.split(' ', 1)[0])
  expect(named.sort()).toEqual(Object.keys(wrong).sort())
})

test('a refusal does not repeat the value, which may be a secret', () => {
  const secret = 'hunter2-hunter2'
  const said = complaints({ SUPABASE_JWT_SECRET: secret, DATABASE_URL: `mysql://root:${secret}@localhost/usher` })
  expect(said.join('\n')).not.toContain(secret)
})

test('a variable set to nothing counts as not set', () => {
  const names =
    `PORT HOST USHER_DATA_DIR LOG_LEVEL ALLOWED_HOSTS TRUST_PROXY REDIS_URL SUPABASE_URL SUPABASE_PUBLISHABLE_KEY
    SUPABASE_JWT_SECRET SUPABASE_SIGNING_KEY DATABASE_URL`.split(/\s+/)
  expect(readConfig(Object.fromEntries(names.map((name) => [name, ''])))).toEqual(readConfig({}))
})

test.each([
  [['SUPABASE_PUBLISHABLE_KEY'], { SUPABASE_PUBLISHABLE_KEY: '' }],
  [['SUPABASE_JWT_SECRET', 'SUPABASE_SIGNING_KEY'], { SUPABASE_JWT_SECRET: '' }],
  [
    ['SUPABASE_PUBLISHABLE_KEY', 'SUPABASE_JWT_SECRET', 'SUPABASE_SIGNING_KEY'],
    { SUPABASE_PUBLISHABLE_KEY: '', SUPABASE_JWT_SECRET: '' },
  ],
])('SUPABASE_URL without %j is refused, and the missing ones are named', (missing, unset) => {
  const said = complaints({ ...supabase, ...unset }).join('\n')
  for (const variable of missing) expect(said).toContain(variable)
  expect(said).toContain('SUPABASE_URL')
})

test('a mail service needs the address that tickets come from, and is one or the other', () => {
  expect(complaints({ SMTP_URL: 'smtp://localhost' })[0]).toMatch(/^MAIL_FROM must be set/)
  expect(complaints({ POSTMARK_SERVER_TOKEN: 'token' })[0]).toMatch(/^MAIL_FROM must be set/)
  const both = { POSTMARK_SERVER_TOKEN: 'token', SMTP_URL: 'smtp://localhost', MAIL_FROM: 'tickets@example.com' }
  expect(complaints(both)[0]).toMatch(/^POSTMARK_SERVER_TOKEN and SMTP_URL are both set/)
  expect(readConfig({ ...both, SMTP_URL: '' }).mail).toEqual({ postmarkToken: 'token' })
})

test.each([
  [{ HOST: 'localhost' }, true],
  [{ HOST: '127.0.0.53' }, true],
  [{ HOST: '::1' }, true],
  [{ HOST: '::ffff:127.0.0.1' }, true],
  [{ PUBLIC_URL: 'http://localhost:8080' }, true],
  [{ PUBLIC_URL: 'http://[::1]:8080' }, true],
  [{ HOST: '0.0.0.0' }, false],
  [{ HOST: '::' }, false],
  [{ HOST: '192.168.1.5' }, false],
  [{ HOST: 'usher.internal' }, false],
  [{ HOST: '127.0.0.1.example.com' }, false],
  [{ PUBLIC_URL: 'https://usher.example.com' }, false],
  [{ TRUST_PROXY: '1' }, false],
  [{ HOST: '0.0.0.0', WEBHOOKS_TO_LOOPBACK: 'true' }, true],
  [{ WEBHOOKS_TO_LOOPBACK: 'false' }, false],
  [supabase, false],
  [{ ...supabase, WEBHOOKS_TO_LOOPBACK: 'true' }, true],
])('with %j webhooks to this machine are allowed: %s', (environment, allowed) => {
  expect(readConfig(environment).webhooksToLoopback).toBe(allowed)
})

test('of Supabase the URL decides, with or without a slash, and an imported signing key is used rather than the shared secret', () => {
  expect(readConfig({ ...supabase, SUPABASE_URL: '' }).database).toEqual({ kind: 'embedded', dataDir: '.usher' })
  const url = 'http://127.0.0.1:54321/'
  expect(readConfig({ ...supabase, SUPABASE_URL: url, SUPABASE_SIGNING_KEY: privateJwk }).database).toMatchObject({
    url: `${url}rest/v1`,
    signingKey: { jwk: JSON.parse(privateJwk) },
  })
})

test('Postmark takes the place of SMTP, with its message stream where that is another', () => {
  const postmark = { POSTMARK_SERVER_TOKEN: 'token', MAIL_FROM: 'tickets@example.com' }
  expect(readConfig(postmark).mail).toEqual({ postmarkToken: 'token' })
  expect(readConfig({ ...postmark, POSTMARK_MESSAGE_STREAM: 'tickets' }).mail).toEqual({
    postmarkToken: 'token',
    messageStream: 'tickets',
  })
})

test.each([
  [{ METRICS_PORT: '3000' }, true],
  [{ METRICS_PORT: '8080', PORT: '8080', HOST: '0.0.0.0' }, true],
  [{ METRICS_PORT: '3000', METRICS_HOST: '10.0.0.5' }, false],
  [{ METRICS_PORT: '0', PORT: '0' }, false],
  [{ METRICS_PORT: '9464' }, false],
  [{}, false],
])('with %j the metrics have the port of the API: %s', (environment, isShared) => {
  expect(doubtOfMetricsPort(readConfig(environment)) !== undefined).toBe(isShared)
})

test.each([
  ['true', true],
  ['1', false],
  ['loopback', false],
  ['false', false],
])('TRUST_PROXY=%s lets callers choose their address: %s', (value, isDoubtful) => {
  expect(doubtOfTrustProxy(readConfig({ TRUST_PROXY: value })) !== undefined).toBe(isDoubtful)
})

test.each([
  ['USHER_SIGNING_KEY', 'no JSON'],
  ['USHER_JWT_SECRET', 'short'],
])('the edge function calls a wrong %s by the name that it has there', (name, value) => {
  const read = () => readFunctionConfig({ ...supabase, COURIER_SECRET: 'x'.repeat(16), [name]: value })
  expect(read).toThrow(new RegExp(`^${name} must be`))
})
