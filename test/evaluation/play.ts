// A model at work: a loop over an endpoint of chat completions with tools, as most providers and local servers offer it.

import { type Errand, saidOf } from './errand.ts'
import type { Database } from './organisation.ts'
import { confirmFor, isUntouched, type Round } from './round.ts'
import { openSession, type Turn } from './session.ts'

export type Model = {
  /** Of the chat completions, such as https://api.example.com/v1/chat/completions. */
  url: string
  name: string
  key: string | undefined
}

type ToolCall = { id: string; type: 'function'; function: { name: string; arguments: string } }
type Message =
  | { role: 'system' | 'user'; content: string }
  | { role: 'assistant'; content: string | null; tool_calls?: ToolCall[] | null }
  | { role: 'tool'; tool_call_id: string; content: string }

const mostCompletions = 25
const goAhead = 'Yes, please go ahead.'
const haveConfirmed = 'I have confirmed it.'

/** `asked`: it wanted to hear once more that it is to go ahead, as some tools tell it to. */
export type Played = { turns: Turn[]; answer: string; asked: boolean }

/**
 * Lets a model do what a person says. Where it asks before it has changed anything, the person says yes, once: if there is anything to do. Where
 * a call waits for their confirmation they confirm it, and say so when they are told: neither is a call.
 *
 * @param wording from 1.
 */
export async function play(
  model: Model,
  database: Database,
  round: Round,
  wording: number,
  apiUrl: string,
): Promise<Played> {
  const { errand, facts, key } = round
  const session = await openSession(apiUrl, key)
  try {
    const tools = (await session.tools()).map(({ name, description, inputSchema }) => ({
      type: 'function',
      function: { name, description, parameters: inputSchema },
    }))
    const messages: Message[] = [
      { role: 'system', content: systemPrompt(session.instructions) },
      { role: 'user', content: saidOf(errand, facts)[wording - 1] ?? '' },
    ]
    const turns: Turn[] = []
    const said: string[] = []
    let hasConfirmed = false
    for (let completions = 0; completions < mostCompletions; completions++) {
      const message = await complete(model, { model: model.name, messages, tools })
      messages.push(message)
      if (!message.tool_calls?.length) {
        said.push(message.content ?? '')
        if (hasConfirmed) {
          hasConfirmed = false
          said.pop()
          messages.push({ role: 'user', content: haveConfirmed })
          continue
        }
        const asks = errand.becomes !== undefined && said.length === 1 && message.content?.includes('?')
        if (!asks || !(await isUntouched(database, round))) break
        messages.push({ role: 'user', content: goAhead })
        continue
      }
      for (const { id, function: called } of message.tool_calls) {
        const turn = await callAsSent(called, session.call)
        hasConfirmed = await confirmFor(round, turn)
        if (!hasConfirmed) turns.push(turn)
        messages.push({ role: 'tool', tool_call_id: id, content: turn.text })
      }
    }
    return { turns, answer: said.join('\n'), asked: said.length > 1 }
  } finally {
    await session.close()
  }
}

/** What a host adds to the instructions of a server: the time. */
export const systemPrompt = (instructions: string) => `${instructions}\nIt is ${new Date().toISOString()}.`

/** What a model gets wrong about JSON or about the protocol, it reads as an answer. */
async function callAsSent(
  { name, arguments: sent }: ToolCall['function'],
  call: (tool: string, args: Turn['args']) => Promise<Turn>,
) {
  let args: Turn['args'] = {}
  try {
    args = sent.trim() === '' ? {} : JSON.parse(sent)
    return await call(name, args)
  } catch (error) {
    return { tool: name, args, text: (error as Error).message, isError: true }
  }
}

async function complete({ url, key }: Model, body: object): Promise<Extract<Message, { role: 'assistant' }>> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...(key !== undefined && { Authorization: `Bearer ${key}` }) },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${url} answers ${response.status}: ${text.slice(0, 500)}`)
  const message = JSON.parse(text).choices?.[0]?.message
  if (message === undefined) throw new Error(`${url} answers no message: ${text.slice(0, 500)}`)
  return {
    role: 'assistant',
    content: message.content ?? null,
    ...(message.tool_calls?.length && { tool_calls: message.tool_calls }),
  }
}

export type Chosen = { errand: Errand; wording: number }

/** All errands in all wordings, or those that are named. */
export function choose(errands: readonly Errand[], name: string | undefined, wording: number | undefined): Chosen[] {
  const chosen = errands
    .filter((errand) => name === undefined || errand.name === name)
    .flatMap((errand) => errand.says.map((_, i) => ({ errand, wording: i + 1 })))
    .filter((one) => wording === undefined || one.wording === wording)
  if (chosen.length === 0) throw new Error(`There is no errand ${name} in wording ${wording}.`)
  return chosen
}
