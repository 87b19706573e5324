// Stands before the API and notes each call of a tool, by key: so a model can be judged whoever plays it, and with whatever client.

import { createServer, type IncomingMessage, request } from 'node:http'
import { buffer, text } from 'node:stream/consumers'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import { type Turn, textOf } from './session.ts'

export type Recorder = {
  url: string
  /** Calls with a key so far. */
  turnsOf(key: string): Turn[]
  close(): Promise<void>
}

/** @param isCounted called before a client reads what it is answered. */
export async function record(
  apiUrl: string,
  isCounted: (key: string, turn: Turn) => Promise<boolean> = async () => true,
): Promise<Recorder> {
  const turns = new Map<string, Turn[]>()
  const server = createServer(async (req, res) => {
    try {
      const body = await buffer(req)
      const answer = await forward(apiUrl, req, body)
      const answered = await text(answer)
      const key = req.headers.authorization?.replace(/^Bearer /, '') ?? ''
      for (const turn of turnsIn(body.toString(), answered)) {
        if (await isCounted(key, turn)) turns.set(key, [...(turns.get(key) ?? []), turn])
      }
      res.writeHead(answer.statusCode ?? 502, answer.headers).end(answered)
    } catch (error) {
      res.writeHead(502).end(String(error))
    }
  })
  const { url, close } = await listenOnLoopback(server)
  return { url, turnsOf: (key) => turns.get(key) ?? [], close }
}

const forward = (
  apiUrl: string,
  { method, url = '/', headers }: IncomingMessage,
  body: Buffer,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const { host, connection, 'transfer-encoding': _, ...others } = headers
    const options = { method, headers: { ...others, 'accept-encoding': 'identity', 'content-length': body.length } }
    request(new URL(url, apiUrl), options, resolve).on('error', reject).end(body)
  })

/** The call that was sent, if it is one; its answer may also be a stream of events. */
function turnsIn(sent: string, answered: string): Turn[] {
  const [{ id, method, params } = {}] = messagesIn(sent)
  if (method !== 'tools/call') return []
  const { result, error } = messagesIn(answered).find((answer) => answer.id === id) ?? {}
  const text = result === undefined ? JSON.stringify(error ?? answered) : textOf(result.content)
  return [{ tool: params?.name, args: params?.arguments ?? {}, text, isError: result?.isError ?? result === undefined }]
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
