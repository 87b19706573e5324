// `usher start` and `usher courier`: bring everything up in order, and take down first what calls and then what is called. In
// comes configuration, out goes a running service; it answers /health with 503 until all of it is there.

import type { Logger } from 'pino'
import { withDatabase } from './admin.ts'
import type { Config, Database } from './config.ts'
import { startCourier } from './courier/courier.ts'
import { startHousekeeping } from './courier/housekeeping.ts'
import { openLanes } from './courier/lanes.ts'
import { createOutbox } from './courier/outbox.ts'
import { type Demo, seedDemo } from './demo.ts'
import { type Door, isTaken, openDoor } from './door.ts'
import { findRunningStack, startEmbeddedStack } from './embedded/stack.ts'
import { StartError } from './embedded/start-error.ts'
import { createDataApi, type DataApi } from './gateway/data-api.ts'
import { createLimitStores, type LimitStores } from './gateway/rate-limit.ts'
import { createTokens, type SigningKey, type Tokens } from './gateway/tokens.ts'
import { createMetrics } from './metrics.ts'
import { createApp } from './server.ts'

export type Running = {
  /** Base URL, as printed for a newcomer. */
  url: string
  /** Where tickets are shown that are not sent. */
  outboxUrl: string | undefined
  /** Where Prometheus may ask; undefined unless METRICS_PORT is set. */
  metricsUrl: string | undefined
  /** Set on the first start of an embedded stack. */
  demo: Demo | null
  /** Resolves with a sentence when something the service needs ends by itself. */
  failed: Promise<string>
  stop(): Promise<void>
}

type Backend = {
  dataApi: DataApi
  signingKey: SigningKey
  demo: Demo | null
  failed: Promise<string>
  stop(): Promise<void>
}

const never = new Promise<string>(() => {})
// Deliveries under way get this long to finish, as requests do; one that takes longer is given back for another courier to send.
const settleMilliseconds = 3_000

export async function start(config: Config, log: Logger, progress: (message: string) => void): Promise<Running> {
  // The port first: finding it taken must not cost the start of a database.
  const door = await openApiDoor(config)
  const opened: Array<() => Promise<void>> = [door.close]
  try {
    const metricsDoor = await openMetricsDoor(config)
    if (metricsDoor) opened.push(metricsDoor.close)
    const stores = await connectLimitStores(config, log)
    opened.push(stores.close)
    const backend = await connectBackend(config, progress)
    opened.push(backend.stop)

    const tokens = await createTokens(backend.signingKey)
    const { outbox, metrics, ...courier } = createCourier(config, backend.dataApi, tokens, metricsDoor, log)
    opened.push(courier.stop)

    const outboxFolder = outboxFolderOf(config)
    door.serve(
      createApp({
        dataApi: backend.dataApi,
        tokens,
        log,
        allowedHosts: config.allowedHosts,
        trustProxy: config.trustProxy,
        stores,
        ...(config.postmarkWebhookSecret !== undefined && {
          postmark: { secret: config.postmarkWebhookSecret, outbox },
        }),
        ...(outboxFolder !== undefined && { outbox: outboxFolder }),
        onWritten: courier.nudge,
        ...(metrics && { measure: metrics.requests }),
      }),
    )
    return {
      url: door.url,
      outboxUrl: outboxFolder && `${door.url}/outbox`,
      metricsUrl: metricsDoor?.url,
      demo: backend.demo,
      failed: backend.failed,
      async stop() {
        await Promise.all([door.close(), metricsDoor?.close(), courier.stop()])
        await Promise.all([backend.stop(), stores.close()])
      },
    }
  } catch (error) {
    for (const close of opened.reverse()) await close()
    throw error
  }
}

/** `usher courier`: deliveries alone, beside an API that runs elsewhere. */
export async function runCourier(config: Config, log: Logger): Promise<Pick<Running, 'metricsUrl' | 'stop'>> {
  const metricsDoor = await openMetricsDoor(config)
  try {
    const { dataApi, signingKey } = await joinBackend(config)
    const courier = createCourier(config, dataApi, await createTokens(signingKey), metricsDoor, log)
    return {
      metricsUrl: metricsDoor?.url,
      async stop() {
        await Promise.all([metricsDoor?.close(), courier.stop()])
      },
    }
  } catch (error) {
    await metricsDoor?.close()
    throw error
  }
}

/** Deliveries begin with it, and so do metrics where there is a door for them. */
function createCourier(config: Config, dataApi: DataApi, tokens: Tokens, metricsDoor: Door | undefined, log: Logger) {
  const outbox = createOutbox(dataApi, tokens)
  const metrics = metricsDoor && createMetrics(outbox, log)
  if (metrics) metricsDoor.serve(metrics.listener)
  const { lanes, close } = openLanes(config, outbox, log, metrics?.delivered)
  const courier = startCourier(lanes, log)
  const housekeeping = startHousekeeping(outbox, config.retentionDays, log)
  return {
    outbox,
    metrics,
    nudge: courier.nudge,
    async stop() {
      housekeeping.stop()
      await courier.stop(settleMilliseconds, close)
    },
  }
}

async function joinBackend({ database }: Config): Promise<Pick<Backend, 'dataApi' | 'signingKey'>> {
  if (database.kind === 'supabase') return connectProject(database)
  const running = await findRunningStack(database.dataDir)
  if (running === null) throw new StartError(`No Usher runs on ${database.dataDir}. Start it with: npm start`)
  return { dataApi: createDataApi(running.dataApiUrl), signingKey: { secret: running.jwtSecret } }
}

const connectProject = ({ url, publishableKey, signingKey }: Extract<Database, { kind: 'supabase' }>) => ({
  dataApi: createDataApi(url, publishableKey),
  signingKey,
})

async function connectLimitStores({ redisUrl }: Config, log: Logger): Promise<LimitStores> {
  try {
    return await createLimitStores(redisUrl, (error) => log.error({ err: error }, 'redis'))
  } catch (error) {
    throw new StartError(`REDIS_URL cannot be reached (${(error as Error).message}). Start Redis, or unset REDIS_URL.`)
  }
}

async function connectBackend(config: Config, progress: (message: string) => void): Promise<Backend> {
  const { database } = config
  if (database.kind === 'supabase') {
    return { ...connectProject(database), demo: null, failed: never, stop: async () => {} }
  }
  const stack = await startEmbeddedStack({ dataDir: database.dataDir, progress })
  try {
    return {
      dataApi: createDataApi(stack.dataApiUrl),
      signingKey: { secret: stack.jwtSecret },
      demo: await withDatabase(stack.databaseUrl, seedDemo),
      failed: stack.failed,
      stop: stack.stop,
    }
  } catch (error) {
    await stack.stop()
    throw error
  }
}

/** Tickets in files are shown where everything runs on one machine. */
function outboxFolderOf({ database, trustProxy, mail }: Config): string | undefined {
  return database.kind === 'embedded' && trustProxy === false && 'directory' in mail ? mail.directory : undefined
}

async function openApiDoor(config: Config): Promise<Door> {
  const { database } = config
  try {
    return await openDoor(config)
  } catch (error) {
    if (!isTaken(error) || database.kind !== 'embedded' || !(await findRunningStack(database.dataDir))) throw error
    throw new StartError(
      `Usher is already running on ${database.dataDir}. Stop it first, or set both USHER_DATA_DIR and PORT for another one.`,
    )
  }
}

async function openMetricsDoor({ metrics }: Config): Promise<Door | undefined> {
  return metrics && openDoor(metrics, { host: 'METRICS_HOST', port: 'METRICS_PORT' })
}
