// A transaction may write early and commit late. The log shows nothing that an open transaction could still come before, so a
// reader who continues from the last item misses nothing.

import { expect, test } from 'vitest'
import { during } from '../support/database.ts'
import { type Notification, readOn, readUntil } from '../support/notifications.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

async function arrange() {
  const organisation = await createOrganisation()
  const [event, other] = [await organisation.event(), await organisation.event()]
  const send = rest(await organisation.key())
  const renameTo = async (name: string) => {
    expect((await send('PATCH', `/events/${event.id}`, { name })).status).toBe(200)
  }
  return { organisation, other, send, renameTo }
}

const rename = 'update public.events set name = $2 where id = $1'
const names = (seen: Notification[]) =>
  seen.flatMap(({ type, data }) => (type === 'event.updated' && 'name' in data ? [data.name] : []))

test.each([
  ['early', 'before', ['First', 'Late', 'Meanwhile', 'Meanwhile too']],
  // Its ids are younger than those of what was committed meanwhile, its transaction is not.
  ['late', 'after', ['First', 'Late', 'Meanwhile', 'Meanwhile too']],
] as const)(
  'a transaction that writes %s and commits last is not skipped by whoever read on meanwhile',
  async (_when, writes, expected) => {
    const { other, send, renameTo } = await arrange()
    await renameTo('First')
    const seen = await readUntil(send, (all) => names(all).length === 1)
    const position = () => ({ after: seen.at(-1)?.id ?? '' })

    await during(async (late) => {
      // Has a number from here on, and its place in the order with it.
      await late.query('select pg_current_xact_id()')
      if (writes === 'before') await late.query(rename, [other.id, 'Late'])
      for (const name of ['Meanwhile', 'Meanwhile too']) {
        await renameTo(name)
        seen.push(...(await readOn(send, position())))
      }
      if (writes === 'after') await late.query(rename, [other.id, 'Late'])
      seen.push(...(await readOn(send, position())))
      expect(names(seen), 'the horizon').toEqual(['First'])
      await late.query('commit')
    })

    seen.push(...(await readUntil(send, (all) => all.length === 3, position())))
    expect(names(seen)).toEqual(expected)
    expect(names(await readOn(send))).toEqual(expected)
  },
)

test('a transaction that only reads, or was rolled back, holds nobody up', async () => {
  const { other, send, renameTo } = await arrange()
  await during(async (reader) => {
    await reader.query('set transaction isolation level repeatable read, read only')
    await reader.query('select count(*) from public.notifications')
    await during((undone) => undone.query(rename, [other.id, 'Undone']))
    await renameTo('Meanwhile')
    // Shown while the reader is still open.
    expect(names(await readUntil(send, (all) => names(all).length > 0))).toEqual(['Meanwhile'])
  })
})

test('of many who write at once, a reader who never stops misses none and sees none twice', async () => {
  const { organisation, send } = await arrange()
  const writers = await Promise.all(Array.from({ length: 4 }, () => organisation.event()))
  const write = async (eventId: string, writer: number) => {
    for (let i = 0; i < 8; i++) {
      await during(async (client) => {
        await client.query(rename, [eventId, `${writer}-${i}`])
        await client.query('select pg_sleep($1)', [((writer + i) % 4) / 100])
        await client.query('commit')
      })
    }
  }
  const written = Promise.all(writers.map(({ id }, i) => write(id, i)))
  const seen = await readUntil(send, (all) => names(all).length >= 32)
  await written
  seen.push(...(await readOn(send, { after: seen.at(-1)?.id ?? '' })))
  expect(names(seen).toSorted()).toEqual(
    [0, 1, 2, 3].flatMap((writer) => Array.from({ length: 8 }, (_, i) => `${writer}-${i}`)),
  )
  expect(names(await readOn(send))).toEqual(names(seen))
})
