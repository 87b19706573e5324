// Names the Supabase project that a process uses, and says what it means that deliveries are held: see `private.is_held` in
// 90-outbox/installation.sql.

import { isIP } from 'node:net'

/** What is said where deliveries are held. */
export const heldMessage =
  'Webhooks and e-mails are held: this database is a copy of that of another installation, or was moved. Nothing is sent from here ' +
  'until they are released.'
export const releaseFix = 'If this installation is to send them: npx usher deliveries release'

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
