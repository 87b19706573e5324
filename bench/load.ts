// The load generator is autocannon: npm installs it wherever Usher runs, and it hands over every answer, so that acknowledged writes can be
// looked up in the database afterwards. It shares the machine with the subject: its CPU time is a column of the table.

import autocannon from 'autocannon'

export type HttpRequest = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  path: string
  headers: Record<string, string>
  body?: string
}

/** Latencies of all answers, in milliseconds; `statuses` counts answers by HTTP status. */
export type Load = Latency & { rate: number; statuses: Record<string, number> }
export type Latency = { p50: number; p95: number; p99: number }

/** @param seconds or `amount`, the number of requests. Requests in progress at the end of `seconds` are cut off and not counted. */
export async function load(options: {
  url: string
  connections: number
  seconds: number
  amount?: number | undefined
  /** A request to repeat, or a function called for each, which takes more of the machine. */
  request: HttpRequest | (() => HttpRequest)
  onSuccess?: ((body: string) => void) | undefined
}): Promise<Load> {
  const { url, connections, seconds, amount, request, onSuccess } = options
  const times: number[] = []
  const statuses: Record<string, number> = {}
  const count = (status: number | string) => {
    statuses[status] = (statuses[status] ?? 0) + 1
  }
  const started = performance.now()
  let last = started
  await new Promise<void>((done, failed) => {
    const run = autocannon(
      {
        url,
        connections: Math.min(connections, amount ?? connections),
        ...(amount === undefined ? { duration: seconds } : { amount }),
        timeout: 60,
        sampleInt: 100,
        requests: [
          {
            ...(typeof request === 'function' ? { setupRequest: (made) => ({ ...made, ...request() }) } : request),
            onResponse: (status: number, body: string) => {
              if (status < 300) onSuccess?.(body)
            },
          },
        ],
      },
      (error) => (error ? failed(error) : done()),
    )
    // Its own histogram has whole milliseconds only.
    run.on('response', (_client, status, _bytes, milliseconds) => {
      times.push(milliseconds)
      count(status)
      last = performance.now()
    })
    run.on('reqError', () => count('failed'))
  })
  return { ...latency(times), rate: (times.length * 1000) / (last - started), statuses }
}

export function latency(times: number[]): Latency {
  const sorted = times.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.max(Math.ceil(sorted.length * share) - 1, 0)] ?? Number.NaN
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) }
}
