// Stands before the API for models that play errands with any MCP client: an organisation and a key for each errand and wording. Notes each
// call by its key, presses the button of a confirmation, and judges what was made of an errand at /verdicts.

import { createServer, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import { type Cost, costOf } from './cost.ts'
import { type Errand, saidOf } from './errand.ts'
import type { Database } from './organisation.ts'
import { arrange, confirmFor, judge, type Round } from './round.ts'
import { type Turn, textOf } from './session.ts'

export type Entry = { errand: string; wording: number; says: string; key: string; url: string }
export type Verdict = Cost & {
  errand: string
  wording: number
  right: boolean
  wrong: string[]
  refused: number
  made: Pick<Turn, 'tool' | 'args' | 'isError'>[]
}
type Place = { round: Round; wording: number; says: string; turns: Turn[] }

export async function serveErrands(
  errands: readonly Errand[],
  { database, apiUrl, port }: { database: Database; apiUrl: string; port?: number },
): Promise<{ url: string; entries: Entry[]; close(): Promise<void> }> {
  const places: Place[] = []
  for (const errand of errands) {
    for (const i of errand.says.keys()) {
      const round = await arrange(errand, database, apiUrl)
      places.push({ round, wording: i + 1, says: saidOf(errand, round.facts)[i] ?? '', turns: [] })
    }
  }

  const verdictOf = async ({ round, wording, turns }: Place, answer: string): Promise<Verdict> => {
    const wrong = await judge(database, round, answer)
    const made = turns.map(({ tool, args, isError }) => ({ tool, args, isError }))
    const refused = made.filter(({ isError }) => isError).length
    return { errand: round.errand.name, wording, right: wrong.length === 0, wrong, refused, ...costOf(turns), made }
  }

  const server = createServer(async (req, res) => {
    try {
      const body = await text(req)
      const [what, name, wording] = (req.url ?? '').split('/').slice(1)
      if (what === 'verdicts') {
        const place = places.find(({ round, wording: n }) => round.errand.name === name && n === Number(wording))
        const verdict = place && (await verdictOf(place, body))
        res.writeHead(verdict ? 200 : 404).end(JSON.stringify(verdict ?? 'There is no such errand and wording.'))
        return
      }
      const answer = await forward(apiUrl, req, body)
      const answered = await answer.text()
      const place = places.find(({ round }) => req.headers.authorization === `Bearer ${round.key}`)
      const turn = turnIn(body, answered)
      // Before the player reads the answer.
      if (place && turn && !(await confirmFor(place.round, turn))) place.turns.push(turn)
      res.writeHead(answer.status, Object.fromEntries(answer.headers)).end(answered)
    } catch (error) {
      res.writeHead(502).end(String(error))
    }
  })
  const { url, close } = await listenOnLoopback(server, port)
  const entries = places.map(({ round, wording, says }) => ({
    ...{ errand: round.errand.name, wording, says, key: round.key, url: `${url}/api/mcp` },
  }))
  return { url, entries, close }
}

function forward(apiUrl: string, { method = 'GET', url = '/', headers }: IncomingMessage, body: string) {
  const { host, connection, 'content-length': _, 'transfer-encoding': __, ...others } = headers
  return fetch(new URL(url, apiUrl), {
    method,
    headers: { ...(others as Record<string, string>), 'accept-encoding': 'identity' },
    ...(body !== '' && { body }),
  })
}

/** The call that was sent, if it is one; its answer may also be a stream of events. */
function turnIn(sent: string, answered: string): Turn | undefined {
  const [{ id, method, params } = {}] = messagesIn(sent)
  if (method !== 'tools/call') return undefined
  const { result, error } = messagesIn(answered).find((answer) => answer.id === id) ?? {}
  const text = result === undefined ? JSON.stringify(error ?? answered) : textOf(result.content)
  return { tool: params?.name, args: params?.arguments ?? {}, text, isError: result?.isError ?? result === undefined }
}

// biome-ignore lint/suspicious/noExplicitAny: JSON-RPC as anybody may send it.
function messagesIn(text: string): any[] {
  const parts = text.startsWith('{') ? [text] : [...text.matchAll(/^data: ?(.*)$/gm)].map(([, data = '']) => data)
  try {
    return parts.map((part) => JSON.parse(part))
  } catch {
    return []
  }
}
