import { expect, test } from 'vitest'
import { operations } from '../../../src/operations/index.ts'
import { positionsOf } from './positions.ts'

test('of each argument it is said which object it means, or none', () => {
  for (const operation of operations) expect(positionsOf(operation)).toBeDefined()
})
