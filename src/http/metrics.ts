// Prometheus metrics at /metrics: requests and deliveries are recorded as they happen, pending deliveries are counted on each
// scrape. Labels are bounded: names of operations, statuses, outcomes, never an id.

import type { RequestListener } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RequestHandler, Response } from 'express'
import type { Logger } from 'pino'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Caller } from '../gateway/caller.ts'
import type { CourierRpc } from '../gateway/courier-rpc.ts'

export type Metrics = {
  /** Middleware that measures requests. */
  requests: RequestHandler
  delivered(kind: string, outcome: string, seconds: number): void
  /** Answers GET /metrics. */
  listener: RequestListener
}

// Well below Prometheus's own timeout for a scrape.
const timeoutMs = 3_000
// A timer of this interval in ms measures the lag of the event loop, and wakes an idle process as often. The metrics include it.
const eventLoopMonitoringPrecision = 200
// Seconds, from a fast check-in to beyond the statement timeout of the database.
const buckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

export function createMetrics(rpc: CourierRpc, log: Logger): Metrics {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision })

  const requests = new Histogram({
    name: 'usher_http_request_duration_seconds',
    help: 'Requests to operations, by their source (api, mcp) and the HTTP status of the answer.',
    labelNames: ['operation', 'source', 'status'],
    buckets,
    registers,
  })
  const deliveries = new Counter({
    name: 'usher_deliveries_total',
    help: 'Attempts to deliver, by kind (webhooks, ticket_emails) and outcome.',
    labelNames: ['kind', 'outcome'],
    registers,
  })
  // From the start: Prometheus sees no increase in a series that begins with its first failure.
  for (const outcome of ['sent', 'failed', 'refused']) deliveries.inc({ kind: 'ticket_emails', outcome }, 0)
  const deliverySeconds = new Histogram({
    name: 'usher_delivery_duration_seconds',
    help: 'Duration of an attempt to deliver.',
    labelNames: ['kind'],
    buckets: [...buckets, 30, 60],
    registers,
  })
  const gauge = (name: string, help: string) => new Gauge({ name, help, labelNames: ['kind'], registers })
  /** By the fields of the answer. */
  const gauges = {
    pending: gauge('usher_outbox_pending', 'Webhooks and e-mails that are pending, retries included.'),
    oldest_seconds: gauge('usher_outbox_oldest_seconds', 'Age of the oldest pending delivery.'),
    late_seconds: gauge('usher_outbox_late_seconds', 'Waiting time of due deliveries for a courier.'),
    failing: gauge('usher_outbox_failing', 'Pending webhooks and e-mails that failed and are being retried.'),
    held: gauge('usher_outbox_held', '1 while deliveries are held because the database is a copy, else 0.'),
  }
  type Depth = Record<keyof typeof gauges, number | boolean> & { kind: string }

  async function refreshGauges(): Promise<void> {
    for (const gauge of Object.values(gauges)) gauge.reset()
    const timeout = sleep(timeoutMs, undefined, { ref: false }).then(() => Promise.reject(new Error('No answer.')))
    for (const depth of (await Promise.race([rpc('outbox_depth', {}), timeout])) as Depth[]) {
      const { kind } = depth
      for (const [field, gauge] of Object.entries(gauges)) gauge.set({ kind }, Number(depth[field as keyof Depth]))
    }
  }

  return {
    requests(_req, res, next) {
      const stop = requests.startTimer()
      res.on('close', () => {
        const { operation, caller } = (res as Response).locals as { operation?: string; caller?: Caller }
        // 499, as nginx has it: the client closed the connection before the answer.
        const status = res.headersSent ? res.statusCode : 499
        if (operation !== undefined) stop({ operation, source: caller?.source ?? 'none', status })
      })
      next()
    },
    delivered(kind, outcome, seconds) {
      deliveries.inc({ kind, outcome })
      deliverySeconds.observe({ kind }, seconds)
    },
    async listener(req, res) {
      if (req.method !== 'GET' || req.url !== '/metrics') return void res.writeHead(404).end()
      // Without the database the other metrics are still served; the gauges are then missing, not zero.
      await refreshGauges().catch((error) => log.error({ err: error }, 'pending deliveries cannot be counted'))
      res.writeHead(200, { 'Content-Type': registry.contentType }).end(await registry.metrics())
    },
  }
}
