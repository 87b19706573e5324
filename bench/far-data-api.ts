// Supabase's Data API far away, for the scenario `hosted`: answers below /rest/v1 as PostgREST does, half the round trip later each way. A
// process of its own, so that it takes nothing of the load generator. Arguments: the URL of PostgREST and the round trip in ms.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from 'undici'

const [url = '', roundTripMs = '20'] = process.argv.slice(2)
const oneWayMs = Number(roundTripMs) / 2
const pool = new Pool(url, { connections: 100 })

const server = createServer(async (req, res) => {
  const parts: Buffer[] = []
  for await (const part of req) parts.push(part)
  await sleep(oneWayMs)
  const { statusCode, headers, body } = await pool.request({
    method: req.method ?? 'GET',
    path: (req.url ?? '/').replace(/^\/rest\/v1/, '') || '/',
    headers: { ...req.headers, host: new URL(url).host },
    body: Buffer.concat(parts),
  })
  const answer = Buffer.from(await body.arrayBuffer())
  await sleep(oneWayMs)
  res.writeHead(statusCode, { 'content-type': String(headers['content-type'] ?? 'text/plain') }).end(answer)
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
