// GET /health, and GET /ready for load balancers and supervisors, which depends on the database.

import { Router } from 'express'
import type { DatabaseHealth } from '../gateway/database-health.ts'

/** /ready is 200 while the database answers, else 503. Held deliveries are said, and no reason to send requests elsewhere. */
export function healthRouter(health: DatabaseHealth | undefined, isHeld = () => false): Router {
  const router = Router()
  router.get('/health', (_req, res) => void res.json({ status: 'ok' }))
  if (health === undefined) return router
  return router.get('/ready', async (_req, res) => {
    const isReady = await health.isReady()
    res.set('Cache-Control', 'no-store')
    if (isReady) res.json({ status: 'ready', ...(isHeld() && { deliveries: 'held' }) })
    else res.status(503).set('Retry-After', '1').json({ status: 'unavailable' })
  })
}
