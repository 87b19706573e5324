// `usher start` and `usher courier`: starts the parts in order, and stops callers before what they call. /health answers 503
// until everything runs.

import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { mailPreviewAt } from '../apps/mail/mail-preview.ts'
import { announceInstallation, namesOfProject } from '../courier/installation.ts'
import { createCourierRpc } from '../gateway/courier-rpc.ts'
import { DataApi } from '../gateway/data-api.ts'
import { createDatabaseHealth, type DatabaseHealth } from '../gateway/database-health.ts'
import { createProbe, type DataApiAddress } from '../gateway/database-probe.ts'
import { gatewayRpc } from '../gateway/gateway-rpc.ts'
import { createTokens, type SigningKey, type Tokens } from '../gateway/tokens.ts'
import { type HttpListener, isTaken, openListener, urlOf } from '../http/listener.ts'
import { createMetrics } from '../http/metrics.ts'
import { createLimitStores } from '../http/middleware/rate-limit.ts'
import { createRequestLog } from '../http/request-log.ts'
import { withDatabase } from '../local/admin.ts'
import { type Demo, type DemoEvent, findDemo, seedDemo } from '../local/demo.ts'
import { namesOfDataDirectory } from '../local/installation.ts'
import { portsOf } from '../local/run-record.ts'
import { findRunningStack, startEmbeddedStack } from '../local/stack.ts'
import { assertNoProxyBetween } from '../process/loopback.ts'
import { configuredPorts } from '../process/outbound/own-ports.ts'
import { interrupted, StartError } from '../process/start-error.ts'
import { createApp } from './app.ts'
import {
  type Config,
  ConfigError,
  doubtOfMetricsPort,
  doubtOfTrustProxy,
  isForThisMachine,
  isPublished,
} from './config.ts'
import { superviseCourier } from './courier-process.ts'
import { startDeliveries } from './deliveries.ts'

export type Running = {
  /** The listening address. */
  url: string
  /** Base of every link: PUBLIC_URL, or the listening address. */
  publicUrl: string
  /** Page of the e-mails that are written to files, from this machine. Undefined: they are sent, or not shown. */
  mailPreviewUrl: string | undefined
  /** Base URL of /metrics; undefined unless METRICS_PORT is set. */
  metricsUrl: string | undefined
  /** Set on the first start of an embedded stack. */
  demo: Demo | null
  /** Resolves with a sentence if Postgres, PostgREST or the courier has ended by itself and does not start again. */
  failed: Promise<string>
  stop(): Promise<void>
}

type Backend = {
  address: DataApiAddress
  signingKey: SigningKey
  /** Names of where the database was found. */
  installation: string[]
  /** Of the first start. */
  demo: Demo | null
  /** What the documentation page fills in. */
  demoEvent: DemoEvent | undefined
  /** Records where the API and its metrics listen, for other commands. */
  note(listeners: { api: HttpListener; metrics: HttpListener | undefined }): void
  /** Ports of this machine that Postgres and PostgREST use. */
  ports: number[]
  failed: Promise<string>
  stop(): Promise<void>
}

type Say = (message: string) => void

const probeTimeoutMs = 10_000
const longestPauseSeconds = 30
const never = new Promise<string>(() => {})
const neverAborts = new AbortController().signal

/**
 * @param stopping aborts the start; a service that has started is stopped by its `stop`.
 * @param connect starts the database, or joins one that runs.
 */
