// Announces to the database which installation this process is of. SQL compares (`private.is_held`): in a copy of a database webhooks
// and e-mails are held until they are released (90-outbox/installation.sql).

import { isIP } from 'node:net'
import type { Logger } from 'pino'
import type { CourierRpc } from '../gateway/courier-rpc.ts'
import { repeat } from './housekeeping.ts'

export type Installation = {
  /** Whether deliveries were held when it was last announced. */
  isHeld(): boolean
  stop(): void
}

const intervalMs = 10_000

/** @returns whether deliveries are held. */
export async function announceOnce(rpc: CourierRpc): Promise<boolean> {
  return ((await rpc('announce_installation', {})) as { held: boolean }).held
}

/** Announces it once, and then every ten seconds: a name that is new becomes known when a known one is announced after it. */
export async function announceInstallation(rpc: CourierRpc, log: Logger): Promise<Installation> {
  let isHeld = false
  const announce = async () => {
    const wasHeld = isHeld
    isHeld = await announceOnce(rpc)
    if (isHeld && !wasHeld) log.warn(`${heldMessage} ${releaseFix}`)
    if (!isHeld && wasHeld) log.info('Webhooks and e-mails are sent from here.')
    return false
  }
  // Before the first claim. If it fails, the next one says so in the log.
  await announce().catch(() => {})
  const { stop } = repeat(intervalMs, log, announce)
  return { isHeld: () => isHeld, stop }
}

/** What is said where deliveries are held. */
export const heldMessage =
  'Webhooks and e-mails are held, because this database was copied or moved from another installation. Nothing is sent from here ' +
  'until they are released.'
export const releaseFix = 'To send them from this installation: npx usher deliveries release'

/**
 * The name of a Supabase project. One that leads to the same project everywhere begins with `project:`, for such a project may be given
 * another Postgres cluster and is still the same.
 */
export function namesOfProject(supabaseUrl: string): string[] {
  const { protocol, hostname, host, pathname } = new URL(supabaseUrl)
  const hosted = /^([a-z]{20})\.supabase\.co$/.exec(hostname)?.[1]
  if (hosted !== undefined) return [`project:${hosted}`]
  const address = `${protocol}//${host}${pathname.replace(/\/+$/, '')}`
  return [`${protocol === 'https:' && isPublicName(hostname) ? 'project' : 'address'}:${address}`]
}

const isPublicName = (hostname: string): boolean =>
  isIP(hostname) === 0 &&
  hostname.includes('.') &&
  !/\.(local|localhost|internal|lan|test|home\.arpa)\.?$/.test(hostname)
