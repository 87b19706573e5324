// Reads the function's configuration from Supabase's variables and the function's own secrets, as the same Config that the courier has
// elsewhere.

import { type Config, ConfigError, type Database, readConfig } from '../../../src/cli/config.ts'

type Environment = Record<string, string | undefined>

export type FunctionConfig = {
  courier: Config
  database: Extract<Database, { kind: 'supabase' }>
  /** Authorises a call. */
  secret: string
}

/** @throws ConfigError, naming what is wrong or missing. */
export function readFunctionConfig(environment: Environment): FunctionConfig {
  const { COURIER_SECRET: secret = '', USHER_JWT_SECRET, USHER_SIGNING_KEY } = environment
  if (!/^[A-Za-z0-9._~+/-]{16,}$/.test(secret)) {
    throw new ConfigError('COURIER_SECRET must be set, to at least 16 letters, digits or any of . _ ~ + / -')
  }
  if (!USHER_JWT_SECRET && !USHER_SIGNING_KEY) {
    throw new ConfigError(
      'USHER_JWT_SECRET or USHER_SIGNING_KEY must be set, to the value that SUPABASE_JWT_SECRET or SUPABASE_SIGNING_KEY has for the API.',
    )
  }
  const courier = read({
    ...environment,
    SUPABASE_PUBLISHABLE_KEY: publishableKeyOf(environment),
    // Supabase reserves names that begin with SUPABASE_.
    SUPABASE_JWT_SECRET: USHER_JWT_SECRET,
    SUPABASE_SIGNING_KEY: USHER_SIGNING_KEY,
  })
  const { database, mail } = courier
  if (database.kind !== 'supabase') throw new ConfigError('SUPABASE_URL must be set.')
  if ('directory' in mail) {
    throw new ConfigError(
      'POSTMARK_SERVER_TOKEN or SMTP_URL must be set: a function has no folder to write e-mails to.',
    )
  }
  return { courier, database, secret }
}

/** Names the secrets as they are called here. */
function read(environment: Environment): Config {
  try {
    return readConfig(environment)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    throw new ConfigError(error.message.replace(/\bSUPABASE_(JWT_SECRET|SIGNING_KEY)\b/g, 'USHER_$1'))
  }
}

/** The first key of the JSON object that Supabase sets, or the legacy anon key. */
function publishableKeyOf(environment: Environment): string | undefined {
  const { SUPABASE_PUBLISHABLE_KEYS: keys, SUPABASE_ANON_KEY: legacy } = environment
  try {
    return Object.values<string>(JSON.parse(keys || '{}'))[0] ?? legacy
  } catch {
    throw new ConfigError('SUPABASE_PUBLISHABLE_KEYS must be a JSON object of keys by name.')
  }
}
