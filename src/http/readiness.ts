// GET /ready, for load balancers and supervisors: depends on the database, unlike /health.

import type { RequestHandler } from 'express'
import type { DatabaseHealth } from '../gateway/database-health.ts'

/** 200 while the database answers, else 503. Held deliveries are said, and no reason to send requests elsewhere. */
export function answerReadiness(health: DatabaseHealth, isHeld = () => false): RequestHandler {
  return async (_req, res) => {
    const isReady = await health.isReady()
    res.set('Cache-Control', 'no-store')
    if (isReady) res.json({ status: 'ready', ...(isHeld() && { deliveries: 'held' }) })
    else res.status(503).set('Retry-After', '1').json({ status: 'unavailable' })
  }
}
