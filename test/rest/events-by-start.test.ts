// list_events by start: the order, and its cursors.

import { expect, test } from 'vitest'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { edit, remove } from '../support/studio.ts'

async function arrange(...starts: (string | null)[]) {
  const organisation = await createOrganisation()
  const send = rest(await organisation.key())
  const ids: string[] = []
  for (const [i, starts_at] of starts.entries()) {
    ids.push((await send('POST', '/events', { name: `Event ${i}`, starts_at })).body.data.id)
  }
  const page = async (query: string) => {
    const { status, body } = await send('GET', `/events?sort=starts_at&${query}`)
    expect(status, JSON.stringify(body)).toBe(200)
    return body as { data: { id: string }[]; next_cursor: string | null }
  }
  /** Numbers of the events that a walk finds, page after page. */
  const walk = async (query: string, between: () => Promise<unknown> = async () => {}) => {
    const found: number[] = []
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { data, next_cursor } = await page(`${query}${cursor && `&cursor=${cursor}`}`)
      found.push(...data.map(({ id }) => ids.indexOf(id)))
      if (cursor === '') await between()
      cursor = next_cursor
    }
    return found
  }
  return { organisation, send, ids, page, walk }
}

const may = (day: number) => `2027-05-0${day}T09:00:00Z`

test('events stand by start, equal ones by age, those without one last, on pages of any size', async () => {
  const { walk } = await arrange(
    may(3),
    null,
    may(1),
    may(3),
    '9998-12-31T23:59:59.999999Z',
    null,
    '1900-01-01T00:00:00Z',
  )
  for (const limit of [1, 2, 3, 100]) expect(await walk(`limit=${limit}`)).toEqual([6, 2, 0, 3, 4, 1, 5])
  expect(await walk(`limit=1&starts_after=${may(2)}`)).toEqual([0, 3, 4])
})

test('all statuses are merged, and one may be asked for', async () => {
  const { organisation, ids, walk } = await arrange(may(2), may(4))
  const [third, first] = [await organisation.event(), await organisation.event()]
  ids.push(third.id, first.id)
  await edit('events', third.id, "starts_at = $2, ends_at = '2030-01-01Z'", [may(3)])
  await edit('events', first.id, "starts_at = $2, ends_at = '2030-01-01Z', status = 'cancelled'", [may(1)])
  expect(await walk('limit=1')).toEqual([3, 0, 2, 1])
  expect(await walk('limit=1&status=draft')).toEqual([0, 1])
})

test('a walk goes on where it was, though the last event of a page is moved or deleted meanwhile', async () => {
  const { ids, walk } = await arrange(may(1), may(2), may(3), may(4))
  expect(await walk('limit=2', () => edit('events', ids[1] as string, "starts_at = '2028-01-01Z'"))).toEqual([
    0, 1, 2, 3, 1,
  ])
  expect(await walk('limit=2', () => remove('events', ids[2] as string))).toEqual([0, 2, 3, 1])
})

test('a cursor is good for its own order only', async () => {
  const { send, page } = await arrange(may(1), may(2))
  const byStart = (await page('limit=1')).next_cursor
  const byAge = (await send('GET', '/events?limit=1')).body.next_cursor
  for (const query of [
    `sort=starts_at&cursor=${byAge}`,
    `cursor=${byStart}`,
    `sort=created_at&cursor=${byStart}`,
    `sort=starts_at&cursor=${'A'.repeat(31)}`,
    // A time that there is not.
    `sort=starts_at&cursor=e${'_'.repeat(31)}`,
    `sort=starts_at&cursor=gAAAAAAAAAAA${'A'.repeat(20)}`,
  ]) {
    const { status, body } = await send('GET', `/events?${query}`)
    expect([query, status, body.error?.code, body.error?.param]).toEqual([query, 422, 'validation_failed', 'cursor'])
  }
  const { status, body } = await send('GET', '/events?sort=name')
  expect([status, body.error.param]).toEqual([422, 'sort'])
})
