// `usher doctor`: checks a configuration against what is there, each step by itself. It changes nothing, and says for each what mends it.

import { namesOfProject } from '../../courier/installation.ts'
import { namesOfDataDirectory } from '../../local/installation.ts'
import { findRunningStack } from '../../local/stack.ts'
import { doubtOfProxy } from '../../process/loopback.ts'
import { type Config, ConfigError, type Doubt, doubtOfMetricsPort, readConfig } from '../config.ts'
import { checkDataApi } from './check-data-api.ts'
import { checkDatabase } from './check-database.ts'
import { checkMail, checkPublicUrl, checkRedis, checkTrustProxy } from './check-services.ts'
import { type Finding, failed, ok } from './finding.ts'

/** @param deep recounts everything that is derived, too. */
export async function examine(environment: NodeJS.ProcessEnv, deep = false): Promise<Finding[]> {
  const config = configOf(environment)
  if (Array.isArray(config)) return config
  const findings = await Promise.all([
    checkBackend(config, deep),
    checkMail(config),
    checkRedis(config.redisUrl),
    checkPublicUrl(config),
    checkTrustProxy(config),
    refuse('metrics', doubtOfMetricsPort(config)),
    // Of a project, calls by https go to another proxy.
    refuse('proxy', config.database.kind === 'embedded' ? doubtOfProxy(environment) : undefined),
  ])
  return [ok('configuration', 'Every variable is valid.'), ...findings.flat()]
}

const refuse = (check: string, doubt: Doubt | undefined): Finding[] =>
  doubt === undefined ? [] : [failed(check, doubt.message, doubt.fix)]

function configOf(environment: NodeJS.ProcessEnv): Config | Finding[] {
  try {
    return readConfig(environment)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    const fix = 'Correct it in the environment or in .env; .env.example explains each variable.'
    return error.message.split('\n').map((complaint) => failed('configuration', complaint, fix))
  }
}

async function checkBackend(config: Config, deep: boolean): Promise<Finding[]> {
  const { database } = config
  if (database.kind === 'supabase') {
    const { url, publishableKey, signingKey } = database
    const found = await Promise.all([
      checkDataApi({ url, projectKey: publishableKey }, signingKey, namesOfProject(url)),
      checkDatabase(config.databaseUrl, url, deep),
    ])
    return found.flat()
  }
  const running = await findRunningStack(database.dataDir)
  if (running === null) {
    const fix = 'Start it with `npm start`, or set SUPABASE_URL to a Supabase project.'
    return [failed('data_api', `No Usher runs on ${database.dataDir}.`, fix)]
  }
  const found = await Promise.all([
    checkDataApi({ url: running.dataApiUrl }, { secret: running.jwtSecret }, namesOfDataDirectory(database.dataDir)),
    checkDatabase(running.databaseUrl, undefined, deep),
  ])
  return found.flat()
}

/** Lines for a terminal: each check, and below it what mends it. */
export function describeFindings(findings: Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length))
  return findings
    .map(({ check, status, message, fix }) => {
      const line = `${status.padEnd(7)}  ${check.padEnd(width)}  ${message}`
      return fix === null ? line : `${line}\n${' '.repeat(width + 11)}→ ${fix}`
    })
    .join('\n')
}
