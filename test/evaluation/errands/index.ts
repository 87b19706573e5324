// Every errand.

import type { Errand } from '../errand.ts'
import { doorErrands } from './door.ts'
import { eventErrands } from './events.ts'
import { moneyErrands } from './money.ts'
import { peopleErrands } from './people.ts'
import { recordErrands } from './records.ts'

export const errands: readonly Errand[] = [
  ...eventErrands,
  ...moneyErrands,
  ...peopleErrands,
  ...doorErrands,
  ...recordErrands,
]