export async function start(
  config: Config,
  log: Logger,
  progress: Say,
  stopping = neverAborts,
  connect = connectBackend,
): Promise<Running> {
  const ofProxy = doubtOfTrustProxy(config)
  if (ofProxy !== undefined) progress(`Warning: ${ofProxy.message} ${ofProxy.fix}`)
  const ofPort = doubtOfMetricsPort(config)
  if (ofPort !== undefined) throw new ConfigError(`${ofPort.message} ${ofPort.fix}`)
  // The port first: no database is started for a port that is taken.
  const listener = await openApiListener(config)
  const opened: Array<() => Promise<void>> = [listener.close]
  try {
    const metricsListener = await openMetricsListener(config)
    if (metricsListener) opened.push(metricsListener.close)
    const stores = await createLimitStores(config.redisUrl, log).catch((error: Error) => {
      throw new StartError(`REDIS_URL cannot be reached (${error.message}). Start Redis, or unset REDIS_URL.`)
    })
    opened.push(stores.close)
    const backend = await connect(config, log, progress)
    opened.push(backend.stop)
    backend.note({ api: listener, metrics: metricsListener })
    warnOfLoopback(config, progress)

    const publicUrl = config.publicUrl ?? listener.url
    const tokens = await createTokens(backend.signingKey, publicUrl, backend.installation)
    const { dataApi, health } = await Promise.race([
      reach(config, backend.address, tokens, progress, stopping),
      backend.failed.then((sentence) => Promise.reject(new StartError(sentence))),
    ])
    const ownPorts = [...portsOfListeners(listener, metricsListener), ...backend.ports, ...configuredPorts(config)]
    const { rpc, metrics, isHeld, fallSilent } = await announce(dataApi, tokens, metricsListener, log)
    opened.push(async () => fallSilent())
    const courier = config.deliveries
      ? await superviseCourier(config, backend.address, tokens, metrics?.delivered, ownPorts, log)
      : { failed: never, stop: async () => {} }
    opened.push(courier.stop)

    const mailFolder = previewedMailFolder(config)
    const requestLog = createRequestLog(gatewayRpc(dataApi, tokens), log)
    opened.push(requestLog.stop)
    listener.serve(
      createApp({
        dataApi,
        health,
        isHeld,
        tokens,
        // On this machine: while Postgres works on one, another one of a processor is on its way.
        ...(config.database.kind === 'embedded' && { callsAtOnce: Math.min(16, 2 * availableParallelism()) }),
        log,
        requestLog,
        allowedHosts: [...config.allowedHosts, ...(config.publicUrl ? [new URL(config.publicUrl).hostname] : [])],
        trustProxy: config.trustProxy,
        stores,
        ...(config.postmarkWebhookSecret !== undefined && {
          postmark: { secret: config.postmarkWebhookSecret, rpc },
        }),
        mailFrom: config.mailFrom,
        publicUrl: config.publicUrl,
        hstsIncludeSubDomains: config.hstsIncludeSubDomains,
        ...(!config.oauth && { oauth: false as const }),
        ...(mailFolder !== undefined && { mailFolder }),
        ...(backend.demoEvent && { demo: backend.demoEvent }),
        ...(metrics && { measure: metrics.requests }),
      }),
    )
    return {
      url: listener.url,
      publicUrl,
      mailPreviewUrl: mailFolder === undefined ? undefined : mailPreviewAt(listener.url),
      metricsUrl: metricsListener?.url,
      demo: backend.demo,
      failed: Promise.race([backend.failed, courier.failed]),
      async stop() {
        fallSilent()
        await Promise.all([listener.close(), metricsListener?.close(), courier.stop()])
        await requestLog.stop()
        await Promise.all([backend.stop(), stores.close()])
      },
    }
  } catch (error) {
    for (const close of opened.reverse()) await close()
    throw error
  }
}

/**
 * The Data API client, once the database answers: an unreachable one is tried again without limit.
 * @throws StartError, naming the setting that is wrong, or when the signal aborts.
 */
async function reach(
  { database }: Config,
  address: DataApiAddress,
  tokens: Tokens,
  say: Say,
  signal: AbortSignal,
): Promise<{ dataApi: DataApi; health: DatabaseHealth }> {
  const probe = createProbe(address, tokens)
  const name = database.kind === 'supabase' ? 'SUPABASE_URL' : 'The database'
  for (let pause = 1; ; pause = Math.min(pause * 2, longestPauseSeconds)) {
    const result = await probe(AbortSignal.any([signal, AbortSignal.timeout(probeTimeoutMs)]))
    if (result.kind === 'answered') break
    if (result.kind === 'misconfigured') throw new StartError(`${result.message} ${result.fix}`)
    if (!signal.aborted) say(`${name} cannot be reached (${result.reason}). Trying again in ${pause} s …`)
    await sleep(pause * 1000, undefined, { signal }).catch(() => {})
    if (signal.aborted) throw interrupted()
  }
  const health = createDatabaseHealth(probe)
  return { dataApi: new DataApi(address, tokens, { health }), health }
}

function warnOfLoopback(config: Config, say: Say): void {
  if (!config.webhooksToLoopback || isForThisMachine(config)) return
  say(
    'Warning: WEBHOOKS_TO_LOOPBACK lets every holder of a key with events:write send requests to services on this machine and ' +
      'read the answers. Unset it unless all of them are trusted.',
  )
}

/** `usher courier`: deliveries only, beside an API that runs elsewhere. */
export async function runCourier(
  config: Config,
  log: Logger,
  progress: Say,
  stopping = neverAborts,
): Promise<Pick<Running, 'metricsUrl' | 'stop'>> {
  const metricsListener = await openMetricsListener(config)
  try {
    const { address, signingKey, installation, ports, webhooksToLoopback, publicUrl } = await joinBackend(config)
    const joined = { ...config, webhooksToLoopback }
    warnOfLoopback(joined, progress)
    const tokens = await createTokens(signingKey, publicUrl, installation)
    const { dataApi } = await reach(config, address, tokens, progress, stopping)
    const ownPorts = [...portsOfListeners(metricsListener), ...ports, ...configuredPorts(config)]
    const { rpc, metrics, fallSilent } = await announce(dataApi, tokens, metricsListener, log)
    const deliveries = startDeliveries({ ...joined, ownPorts }, rpc, log, metrics?.delivered)
    return {
      metricsUrl: metricsListener?.url,
      async stop() {
        fallSilent()
        await Promise.all([metricsListener?.close(), deliveries.stop()])
      },
    }
  } catch (error) {
    await metricsListener?.close()
    throw error
  }
}

