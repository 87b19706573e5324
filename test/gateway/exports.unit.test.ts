// Which of the exports of an organisation makes way for another.

import { beforeEach, expect, test, vi } from 'vitest'
import type { Gateway } from '../../src/gateway/calls.ts'
import { openExport } from '../../src/gateway/exports.ts'
import { exportOrders } from '../../src/operations/exports.ts'

beforeEach(() => {
  vi.useFakeTimers()
  return () => vi.useRealTimers()
})

const gateway = {
  tokens: { forPrincipal: async () => '' },
  queue: { alone: async () => ({ as_of: '2026-01-01T00:00:00Z', rows: [{ id: 1 }], next_cursor: 'more' }) },
} as unknown as Gateway

const open = (organisation_id: string) =>
  openExport(
    gateway,
    { ...exportOrders, toolset: 'orders' },
    { organisation_id } as Parameters<typeof openExport>[2],
    'api',
    {},
  )

/** Its first page was taken, and no other. */
async function slowlyRead(organisation: string) {
  const opened = await open(organisation)
  await opened.pages[Symbol.asyncIterator]().next()
  return opened
}

test('of two that are read too slowly the older makes way for a third, whatever other organisations export', async () => {
  const slow = [await slowlyRead('ours'), await slowlyRead('ours')]
  await open('theirs')
  await expect(open('ours')).rejects.toMatchObject({ status: 429, code: 'too_many_exports' })
  await vi.advanceTimersByTimeAsync(11_000)
  await open('ours')
  expect(slow.map(({ signal }) => signal.aborted)).toEqual([true, false])
})

test('one that is closed makes room', async () => {
  const [first] = [await open('closing'), await open('closing')]
  first.close()
  await open('closing')
  await expect(open('closing')).rejects.toMatchObject({ code: 'too_many_exports' })
})
