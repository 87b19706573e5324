// Reads and validates the configuration; an error names the variable and the values it may have. No other module of the API
// reads the environment. `.env.example` explains each variable.

import { createPrivateKey, type JsonWebKey } from 'node:crypto'
import { join } from 'node:path'
import type { JWK } from 'jose'
import * as z from 'zod'
import type { MailOptions } from '../courier/mail/index.ts'
import type { SigningKey } from '../gateway/tokens.ts'
import { hostOf, isLoopback } from '../process/loopback.ts'

export class ConfigError extends Error {}

const number = (pattern: RegExp, complaint: string) => z.string().regex(pattern, complaint).transform(Number)
const days = number(/^[1-9]\d{0,3}$/, 'must be a number of days from 1 to 9999')
const flag = z.enum(['true', 'false'], 'must be true or false').transform((value) => value === 'true')
const text = z.string().trim().min(1, 'must not be empty')
const port = number(/^\d{1,5}$/, 'must be a port number from 0 to 65535').refine(
  (port) => port <= 65535,
  'must be a port number from 0 to 65535',
)
const httpUrl = z.url({ protocol: /^https?$/, error: 'must be an http or https URL' })

export const Environment = z.object({
  PORT: port.default(3000),
  HOST: text.default('127.0.0.1'),
  MAX_CONNECTIONS: number(/^[1-9]\d{1,5}$/, 'must be a number of connections from 10 to 999999').default(2_000),
  KEEP_ALIVE_SECONDS: number(/^[1-9]\d{0,2}$/, 'must be a number of seconds from 1 to 999').default(5),
  PUBLIC_URL: httpUrl
    .refine((url) => !/[?#]/.test(url), 'must not contain a query or a fragment')
    .refine((url) => !hasCredentials(url), 'must not contain a user name or a password')
    .transform((url) => new URL(url).href.replace(/\/+$/, ''))
    .optional(),
  HSTS_INCLUDE_SUBDOMAINS: flag.default(false),
  OAUTH: flag.default(true),
  METRICS_PORT: port.optional(),
  METRICS_HOST: text.default('127.0.0.1'),
  USHER_DATA_DIR: text.default('.usher'),
  LOG_LEVEL: z
    .enum(
      ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'],
      'must be one of trace, debug, info, warn, error, fatal, silent',
    )
    .default('info'),
  LOG_FORMAT: z.enum(['json', 'pretty'], 'must be json or pretty').optional(),
  ALLOWED_HOSTS: z
    .string()
    .transform((hosts) =>
      hosts
        .split(',')
        .map((host) => host.trim())
        .filter(Boolean),
    )
    .refine(
      (hosts) => hosts.every((host) => /^[A-Za-z0-9.-]+$|^\[[0-9a-fA-F:]+\]$/.test(host)),
      'must be host names without scheme or port, separated by commas',
    )
    .default([]),
  TRUST_PROXY: z
    .string()
    .refine(
      (value) => /^(true|false|\d{1,2})$/.test(value) || value.split(',').every(isAddressOrSubnet),
      'must be true, false, a number of proxies, or their addresses or subnets, separated by commas',
    )
    // No proxies are what false says.
    .transform((value) =>
      /^\d+$/.test(value) ? Number(value) || false : value === 'true' || (value !== 'false' && value),
    )
    .default(false),
  REDIS_URL: z.url({ protocol: /^rediss?$/, error: 'must be a redis:// or rediss:// URL' }).optional(),
  SUPABASE_URL: httpUrl.optional(),
  SUPABASE_PUBLISHABLE_KEY: text.optional(),
  SUPABASE_JWT_SECRET: z.string().min(32, 'must be at least 32 characters').optional(),
  SUPABASE_SIGNING_KEY: z
    .string()
    .transform((json, context) => {
      try {
        // `supabase gen signing-key` prints key_ops [sign, verify], which Web Crypto refuses for a private key.
        const { key_ops: _, use: __, ...jwk }: JWK = JSON.parse(json)
        createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' })
        return jwk
      } catch {}
      context.addIssue('must be a private JSON Web Key, as `supabase gen signing-key` prints it')
      return z.NEVER
    })
    .optional(),
  POSTMARK_SERVER_TOKEN: text.optional(),
  POSTMARK_MESSAGE_STREAM: text.optional(),
  POSTMARK_WEBHOOK_SECRET: z.string().min(16, 'must be at least 16 characters').optional(),
  SMTP_URL: z.url({ protocol: /^smtps?$/, error: 'must be an smtp:// or smtps:// URL' }).optional(),
  MAIL_FROM: z.email('must be an e-mail address').optional(),
  RETENTION_DAYS: days.default(30),
  AUDIT_RETENTION_DAYS: days.default(365),
  WEBHOOK_TIMEOUT_SECONDS: number(/^([1-9]|[1-5]\d)$/, 'must be a number of seconds from 1 to 59').default(15),
  WEBHOOKS_TO_LOOPBACK: flag.optional(),
  DELIVERIES: flag.default(true),
  DATABASE_URL: z.url({ protocol: /^postgres(ql)?$/, error: 'must be a postgresql:// URL' }).optional(),
})

function hasCredentials(url: string): boolean {
  const { username, password } = URL.parse(url) ?? { username: '', password: '' }
  return username !== '' || password !== ''
}

function isAddressOrSubnet(text: string): boolean {
  const one = z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6(), z.enum(['loopback', 'linklocal', 'uniquelocal'])])
  return one.safeParse(text.trim()).success
}

