// The logos that e-mails show, asked for once as long as many e-mails of one organisation are sent.

import type { CourierRpc } from '../courier-rpc.ts'
import type { Logo, PendingEmail } from './pending.ts'

// Of at most 350 kB each.
const most = 10

export function logosOf(rpc: CourierRpc): (organisation: PendingEmail['organisation']) => Promise<Logo | undefined> {
  const known = new Map<string, Promise<Logo | undefined>>()
  return async ({ id, logo_version }) => {
    if (logo_version === null) return undefined
    const key = `${id} ${logo_version}`
    const logo =
      known.get(key) ?? rpc('get_logo', { organisation_id: id }).then((answer) => (answer as Logo | null) ?? undefined)
    known.delete(key)
    known.set(key, logo)
    const [oldest] = known.keys()
    if (known.size > most && oldest !== undefined) known.delete(oldest)
    logo.catch(() => known.delete(key))
    return logo
  }
}