/** Announces the installation, and serves metrics where a port is configured. */
async function announce(dataApi: DataApi, tokens: Tokens, metricsListener: HttpListener | undefined, log: Logger) {
  const rpc = createCourierRpc(dataApi, tokens)
  const metrics = metricsListener && createMetrics(rpc, log)
  if (metrics) metricsListener.serve(metrics.listener)
  const { isHeld, stop: fallSilent } = await announceInstallation(rpc, log)
  return { rpc, metrics, isHeld, fallSilent }
}

type Joined = Pick<Backend, 'address' | 'signingKey' | 'installation' | 'ports'> &
  Pick<Config, 'webhooksToLoopback' | 'publicUrl'>

async function joinBackend(config: Config): Promise<Joined> {
  const { database, webhooksToLoopback, publicUrl } = config
  if (database.kind === 'supabase') {
    const { url, publishableKey, signingKey } = database
    const installation = namesOfProject(url)
    const address = { url, projectKey: publishableKey }
    return { address, signingKey, installation, ports: [], webhooksToLoopback, publicUrl }
  }
  assertNoProxyBetween()
  const running = await findRunningStack(database.dataDir)
  if (running === null) throw new StartError(`No Usher runs on ${database.dataDir}. Start it with: npm start`)
  const { record } = running
  const { api } = record
  return {
    publicUrl: publicUrl ?? (api && urlOf(api)),
    address: { url: running.dataApiUrl },
    signingKey: { secret: running.jwtSecret },
    installation: namesOfDataDirectory(database.dataDir),
    ports: portsOf(record),
    // Whether others can call the API depends on its configuration, not on the courier's.
    webhooksToLoopback: config.webhooksToLoopbackSetting ?? (webhooksToLoopback && api?.forThisMachine !== false),
  }
}

/** A database that others keep running: a Supabase project, or the stack of scripts/dev.ts. */
export async function joinRunning(config: Config): Promise<Backend> {
  const { database } = config
  const stack = database.kind === 'supabase' ? null : await findRunningStack(database.dataDir)
  const demoEvent = stack === null ? undefined : await withDatabase(stack.databaseUrl, findDemo)
  return { ...(await joinBackend(config)), demo: null, demoEvent, note: () => {}, failed: never, stop: async () => {} }
}

async function connectBackend(config: Config, log: Logger, progress: Say): Promise<Backend> {
  const { database } = config
  if (database.kind === 'supabase') return joinRunning(config)
  const report = (message: string) => log.warn(message)
  const stack = await startEmbeddedStack({ dataDir: database.dataDir, progress, report })
  try {
    const [demo, demoEvent] = await withDatabase(stack.databaseUrl, async (client) => [
      await seedDemo(client),
      await findDemo(client),
    ])
    return {
      address: { url: stack.dataApiUrl },
      signingKey: { secret: stack.jwtSecret },
      installation: namesOfDataDirectory(database.dataDir),
      demo,
      demoEvent,
      note({ api, metrics }) {
        stack.note({
          api: {
            ...{ host: config.host, port: portOf(api), forThisMachine: isForThisMachine(config) },
            ...(config.publicUrl !== undefined && { publicUrl: config.publicUrl }),
          },
          ...(metrics && config.metrics && { metrics: { host: config.metrics.host, port: portOf(metrics) } }),
        })
      },
      ports: stack.ports,
      failed: stack.failed,
      stop: stack.stop,
    }
  } catch (error) {
    await stack.stop()
    throw error
  }
}

const portOf = ({ url }: HttpListener): number => Number(new URL(url).port) || 80
const portsOfListeners = (...listeners: (HttpListener | undefined)[]): number[] =>
  listeners.filter((listener) => listener !== undefined).map(portOf)

/** E-mails written to files are shown only where everything runs on one machine, and for it. */
function previewedMailFolder(config: Config): string | undefined {
  const { database, mail } = config
  return database.kind === 'embedded' && !isPublished(config) && 'directory' in mail ? mail.directory : undefined
}

async function openApiListener(config: Config): Promise<HttpListener> {
  const { database } = config
  try {
    return await openListener(config)
  } catch (error) {
    if (!isTaken(error) || database.kind !== 'embedded' || !(await findRunningStack(database.dataDir))) throw error
    throw new StartError(
      `Usher is already running on ${database.dataDir}. Stop it first, or set both USHER_DATA_DIR and PORT for another one.`,
    )
  }
}

async function openMetricsListener({ metrics }: Config): Promise<HttpListener | undefined> {
  return metrics && openListener(metrics, { host: 'METRICS_HOST', port: 'METRICS_PORT' })
}
