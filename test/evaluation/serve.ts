// Errands for whoever plays them by hand or with an agent: an organisation and a key for each errand and wording, and a verdict for
// what was made of it. The verdicts have a port of their own, which players are not told.

import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import type { Confirmations } from '../../src/local/admin.ts'
import { type Cost, costOf } from './cost.ts'
import { type Errand, saidOf } from './errand.ts'
import type { Database } from './organisation.ts'
import { record } from './recorder.ts'
import { arrange, confirmFor, judge, type Round } from './round.ts'

export type Entry = { errand: string; wording: number; says: string; key: string; url: string }
export type Verdict = Cost & {
  errand: string
  wording: number
  right: boolean
  wrong: string[]
  refused: number
  made: { tool: string; args: unknown; isError: boolean }[]
}

/** The answer is empty until there is one. */
type Place = { round: Round; entry: Entry; answer: string }

export async function serveErrands(
  errands: readonly Errand[],
  {
    database,
    apiUrl,
    port,
    confirmations,
  }: { database: Database; apiUrl: string; port?: number; confirmations?: Confirmations },
): Promise<{ url: string; entries(): Entry[]; close(): Promise<void> }> {
  const places = new Map<string, Place>()
  const recorder = await record(apiUrl, async (key, turn) => {
    const place = [...places.values()].find(({ round }) => round.key === key)
    return place === undefined || !(await confirmFor(place.round, turn))
  })
  const prepare = async (errand: Errand, wording: number): Promise<Place> => {
    const round = await arrange(errand, database, apiUrl, confirmations)
    const says = saidOf(errand, round.facts)[wording - 1] ?? ''
    const entry = { errand: errand.name, wording, says, key: round.key, url: `${recorder.url}/api/mcp` }
    const place = { round, entry, answer: '' }
    places.set(`${errand.name}/${wording}`, place)
    return place
  }
  for (const errand of errands) for (const i of errand.says.keys()) await prepare(errand, i + 1)

  const verdictOf = async ({ round, entry: { errand, wording, key }, answer }: Place): Promise<Verdict> => {
    const turns = recorder.turnsOf(key)
    const wrong = await judge(database, round, answer)
    const made = turns.map(({ tool, args, isError }) => ({ tool, args, isError }))
    const refused = made.filter(({ isError }) => isError).length
    return { errand, wording, right: wrong.length === 0, wrong, refused, ...costOf(turns), made }
  }
  const entries = () => [...places.values()].map(({ entry }) => entry)

  const answerTo = async (method: string, path: string, body: string): Promise<unknown> => {
    const [what = '', name = '', wording = ''] = path.split('/').slice(1)
    if (what === 'errands') return entries()
    if (what === 'verdicts' && name === '') {
      const played = [...places.values()].filter(
        ({ entry, answer }) => answer !== '' || recorder.turnsOf(entry.key).length > 0,
      )
      return Promise.all(played.map(verdictOf))
    }
    const place = places.get(`${name}/${wording}`)
    if (place === undefined) return undefined
    if (what === 'again') return (await prepare(place.round.errand, place.entry.wording)).entry
    if (what !== 'verdicts') return undefined
    if (method === 'POST') place.answer = body
    return verdictOf(place)
  }
  const server = createServer(async (req, res) => {
    try {
      const answer = await answerTo(req.method ?? 'GET', req.url ?? '/', await text(req))
      res.writeHead(answer === undefined ? 404 : 200, { 'Content-Type': 'application/json' })
      res.end(JSON.stringify(answer ?? { error: 'There is no such errand and wording.' }))
    } catch (error) {
      res.writeHead(500, { 'Content-Type': 'application/json' }).end(JSON.stringify({ error: String(error) }))
    }
  })
  const { url, close } = await listenOnLoopback(server, port)
  return {
    url,
    entries,
    async close() {
      await close()
      await recorder.close()
    },
  }
}
