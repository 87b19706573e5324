// `usher start` and `usher courier`: bring everything up in order, and take down first what calls and then what is called. In
// comes configuration, out goes a running service; it answers /health with 503 until all of it is there.

import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Logger } from 'pino'
import { withDatabase } from './admin.ts'
import type { Config, Database } from './config.ts'
import { startCourier } from './courier/courier.ts'
import { startHousekeeping } from './courier/housekeeping.ts'
import { openLanes } from './courier/lanes.ts'
import { createOutbox } from './courier/outbox.ts'
import { type Demo, seedDemo } from './demo.ts'
import { findRunningStack, startEmbeddedStack } from './embedded/stack.ts'
import { StartError } from './embedded/start-error.ts'
import { createDataApi, type DataApi } from './gateway/data-api.ts'
import { createLimitStores, type LimitStores } from './gateway/rate-limit.ts'
import { createTokens, type SigningKey, type Tokens } from './gateway/tokens.ts'
import { createApp } from './server.ts'

export type Running = {
  /** Base URL, as printed for a newcomer. */
  url: string
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
// Requests under way get this long to finish; the children need the rest of the ten seconds a supervisor waits.
const drainMilliseconds = 3_000
// So do deliveries; one that takes longer is sent again when its claim has run out.
const settleMilliseconds = 3_000

export async function start(config: Config, log: Logger, progress: (message: string) => void): Promise<Running> {
  // The port first: finding it taken must not cost the start of a database.
  const door = await openDoor(config)
  const opened: Array<() => Promise<void>> = [() => door.close()]
  try {
    const stores = await connectLimitStores(config, log)
    opened.push(stores.close)
    const backend = await connectBackend(config, progress)
    opened.push(backend.stop)

    const tokens = await createTokens(backend.signingKey)
    const courier = createCourier(config, backend.dataApi, tokens, log)
    opened.push(courier.stop)

    door.serve(
      createApp({
        dataApi: backend.dataApi,
        tokens,
        log,
        allowedHosts: config.allowedHosts,
        trustProxy: config.trustProxy,
        stores,
        ...(config.postmarkWebhookSecret !== undefined && {
          postmark: { secret: config.postmarkWebhookSecret, outbox: courier.outbox },
        }),
        // Tickets in files are shown where everything runs on one machine.
        ...(config.database.kind === 'embedded' &&
          config.trustProxy === false &&
          'directory' in config.mail && { outbox: config.mail.directory }),
        onWritten: courier.nudge,
      }),
    )
    return {
      url: door.url,
      demo: backend.demo,
      failed: backend.failed,
      async stop() {
        await Promise.all([door.close(), courier.stop()])
        await Promise.all([backend.stop(), stores.close()])
      },
    }
  } catch (error) {
    for (const close of opened.reverse()) await close()
    throw error
  }
}

/** `usher courier`: deliveries alone, beside an API that runs elsewhere. */
export async function runCourier(config: Config, log: Logger): Promise<{ stop(): Promise<void> }> {
  const { dataApi, signingKey } = await joinBackend(config)
  return createCourier(config, dataApi, await createTokens(signingKey), log)
}

function createCourier(config: Config, dataApi: DataApi, tokens: Tokens, log: Logger) {
  const outbox = createOutbox(dataApi, tokens)
  const { lanes, close } = openLanes(config, outbox, log)
  const courier = startCourier(lanes, log)
  const housekeeping = startHousekeeping(outbox, config.retentionDays, log)
  return {
    outbox,
    nudge: courier.nudge,
    async stop() {
      housekeeping.stop()
      await courier.stop(settleMilliseconds)
      await close()
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

type Door = { url: string; serve(listener: RequestListener): void; close(): Promise<void> }

async function openDoor({ host, port, database }: Config): Promise<Door> {
  const notYet: RequestListener = (_req, res) =>
    res.writeHead(503, { 'Content-Type': 'application/json', 'Retry-After': '1' }).end('{"status":"starting"}\n')
  let listener = notYet
  const server = createServer((req, res) => listener(req, res))
  try {
    await listen(server, host, port)
  } catch (error) {
    if (isCode(error, 'EADDRINUSE') && database.kind === 'embedded' && (await findRunningStack(database.dataDir))) {
      throw new StartError(
        `Usher is already running on ${database.dataDir}. Stop it first, or set both USHER_DATA_DIR and PORT for another one.`,
      )
    }
    throw refusalToListen(error, host, port)
  }
  const { port: bound } = server.address() as AddressInfo

  return {
    url: `http://${host === '0.0.0.0' || host === '::' ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${bound}`,
    serve(next) {
      listener = next
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      // A connection that was busy when the server closed stays open after its answer, until it is told.
      const tidy = setInterval(() => server.closeIdleConnections(), 50)
      const impatient = setTimeout(() => server.closeAllConnections(), drainMilliseconds)
      await closed
      clearInterval(tidy)
      clearTimeout(impatient)
    },
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => resolve())
  })
}

function refusalToListen(error: unknown, host: string, port: number): unknown {
  if (isCode(error, 'EADDRINUSE')) {
    return new StartError(`Port ${port} on ${host} is taken by another program. Stop it, or set PORT to a free port.`)
  }
  if (isCode(error, 'EACCES')) {
    return new StartError(`Port ${port} on ${host} needs more rights than this user has. Set PORT to one above 1023.`)
  }
  if (isCode(error, 'EADDRNOTAVAIL') || isCode(error, 'ENOTFOUND')) {
    return new StartError(`HOST ${host} is no address of this machine. Set HOST to 127.0.0.1, or to 0.0.0.0 for all.`)
  }
  return error
}

const isCode = (error: unknown, code: string) => (error as NodeJS.ErrnoException).code === code