/** The database: an embedded stack in a folder, or a Supabase project. */
export type Database =
  | { kind: 'embedded'; dataDir: string }
  | { kind: 'supabase'; url: string; publishableKey: string; signingKey: SigningKey }

export type Config = ReturnType<typeof readConfig>

/** @throws ConfigError, naming every wrong variable and its allowed values. */
export function readConfig(environment: NodeJS.ProcessEnv) {
  // An empty variable counts as not set: .env files and CI systems leave one out that way.
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''))
  const result = Environment.safeParse(given)
  if (!result.success) {
    throw new ConfigError(result.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}.`).join('\n'))
  }
  const env = result.data
  const reach = { host: env.HOST, publicUrl: env.PUBLIC_URL, trustProxy: env.TRUST_PROXY, database: databaseOf(env) }
  return {
    /** `publicUrl` is the base of every link, without a trailing slash. Undefined: the listening address. */
    ...reach,
    port: env.PORT,
    maxConnections: env.MAX_CONNECTIONS,
    keepAliveSeconds: env.KEEP_ALIVE_SECONDS,
    hstsIncludeSubDomains: env.HSTS_INCLUDE_SUBDOMAINS,
    /** Whether clients of MCP may sign in by OAuth, where PUBLIC_URL allows it. */
    oauth: env.OAUTH,
    /** Where /metrics is served. Undefined: not at all. */
    metrics: env.METRICS_PORT === undefined ? undefined : { host: env.METRICS_HOST, port: env.METRICS_PORT },
    logLevel: env.LOG_LEVEL,
    /** Undefined: readable lines in a terminal, else JSON. */
    logFormat: env.LOG_FORMAT,
    allowedHosts: env.ALLOWED_HOSTS,
    redisUrl: env.REDIS_URL,
    ...mailOf(env),
    /** Password of Postmark's delivery and bounce webhooks. Undefined: they are not accepted. */
    postmarkWebhookSecret: env.POSTMARK_WEBHOOK_SECRET,
    retentionDays: env.RETENTION_DAYS,
    auditRetentionDays: env.AUDIT_RETENTION_DAYS,
    webhookTimeoutSeconds: env.WEBHOOK_TIMEOUT_SECONDS,
    /** Whether webhooks may be sent to this machine, without TLS. Default: only if Usher itself is reachable from here only. */
    webhooksToLoopback: env.WEBHOOKS_TO_LOOPBACK ?? isForThisMachine(reach),
    webhooksToLoopbackSetting: env.WEBHOOKS_TO_LOOPBACK,
    /** Whether `usher start` delivers webhooks and e-mails, or leaves them to `usher courier`. */
    deliveries: env.DELIVERIES,
    /** For the command line: Postgres as the role `postgres`. Undefined: that of the embedded stack. */
    databaseUrl: env.DATABASE_URL,
  }
}

/** What is wrong, and what mends it. */
export type Doubt = { message: string; fix: string }

export const proxiesToTrust = 'Set TRUST_PROXY to the number of proxies in front, or to their addresses.'

/** A setting under which callers choose the address that they are limited by. */
export function doubtOfTrustProxy({ trustProxy }: Pick<Config, 'trustProxy'>): Doubt | undefined {
  if (trustProxy !== true) return undefined
  const message =
    'TRUST_PROXY=true believes every address in X-Forwarded-For, so callers can evade limits with a new address for each request.'
  return { message, fix: proxiesToTrust }
}

/** Two listeners cannot have one port, unless each has an address of its own. */
export function doubtOfMetricsPort({ metrics, host, port }: Config): Doubt | undefined {
  if (metrics === undefined || port === 0 || metrics.port !== port) return undefined
  const everywhere = ['0.0.0.0', '::']
  if (host !== metrics.host && ![host, metrics.host].some((each) => everywhere.includes(each))) return undefined
  return { message: `METRICS_PORT and PORT are both ${port}.`, fix: 'Set METRICS_PORT to another port, such as 9464.' }
}

type Reach = {
  database: Database
  host: string
  publicUrl: string | undefined
  trustProxy: boolean | number | string
}

/** Whether only this machine can call the API. If others can, their keys must not reach services on this machine. */
export function isForThisMachine(config: Reach): boolean {
  return config.database.kind === 'embedded' && isLoopback(config.host) && !isPublished(config)
}

/** Whether a proxy passes requests of others on. One on this machine is another caller from it, and may send no header that tells. */
export const isPublished = ({ publicUrl, trustProxy }: Pick<Reach, 'publicUrl' | 'trustProxy'>): boolean =>
  trustProxy !== false || (publicUrl !== undefined && !isLoopback(hostOf(publicUrl)))

/** Without a mail service, e-mails are written to files in the data directory. */
function mailOf(env: z.infer<typeof Environment>): { mail: MailOptions; mailFrom: string } {
  if (env.POSTMARK_SERVER_TOKEN !== undefined && env.SMTP_URL !== undefined) {
    throw new ConfigError('POSTMARK_SERVER_TOKEN and SMTP_URL are both set: keep one of them.')
  }
  if (env.POSTMARK_SERVER_TOKEN === undefined && env.SMTP_URL === undefined) {
    return { mail: { directory: join(env.USHER_DATA_DIR, 'mail') }, mailFrom: env.MAIL_FROM ?? 'tickets@localhost' }
  }
  if (env.MAIL_FROM === undefined) throw new ConfigError('MAIL_FROM must be set: the sender address of tickets.')
  if (env.SMTP_URL !== undefined) return { mail: { smtpUrl: env.SMTP_URL }, mailFrom: env.MAIL_FROM }
  const mail = { postmarkToken: env.POSTMARK_SERVER_TOKEN as string, messageStream: env.POSTMARK_MESSAGE_STREAM }
  return { mail, mailFrom: env.MAIL_FROM }
}

function databaseOf(env: z.infer<typeof Environment>): Database {
  if (env.SUPABASE_URL === undefined) return { kind: 'embedded', dataDir: env.USHER_DATA_DIR }
  const publishableKey = env.SUPABASE_PUBLISHABLE_KEY
  const secret = env.SUPABASE_JWT_SECRET === undefined ? undefined : { secret: env.SUPABASE_JWT_SECRET }
  const signingKey = env.SUPABASE_SIGNING_KEY === undefined ? secret : { jwk: env.SUPABASE_SIGNING_KEY }
  if (publishableKey !== undefined && signingKey !== undefined) {
    return { kind: 'supabase', url: `${env.SUPABASE_URL.replace(/\/+$/, '')}/rest/v1`, publishableKey, signingKey }
  }
  const missing = [
    publishableKey === undefined &&
      'SUPABASE_PUBLISHABLE_KEY must be set with SUPABASE_URL: the publishable (or anon) key of the project.',
    signingKey === undefined &&
      'SUPABASE_JWT_SECRET or SUPABASE_SIGNING_KEY must be set with SUPABASE_URL: the secret of the project, or a private signing key imported into it.',
  ]
  throw new ConfigError(missing.filter(Boolean).join('\n'))
}
