// Request number n of a seed: the same again on the same stage.

import { createRandom, type Random } from '../random.ts'
import { encoding, headers, mediaType, method, path } from './http.ts'
import { mcp } from './mcp.ts'
import { door, oauth, page } from './pages.ts'
import type { HostileRequest } from './request.ts'
import { rest } from './rest.ts'
import { firstLine, framing, leaving, pipelining, slow } from './sockets.ts'
import type { Stage } from './stage.ts'

type Generator = (stage: Stage, random: Random) => HostileRequest

/** In parts of a thousand. */
const shares: [number, Generator][] = [
  [370, rest],
  [250, mcp],
  [40, method],
  [30, mediaType],
  [30, encoding],
  [70, headers],
  [50, path],
  [70, page],
  [10, door],
  [30, oauth],
  [15, framing],
  [10, firstLine],
  [5, pipelining],
  [17, leaving],
  [3, slow],
]

export function generate(seed: number, number: number, stage: Stage): HostileRequest {
  const random = createRandom(Math.imul(seed, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b))
  let at = random.below(1_000)
  for (const [share, make] of shares) {
    if (at < share) return make(stage, random)
    at -= share
  }
  throw new Error('the shares are not a thousand')
}
