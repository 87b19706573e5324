// What stands in the place of a name until the database has looked it up, and what refusals say of ids.

import { expect, test } from 'vitest'
import * as z from 'zod'
import { isId, nameOf } from '../../src/gateway/names.ts'
import { identifiers, kindOf, notAnId } from '../../src/operations/identifiers.ts'
import { operations } from '../../src/operations/index.ts'
import { isRead } from '../../src/operations/operation.ts'

test('what stands in the place of a name is an id that no object has, the same for the same name alone', () => {
  const { id } = nameOf('event_id', 'event', 'Launch')
  expect(z.guid().safeParse(id).success).toBe(true)
  expect(id).toMatch(/^.{14}8.{4}8/)
  expect(nameOf('event', 'event', 'Launch').id).toBe(id)
  for (const other of [nameOf('event_id', 'event', 'launch'), nameOf('order_id', 'order', 'Launch')]) {
    expect(other.id).not.toBe(id)
  }
})

test.each([
  ['01a1fa45-8fac-7c28-a535-aaa9447abaa9', true],
  ['01A1FA45-8FAC-7C28-A535-AAA9447ABAA9', true],
  [' 01a1fa45-8fac-7c28-a535-aaa9447abaa9', false],
  ['launch', false],
  [7, false],
])('%j is an id: %j', (value, is) => {
  expect(isId(value)).toBe(is)
})

test('the tool and the route that help are reads', () => {
  const reads = operations.filter(isRead).map(({ name }) => name)
  expect(reads).toEqual(expect.arrayContaining(Object.values(identifiers).map(({ tool }) => tool)))
  expect(reads).toContain(identifiers.check_in_point.route)
  expect(notAnId('check_in_point_id', 'api')).toContain('(GET /api/v1/events/{event_id}/check-in-points shows it)')
})

test('every argument that is an id is of a kind, but object_id, which is of any', () => {
  const ids = operations.flatMap(({ input }) => Object.keys(input.shape).filter((name) => /_ids?$/.test(name)))
  const others = new Set(
    ids.filter((name) => kindOf(name) === undefined && !/^(external|scan|plan|request)_id$/.test(name)),
  )
  expect(others).toEqual(new Set(['object_id']))
  expect(notAnId('object_id', 'mcp')).toBe('must be the id that the object shows')
})
