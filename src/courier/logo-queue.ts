// The queue of logos: claims those whose address is new, fetches them, and settles each with its content or what is wrong with it.
// SQL decides when a failure is retried (see `api.settle_logo`).

import type { Logger } from 'pino'
import { type CourierRpc, settle } from '../gateway/courier-rpc.ts'
import type { Observe, Queue } from './courier.ts'
import type { LogoFetcher } from './fetch-logo.ts'

/** As `api.claim_logos` returns it. */
export type PendingLogo = {
  /** Of the organisation. */
  id: string
  claim: string
  attempt: number
  url: string
}

/** @param leaseSeconds how long a claim lasts: longer than fetching and settling take together. */
export function logoQueue(
  rpc: CourierRpc,
  fetcher: LogoFetcher,
  leaseSeconds: number,
  log: Logger,
  observe: Observe,
): Queue<PendingLogo> {
  return {
    name: 'logos',
    concurrency: 4,
    maxPerRun: 20,
    claim: async (limit) => (await rpc('claim_logos', { limit, lease_seconds: leaseSeconds })) as PendingLogo[],
    async deliver({ id, claim, attempt, url }) {
      const startedAt = performance.now()
      const { kind, ...result } = await fetcher.fetch(url)
      // The claim expires, and another courier fetches it.
      if (kind === 'abandoned') return
      const milliseconds = Math.round(performance.now() - startedAt)
      await settle(rpc, 'settle_logo', { organisation_id: id, claim, ...result })
      const line = { organisation_id: id, attempt, duration_ms: milliseconds }
      if ('error' in result)
        log.warn({ ...line, reason: result.error, permanent: result.permanent }, 'logo not fetched')
      else log.info(line, 'logo')
      observe('logos', kind, milliseconds / 1000)
    },
  }
}
