// Models let loose on the errands: by `play`, with a stand-in for the endpoint of a model, and by `serveErrands`, with any client.

import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { listenOnLoopback } from '../../scripts/support/listen.ts'
import { studio } from '../support/database.ts'
import type { Call, Step } from './errand.ts'
import { errands } from './errands/index.ts'
import { play } from './play.ts'
import { arrange, judge } from './round.ts'
import { serveErrands } from './serve.ts'
import { openSession } from './session.ts'

const apiUrl = inject('apiUrl')
const errandOf = (name: string) => errands.find((errand) => errand.name === name) ?? errands[0]!

describe('a model that is configured', () => {
  test('is given the words, the tools and the answers, and judged by what it did and said', async () => {
    const round = await arrange(errandOf('transfer-to-colleague'), studio, apiUrl)
    const model = await standIn(round.errand.shortest(round.facts))
    const { turns, answer } = await play(model, studio, round, 2, apiUrl)
    expect(turns.map(({ tool }) => tool)).toEqual(['list_attendees', 'update_attendee'])
    expect(await judge(studio, round, answer)).toEqual([])

    const [first] = model.asked
    expect(first).toMatchObject({ model: 'stand-in', messages: [{ role: 'system' }, { role: 'user' }] })
    expect(first?.messages[0]?.content).toContain('Usher manages events')
    expect(first?.messages[1]?.content).toContain('has come down with the flu')
    expect(first?.tools.map(({ function: { name } }) => name)).toContain('update_attendee')
  })

  test('is told to go ahead where it asks before it acts', async () => {
    const round = await arrange(errandOf('free-ticket'), studio, apiUrl)
    const model = await standIn(round.errand.shortest(round.facts), { asking: true })
    const { turns, answer, asked } = await play(model, studio, round, 1, apiUrl)
    expect(asked).toBe(true)
    expect(turns).toHaveLength(1)
    expect(await judge(studio, round, answer)).toEqual([])
    expect(answer).toMatch(/^Shall I\?/)
  })

  test('has a person who confirms what it asks them to, which is no call', async () => {
    const round = await arrange(errandOf('erase-everything'), studio, apiUrl)
    const steps = round.errand.shortest(round.facts)
    // What it was asked to confirm, it sends again.
    const last = steps.at(-1) as Call
    const model = await standIn([...steps, last], { handingOver: true })
    const { turns, answer } = await play(model, studio, round, 1, apiUrl)
    expect(turns).toHaveLength(steps.length)
    expect(await judge(studio, round, answer)).toEqual([])
    expect(model.asked.at(-1)?.messages).toContainEqual({ role: 'user', content: 'I have confirmed it.' })
  })

  test('is not told so where nothing is to be done', async () => {
    const round = await arrange(errandOf('two-of-a-name'), studio, apiUrl)
    const model = await standIn([], { asking: true })
    expect(await play(model, studio, round, 1, apiUrl)).toEqual({ turns: [], answer: 'Shall I?', asked: false })
  })

  test('reads its mistakes as answers, and is wrong with what differs', async () => {
    const round = await arrange(errandOf('cancel-one-of-group'), studio, apiUrl)
    const { rows } = await studio.query(
      "select id from public.attendees where organisation_id = $1 and name = 'Melba Roy'",
      [round.organisationId],
    )
    const model = await standIn([
      ['cancel_ticket', {}],
      ['cancel_attendee', { attendee: rows[0].id }],
    ])
    const { turns, answer } = await play(model, studio, round, 1, apiUrl)
    expect(turns.map(({ isError }) => isError)).toEqual([true, false])
    expect(await judge(studio, round, 'Done.')).toEqual([
      expect.stringMatching(/attendees: status of "Melba Roy" is "cancelled", not "active"/),
      expect.stringMatching(/attendees: status of "Raye Montague" is "active", not "cancelled"/),
      expect.stringMatching(/the answer does not say/),
    ])
    expect(answer).toContain('Melba Roy')
  })
})

