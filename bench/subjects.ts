// What answers the calls of a scenario. Each subject has a stack of its own, so that nothing done to one changes another, and makes its own
// request from a call, so that a scenario declares only operations and arguments.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { restRequestOf } from '../scripts/support/rest-request.ts'
import { createTokens } from '../src/gateway/tokens.ts'
import { operations } from '../src/operations/index.ts'
import { roleOf } from '../src/operations/operation.ts'
import type { HttpRequest } from './load.ts'
import { endWithScenario, type Organiser, ownFolder, type Stack, startStack, startUsher } from './stack.ts'

export type Call = { operation: string; args: Record<string, unknown> }

export type Subject = {
  name: string
  stack: Stack
  url: string
  /** The process that answers HTTP in Node. */
  node?: number
  /** Makes requests with the key of an organisation. Call it before each run: tokens expire. */
  open(organiser: Organiser): Promise<(call: Call) => HttpRequest>
}

type Starter = (base?: string) => Promise<Subject | undefined>

const starters = {
  usher: async () => usher('usher', await startStack()),
  base: async (base) => (base === undefined ? undefined : usher('base', await startStack(base))),
  postgrest: async () => postgrest(await startStack()),
  hosted: async () => hosted('hosted', ownFolder),
  'hosted base': async (base) => (base === undefined ? undefined : hosted('hosted base', base)),
} satisfies Record<string, Starter>

export type SubjectName = keyof typeof starters

/** Starts them one after the other. Those of another checkout are left out without one. */
export async function startSubjects(names: SubjectName[], base: string | undefined): Promise<Subject[]> {
  const started: Subject[] = []
  for (const name of names) {
    const subject = await (starters[name] satisfies Starter as Starter)(base)
    if (subject !== undefined) started.push(subject)
  }
  return started
}

export const usher = (
  name: string,
  stack: Stack,
  { url, pid } = { url: stack.url, pid: stack.pids.node },
): Subject => ({
  name,
  stack,
  url,
  node: pid,
  async open({ key }) {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    return ({ operation, args }) => {
      const { method, path, body } = restRequestOf(operation, args)
      return {
        method: method as HttpRequest['method'],
        path: `/api/v1${path}`,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      }
    }
  },
})

/** PostgREST called directly with a ready token: what a client of Supabase does. */
function postgrest(stack: Stack): Subject {
  return {
    name: 'postgrest',
    stack,
    url: stack.dataApiUrl,
    async open({ holder }) {
      const tokens = await createTokens({ secret: stack.jwtSecret })
      const headers = new Map<string, Record<string, string>>()
      for (const operation of operations) {
        const token = await tokens.forPrincipal(holder, roleOf(operation), 'api')
        headers.set(operation.name, {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          'content-profile': 'api',
        })
      }
      return ({ operation, args }) => ({
        method: 'POST',
        path: `/rpc/${operation}`,
        headers: headers.get(operation) as Record<string, string>,
        body: JSON.stringify(args),
      })
    },
  }
}

/** An API whose Data API is 20 ms away, as in front of a hosted Supabase project. */
async function hosted(name: string, folder: string): Promise<Subject> {
  const stack = await startStack(folder, { DELIVERIES: 'false' })
  const far = spawn(process.execPath, [join(import.meta.dirname, 'far-data-api.ts'), stack.dataApiUrl, '20'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  endWithScenario(far)
  const [url] = await once(far.stdout, 'data')
  const api = await startUsher(folder, {
    DELIVERIES: 'false',
    SUPABASE_URL: String(url).trim(),
    SUPABASE_PUBLISHABLE_KEY: 'sb_publishable_bench',
    SUPABASE_JWT_SECRET: stack.jwtSecret,
  })
  return usher(name, stack, api)
}

/** Without ticket e-mail, so that the courier does not work on the e-mails of one turn in the next. */
export const registration = ({ eventId, ticketTypeId }: Organiser, nth: number, more: Call['args'] = {}): Call => ({
  operation: 'register_attendee',
  args: {
    event_id: eventId,
    ticket_type_id: ticketTypeId,
    name: `Guest ${nth}`,
    email: `guest-${nth}@example.com`,
    send_email: false,
    ...more,
  },
})
