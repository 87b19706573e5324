// Errands that are served to a model, whatever client it plays with.

import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { studio } from '../support/database.ts'
import { errands } from './errands/index.ts'
import { serveErrands } from './serve.ts'
import { openSession } from './session.ts'

const apiUrl = inject('apiUrl')

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
