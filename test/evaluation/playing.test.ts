// Errands that are served to a model, whatever client it plays with.

import { expect, inject, onTestFinished, test } from 'vitest'
import { studio } from '../support/database.ts'
import { errands } from './errands/index.ts'
import { serveErrands, type Verdict } from './serve.ts'
import { openSession } from './session.ts'

async function serveOnly(name: string) {
  const errand = errands.filter((one) => one.name === name)
  const { url, entries, close } = await serveErrands(errand, { database: studio, apiUrl: inject('apiUrl') })
  onTestFinished(close)
  const [first] = entries
  if (first === undefined) throw new Error(`no errand ${name}`)
  const session = await openSession(first.url, first.key)
  onTestFinished(() => session.close())
  const verdict = async (answer: string) =>
    (await fetch(`${url}/verdicts/${name}/1`, { method: 'POST', body: answer })).json() as Promise<Verdict>
  return { url, entries, session, verdict }
}

test('errands that are served are judged by state and answer, and each call is counted', async () => {
  const { url, entries, session, verdict } = await serveOnly('two-days-at-the-door')
  expect(new Set(entries.map(({ key }) => key)).size).toBe(3)
  for (const { says } of entries) expect(says).not.toMatch(/[{}]|undefined/)
  const wrong = [expect.stringMatching(/^check_in_points: .* is missing$/)]
  expect(await verdict('')).toMatchObject({ right: false, calls: 0, wrong })
  expect((await fetch(`${url}/verdicts/two-days-at-the-door/9`)).status).toBe(404)

  await session.call('create_check_in_point', { name: 'Main door' })
  const { text } = await session.call('list_events', {})
  const [{ id }] = JSON.parse(text).data
  await session.call('create_check_in_point', { event_id: id, name: 'Main door', admission: 'once_per_day' })
  const { made, bytes, ...judged } = await verdict('Done.')
  expect(judged).toMatchObject({ right: true, wrong: [], calls: 3, refused: 1 })
  const tools = ['create_check_in_point', 'list_events', 'create_check_in_point']
  expect(made.map(({ tool }) => tool)).toEqual(tools)
  expect(bytes).toBeGreaterThan(text.length)
})

test('errands that are served are confirmed where that is asked for, and the player repeats the call', async () => {
  const { session, verdict } = await serveOnly('cancel-and-tell')
  const { text } = await session.call('list_events', {})
  const event = JSON.parse(text).data.find(({ status }: { status: string }) => status === 'published')
  const cancel = () => session.call('cancel_event', { event: event.id, notify: 'nobody' })
  expect((await cancel()).text).toContain('confirmation_required')
  expect((await cancel()).isError).toBe(false)
  expect(await verdict('')).toMatchObject({ calls: 2, refused: 0 })
})
