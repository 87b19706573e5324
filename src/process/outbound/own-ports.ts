// The ports of this machine that must never get a webhook, even where loopback is allowed, because the services that Usher uses listen there.

import { hostOf, isLoopback } from '../loopback.ts'

/** The URLs of those services. An embedded database has none. */
type ServiceUrls = {
  database: { kind: string; url?: string }
  databaseUrl: string | undefined
  redisUrl: string | undefined
}

const defaultPorts: Record<string, number> = {
  'http:': 80,
  'https:': 443,
  'postgres:': 5432,
  'postgresql:': 5432,
  'redis:': 6379,
  'rediss:': 6379,
}

export function configuredPorts({ database, databaseUrl, redisUrl }: ServiceUrls): number[] {
  return [database.url, databaseUrl, redisUrl].flatMap((text) => {
    const url = text === undefined ? null : URL.parse(text)
    if (url === null || !isLoopback(hostOf(url.href))) return []
    return [Number(url.port) || (defaultPorts[url.protocol] ?? 0)]
  })
}
