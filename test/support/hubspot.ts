// HubSpot, as far as docs/guides/hubspot.md uses it: marketing events of the API 2026-09, with the shapes of HubSpot's OpenAPI document.

import { createServer, type IncomingMessage } from 'node:http'
import { json } from 'node:stream/consumers'
import * as z from 'zod'
import { listenOnLoopback } from '../../scripts/support/listen.ts'

const Event = z.strictObject({
  externalAccountId: z.string(),
  externalEventId: z.string(),
  eventName: z.string(),
  eventOrganizer: z.string(),
})
const text = z.record(z.string(), z.string())
const Attendance = z.strictObject({
  inputs: z
    .array(
      z.strictObject({
        email: z.email(),
        interactionDateTime: z.int(),
        contactProperties: text.optional(),
        properties: text.optional(),
      }),
    )
    .min(1),
})
const states = { register: 'REGISTERED', attend: 'ATTENDED', cancel: 'CANCELLED' } as const

/** occurredAt: milliseconds. */
type Participation = { attendanceState: (typeof states)[keyof typeof states]; occurredAt: number }

export async function startHubspot() {
  const events = new Map<string, { eventName: string; contacts: Map<string, Participation> }>()
  let outage: number | undefined
  let calls = 0

  function answer(method: string, path: string, authorization = '', body: unknown): [number, object] {
    if (outage !== undefined) return [outage, problem('away')]
    if (!authorization.startsWith('Bearer pat-')) return [401, problem('no token')]
    const [, account, id = '', last] = /^(?:participations|attendance)\/(?:(usher)\/)?([^/]+)\/(.+)$/.exec(path) ?? []
    if (method === 'POST' && path === 'events') {
      const event = Event.parse(body)
      events.set(event.externalEventId, { ...event, contacts: new Map() })
      return [201, event]
    }
    const event = events.get(id)
    if (event === undefined) return [404, problem('no such marketing event')]
    if (method === 'GET' && account !== undefined && last === 'breakdown') {
      const results = [...event.contacts].map(([email, properties], n) => ({
        id: `${n}`,
        associations: { contact: { contactId: `${n}`, email }, marketingEvent: { name: event.eventName } },
        properties,
      }))
      return [200, { total: results.length, results }]
    }
    const [, state] = /^(register|attend|cancel)\/email-create\?externalAccountId=usher$/.exec(last ?? '') ?? []
    if (method !== 'POST' || state === undefined) return [405, problem('no such call')]
    calls++
    const errors = []
    for (const { email, interactionDateTime } of Attendance.parse(body).inputs)
      if (email.endsWith('.test')) errors.push(problem(`${email} is refused`))
      else
        event.contacts.set(email, {
          attendanceState: states[state as keyof typeof states],
          occurredAt: interactionDateTime,
        })
    return [errors.length > 0 ? 207 : 200, { status: 'COMPLETE', results: [], errors }]
  }

  const server = createServer(async (request, response) => {
    const [, path = ''] = /^\/marketing\/marketing-events\/2026-09\/(.*)$/.exec(request.url ?? '') ?? []
    const body = await bodyOf(request)
    const [status, said] = tried(() => answer(request.method ?? '', path, request.headers.authorization, body))
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(said))
  })
  const { url, close } = await listenOnLoopback(server)
  return {
    url,
    close,
    /** Answers every call with this status, until it is undefined. */
    failWith(status: number | undefined) {
      outage = status
    },
    /** Has the event again, without contacts. */
    startAfresh(id: string) {
      events.set(id, { eventName: 'Analytics Summit', contacts: new Map() })
    },
    /** How often it recorded states. */
    calls: () => calls,
    stateOf: (eventId: string, email: string) => events.get(eventId)?.contacts.get(email)?.attendanceState,
  }
}

const bodyOf = (request: IncomingMessage) => json(request).catch(() => undefined)
const problem = (message: string) => ({ status: 'error', message, correlationId: 'c', category: 'VALIDATION_ERROR' })

function tried(answer: () => [number, object]): [number, object] {
  try {
    return answer()
  } catch (error) {
    return [400, problem(`${error}`)]
  }
}
