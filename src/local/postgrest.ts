// Runs PostgREST, the Data API, and resolves once it is ready. It is configured here and in the database (the pre-request function, by
// migration). It must never read PGRST_ variables meant for another PostgREST, nor listen beyond loopback.

import { commandOf, type ProcessIdentity, type StopStep, stopProcess } from '../process/processes.ts'
import { StartError } from '../process/start-error.ts'
import { databaseUrlFor } from './client.ts'
import { type DataDirectory, writeFileAtomically } from './data-directory.ts'
import { freePort } from './ports.ts'
import type { Secrets } from './secrets.ts'
import { becomesReady, type ServerProcess, spawnServer, tail } from './spawn-server.ts'

export type PostgrestPorts = { port: number; adminPort: number }
export type PostgrestServer = ServerProcess & { url: string; ports: PostgrestPorts; stop: () => Promise<unknown> }

export type PostgrestOptions = {
  directory: DataDirectory
  binary: string
  secrets: Secrets
  postgresPort: number
  /** Those of the server that this one replaces. Default: any that are free. */
  ports?: PostgrestPorts
  onSpawn: (identity: ProcessIdentity, ports: PostgrestPorts) => void
  signal: AbortSignal
}

const stopSteps: StopStep[] = [
  ['SIGTERM', 1500],
  ['SIGKILL', 500],
]
export const stopPostgrest = (identity: ProcessIdentity) => stopProcess(identity, stopSteps)

const maxAttempts = 3
const readyTimeoutMs = 20_000

export async function startPostgrest(options: PostgrestOptions): Promise<PostgrestServer> {
  const { directory, binary, onSpawn, signal } = options
  const { postgrestConfig: configFile, postgrestLog: logFile } = directory
  // Has no settings: a later start recognises the process by this path on its command line.
  writeFileAtomically(configFile, '# PostgREST is configured by its environment: see src/local/postgrest.ts.\n')
  for (let attempt = 1; ; attempt += 1) {
    const ports = options.ports ?? { port: await freePort(), adminPort: await freePort() }
    const server = await spawnServer([binary, configFile], {
      command: commandOf(binary, configFile),
      env: environment(options, ports),
      cwd: directory.path,
      logFile,
      onSpawn: (identity) => onSpawn(identity, ports),
    })
    const stop = () => stopPostgrest(server.identity)
    try {
      if (await becomesReady(server, () => isReadyAt(ports.adminPort), { signal, timeoutMs: readyTimeoutMs })) {
        return { ...server, url: `http://127.0.0.1:${ports.port}`, ports, stop }
      }
    } catch (error) {
      await stop()
      throw error
    }
    await stop()
    // Retried, because another program may have taken the port in the meantime.
    if (attempt === maxAttempts) {
      throw new StartError(
        `PostgREST did not start (${await server.ended}). Its log, ${logFile}, ends with:${tail(logFile)}`,
      )
    }
  }
}

function environment(
  { secrets, postgresPort }: PostgrestOptions,
  { port, adminPort }: PostgrestPorts,
): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env
  return {
    PATH,
    HOME,
    LANG: 'C.UTF-8',
    PGRST_SERVER_HOST: '127.0.0.1',
    PGRST_SERVER_PORT: String(port),
    PGRST_ADMIN_SERVER_PORT: String(adminPort),
    PGRST_DB_URI: databaseUrlFor('authenticator', secrets.authenticatorPassword, postgresPort),
    // The first is the default. public is for people who sign in: row-level security, by their role in an organisation.
    PGRST_DB_SCHEMAS: 'api,public',
    PGRST_DB_ANON_ROLE: 'anon',
    PGRST_DB_EXTRA_SEARCH_PATH: 'public,extensions',
    PGRST_DB_POOL: '20',
    // The first calls on a new connection compile and plan every function, 0.4 s in all: a pause of minutes must not bring them back.
    PGRST_DB_POOL_MAX_IDLETIME: '1800',
    // 5 s, with the 8 s of a statement, end before the gateway's timeout: a call that never began is then known not to have run.
    PGRST_DB_POOL_ACQUISITION_TIMEOUT: '5',
    // The row limit of hosted Supabase, so that results are cut off here as they are there.
    PGRST_DB_MAX_ROWS: '1000',
    PGRST_JWT_SECRET: secrets.jwtSecret,
    // Verifies a signature once per token instead of once per request.
    PGRST_JWT_CACHE_MAX_LIFETIME: '300',
    PGRST_OPENAPI_MODE: 'disabled',
    PGRST_LOG_LEVEL: 'error',
  }
}

/** It listens, is connected, and has loaded the schema. */
const isReadyAt = (adminPort: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${adminPort}/ready`, { signal: AbortSignal.timeout(1000) }).then(
    (response) => response.ok,
    () => false,
  )
