// Checks what Usher uses besides the database, and how others reach it: mail, Redis, the public URL. Sends no e-mail.

import nodemailer, { type NodemailerError } from 'nodemailer'
import { Errors, ServerClient } from 'postmark'
import { reasonOf } from '../../gateway/database-probe.ts'
import { addressesAt, mayOffer, resourceMetadataPath, serverMetadataPath } from '../../http/addresses.ts'
import { hostOf } from '../../process/loopback.ts'
import { type Config, doubtOfTrustProxy, proxiesToTrust } from '../config.ts'
import { type Finding, failed, ok, timeLimit, warning } from './finding.ts'

const timeoutMs = 10_000

/** @param postmark for a stand-in of Postmark's API. */
export async function checkMail(
  { mail, database }: Pick<Config, 'mail' | 'database'>,
  postmark: { requestHost?: string; useHttps?: boolean } = {},
): Promise<Finding> {
  if ('directory' in mail) {
    const message = `E-mails are written to ${mail.directory}, not sent.`
    if (database.kind === 'embedded') return ok('mail', message)
    return warning('mail', message, 'Set POSTMARK_SERVER_TOKEN or SMTP_URL, and MAIL_FROM.')
  }
  return 'smtpUrl' in mail ? checkSmtp(mail.smtpUrl) : checkPostmark(mail.postmarkToken, postmark)
}

async function checkSmtp(url: string): Promise<Finding> {
  const options = {
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    socketTimeout: timeoutMs,
  }
  const transport = nodemailer.createTransport({ ...options, url })
  try {
    await transport.verify()
    const greeted = URL.parse(url)?.username ? 'accepts the login' : 'answers; SMTP_URL has no login'
    return ok('mail', `The SMTP server ${greeted}.`)
  } catch (error) {
    // The server's own words may repeat the password.
    const { code, responseCode } = error as NodemailerError
    const reason = [code, responseCode].filter(Boolean).join(' ')
    if (code === 'EAUTH') {
      const fix = 'Set the user name and password in SMTP_URL, percent-encoded.'
      return failed('mail', `The SMTP server refuses the login (${reason}).`, fix)
    }
    const fix = 'Check host and port in SMTP_URL: smtps:// for 465, smtp:// for 587 and 2525. Many hosts block port 25.'
    return failed('mail', `The SMTP server cannot be used (${reason}).`, fix)
  } finally {
    transport.close()
  }
}

async function checkPostmark(token: string, options: object): Promise<Finding> {
  try {
    await new ServerClient(token, { timeout: timeoutMs / 1000, ...options }).getServer()
    return ok('mail', 'Postmark accepts the token.')
  } catch (error) {
    const { code, statusCode } = error as { code?: unknown; statusCode?: unknown }
    if (error instanceof Errors.InvalidAPIKeyError || statusCode === 401) {
      const fix =
        'Set POSTMARK_SERVER_TOKEN to a token of the server, from its API Tokens page. An account token does not work.'
      return failed('mail', 'Postmark refuses the token.', fix)
    }
    const reason = [statusCode, code].filter(Boolean).join(' ') || 'no answer'
    return failed(
      'mail',
      `Postmark cannot be used (${reason}).`,
      'Check https://status.postmarkapp.com and outgoing connections.',
    )
  }
}

export async function checkRedis(redisUrl: string | undefined): Promise<Finding> {
  if (redisUrl === undefined) return ok('redis', 'REDIS_URL is not set: each API process limits requests on its own.')
  const { createClient } = await import('redis')
  const client = createClient({
    url: redisUrl,
    socket: { connectTimeout: timeoutMs, reconnectStrategy: false },
    commandOptions: { timeout: timeoutMs },
  })
  client.on('error', () => {})
  try {
    await client.connect()
    await client.ping()
    return ok('redis', 'Redis answers.')
  } catch (error) {
    const message = (error as Error).message
    const fix = /WRONGPASS|NOAUTH/.test(message)
      ? 'Set the password in REDIS_URL: redis://default:PASSWORD@HOST:6379.'
      : 'Start Redis, correct REDIS_URL (rediss:// for TLS), or unset it.'
    return failed('redis', `Redis cannot be used (${message}).`, fix)
  } finally {
    client.destroy()
  }
}

