// Ports of this machine that no webhook goes to, whatever is allowed: those that Usher itself listens on or keeps its data behind.

import { type Config, hostOf, isLoopback } from '../config.ts'

export type OwnPorts = () => Iterable<number>

const defaultPorts: Record<string, number> = {
  'http:': 80,
  'https:': 443,
  'postgres:': 5432,
  'postgresql:': 5432,
  'redis:': 6379,
  'rediss:': 6379,
}

/** Of the services that are configured by an address on this machine. */
export function configuredPorts({ database, databaseUrl, redisUrl }: Config): number[] {
  return [database.kind === 'supabase' ? database.url : undefined, databaseUrl, redisUrl].flatMap((text) => {
    const url = text === undefined ? null : URL.parse(text)
    if (url === null || !isLoopback(hostOf(url.href))) return []
    return [Number(url.port) || (defaultPorts[url.protocol] ?? 0)]
  })
}