describe('errands that are served', () => {
  let served: Awaited<ReturnType<typeof serveErrands>>
  beforeAll(async () => {
    const few = errands.filter(({ name }) => ['two-days-at-the-door', 'invoice-paid', 'cancel-and-tell'].includes(name))
    served = await serveErrands(few, { database: studio, apiUrl })
  })
  afterAll(() => served.close())

  // biome-ignore lint/suspicious/noExplicitAny: entries and verdicts are held against what is expected of them.
  const ask = async (path: string, body?: string): Promise<any> => {
    const response = await fetch(`${served.url}/${path}`, body === undefined ? {} : { method: 'POST', body })
    return response.json()
  }

  test('have an organisation each, and words in which their facts stand', async () => {
    const entries = await ask('errands')
    expect(entries).toHaveLength(9)
    expect(new Set(entries.map(({ key }: { key: string }) => key)).size).toBe(9)
    for (const { says } of entries) expect(says).not.toMatch(/[{}]|undefined/)
  })

  test('are judged by state and answer, and each call is counted', async () => {
    const untouched = await ask('verdicts/two-days-at-the-door/1')
    expect(untouched).toMatchObject({
      right: false,
      calls: 0,
      wrong: [expect.stringMatching(/^check_in_points: .* is missing$/)],
    })

    const entry = served.entries().find(({ errand, wording }) => errand === 'two-days-at-the-door' && wording === 1)!
    const session = await openSession(entry.url, entry.key)
    await session.call('create_check_in_point', { name: 'Main door' })
    const { text } = await session.call('list_events', {})
    const [{ id }] = JSON.parse(text).data
    await session.call('create_check_in_point', { event_id: id, name: 'Main door', admission: 'once_per_day' })
    await session.close()

    const verdict = await ask('verdicts/two-days-at-the-door/1', 'Done.')
    expect(verdict).toMatchObject({ right: true, wrong: [], calls: 3, refused: 1 })
    expect(verdict.made.map(({ tool }: { tool: string }) => tool)).toEqual([
      'create_check_in_point',
      'list_events',
      'create_check_in_point',
    ])
    expect(verdict.bytes).toBeGreaterThan(text.length)
    expect(await ask('verdicts')).toHaveLength(1)
  })

  test('are confirmed where that is asked for, and repeated by the player', async () => {
    const entry = served.entries().find(({ errand }) => errand === 'cancel-and-tell')!
    const session = await openSession(entry.url, entry.key)
    const { text } = await session.call('list_events', {})
    const event = JSON.parse(text).data.find(({ status }: { status: string }) => status === 'published')
    const cancel = () => session.call('cancel_event', { event: event.id, notify: 'nobody' })
    expect((await cancel()).text).toContain('confirmation_required')
    expect((await cancel()).isError).toBe(false)
    await session.close()
    expect(await ask('verdicts/cancel-and-tell/1')).toMatchObject({ calls: 2, refused: 0 })
  })

  test('can be played again from the start', async () => {
    const again = await ask('again/invoice-paid/3')
    expect(again).toMatchObject({ errand: 'invoice-paid', wording: 3 })
    expect(await ask('verdicts/invoice-paid/3')).toMatchObject({ right: false, calls: 0 })
    expect(await ask('verdicts/invoice-paid/9')).toHaveProperty('error')
  })
})

type Completion = {
  model: string
  messages: { role: string; content: string }[]
  tools: { function: { name: string } }[]
}

/** An endpoint of chat completions whose model takes these steps, then repeats all that it has read. */
async function standIn(steps: Step[], { asking = false, handingOver = false } = {}) {
  const asked: Completion[] = []
  const server = createServer(async (req, res) => {
    const completion = (await json(req)) as Completion
    asked.push(completion)
    const read = completion.messages.filter(({ role }) => role === 'tool').map(({ content }) => content)
    const step = steps[read.length]
    const [tool, args] = (typeof step === 'function' ? step(JSON.parse(read.at(-1) ?? '')) : step) ?? []
    const called = tool && {
      name: tool,
      arguments: JSON.stringify(args ?? {}),
    }
    const asks = asking && asked.length === 1
    const last = completion.messages.at(-1)
    const handsOver = handingOver && last?.role === 'tool' && last.content.includes('confirmation_required')
    const message =
      called && !asks && !handsOver
        ? {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: `call-${read.length}`, type: 'function', function: called }],
          }
        : { role: 'assistant', content: asks ? 'Shall I?' : read.join('\n') }
    res.setHeader('Content-Type', 'application/json').end(JSON.stringify({ choices: [{ index: 0, message }] }))
  })
  const { url, close } = await listenOnLoopback(server)
  onTestFinished(close)
  return { url: `${url}/v1/chat/completions`, name: 'stand-in', key: 'secret', asked }
}