/** Whether the API runs where PUBLIC_URL says, over REST and for MCP clients. */
export async function checkPublicUrl({
  publicUrl,
  database,
  oauth,
}: Pick<Config, 'publicUrl' | 'database' | 'oauth'>): Promise<Finding[]> {
  if (publicUrl === undefined) {
    if (database.kind === 'embedded')
      return [ok('public_url', 'PUBLIC_URL is not set: links contain the address Usher listens on.')]
    const fix = 'Set PUBLIC_URL to the public address of the API, such as https://usher.example.com.'
    return [warning('public_url', 'PUBLIC_URL is not set: printed links contain the listening address.', fix)]
  }
  const host = hostOf(publicUrl)
  try {
    const me = await fetch(`${publicUrl}/api/v1/me`, { redirect: 'manual', signal: timeLimit() })
    if (me.status === 503) {
      return [failed('public_url', 'Usher at PUBLIC_URL is starting, or cannot reach its database.', 'Read its log.')]
    }
    if (me.status !== 401 || !(await me.text()).includes('"missing_api_key"')) {
      const fix = `Set PUBLIC_URL to the address of Usher, or make the proxy at ${host} pass requests to its port.`
      return [failed('public_url', `The server at PUBLIC_URL is not Usher (status ${me.status}).`, fix)]
    }
    const mcp = await fetch(`${publicUrl}/api/mcp`, { method: 'POST', redirect: 'manual', signal: timeLimit() })
    return [
      ok('public_url', 'Usher answers at PUBLIC_URL.'),
      checkMcp(mcp.status, host),
      ...(mcp.status === 401 && oauth ? [await checkOAuth(publicUrl)] : []),
    ]
  } catch (error) {
    const fix = `Start it (npx usher start), and check the DNS name, the certificate and the proxy of ${host}.`
    return [failed('public_url', `PUBLIC_URL cannot be reached (${reasonOf(error)}).`, fix)]
  }
}

// The host is checked before the key, which this request does not carry.
function checkMcp(status: number, host: string): Finding {
  if (status === 401) return ok('mcp', `MCP clients can use the host ${host}.`)
  if (status !== 403) {
    return failed('mcp', `/api/mcp at PUBLIC_URL answers ${status}.`, 'Make the proxy pass POST /api/mcp on.')
  }
  return failed(
    'mcp',
    `Usher at PUBLIC_URL refuses the host ${host} to MCP clients.`,
    `Start it with PUBLIC_URL set as here, or with ALLOWED_HOSTS=${host}; the proxy must pass the Host header on.`,
  )
}

/** Clients look for both documents at the root of the host, also where PUBLIC_URL has a path. */
async function checkOAuth(publicUrl: string): Promise<Finding> {
  if (!mayOffer(publicUrl)) return ok('oauth', 'PUBLIC_URL is not https: clients sign in with a key, not by OAuth.')
  const { origin, path, resource, issuer } = addressesAt(publicUrl)
  const paths = [resourceMetadataPath(path), serverMetadataPath(path)]
  const documents = await Promise.all(
    paths.map(async (at) => {
      const answer = await fetch(origin + at, { redirect: 'manual', signal: timeLimit() })
      return (await answer.json().catch(() => ({}))) as { resource?: string; issuer?: string }
    }),
  )
  if (documents[0]?.resource === resource && documents[1]?.issuer === issuer) {
    return ok('oauth', `Clients can sign in at ${resource}.`)
  }
  return failed(
    'oauth',
    `Clients cannot find out how to sign in at ${resource}.`,
    `Make the proxy pass ${paths.join(' and ')} on to Usher, with the whole path; or set OAUTH=false.`,
  )
}

/** Usher itself speaks no TLS: where PUBLIC_URL is https, a proxy is in front. */
export function checkTrustProxy(config: Pick<Config, 'trustProxy' | 'publicUrl'>): Finding[] {
  const doubt = doubtOfTrustProxy(config)
  if (doubt !== undefined) return [warning('trust_proxy', doubt.message, doubt.fix)]
  if (config.trustProxy !== false || !config.publicUrl?.startsWith('https:')) return []
  const message =
    'PUBLIC_URL is https, so a proxy is in front, but TRUST_PROXY is not set: callers count as one address.'
  return [warning('trust_proxy', message, proxiesToTrust)]
}
