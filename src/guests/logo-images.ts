// The stored logos that e-mails and ticket pages show, each asked for once while its organisation is among the last ten.

import type { CourierRpc } from '../gateway/courier-rpc.ts'
import type { Logo, PendingEmail } from './pending.ts'

// Of at most 350 kB each.
const most = 10

type LogoVersion = Pick<PendingEmail['organisation'], 'id' | 'logo_version'>

export function logosOf(rpc: CourierRpc): (organisation: LogoVersion) => Promise<Logo | undefined> {
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
