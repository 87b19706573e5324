// In which zone the times of an answer are said: that of the event that an object belongs to, which REST does not repeat in each; and its
// name, where that is asked for.

import * as z from 'zod'
import { createCache } from '../../gateway/cache.ts'
import type { Caller } from '../../gateway/caller.ts'
import { call, type Gateway } from '../../gateway/calls.ts'
import type { Operation } from '../../operations/operation.ts'

type EventSaid = { timezone: string; name: string | null }
/** By ids of events; null: not asked for, or not for this key. */
export type TimeZones = ReadonlyMap<string, EventSaid>

/** Of the gateway's own: no route and no tool. */
const eventTimezones: Operation = {
  name: 'event_timezones',
  title: '',
  description: '',
  method: 'GET',
  path: '/',
  scope: null,
  toolset: 'account',
  input: z.strictObject({ event_ids: z.array(z.guid()) }),
  output: z.strictObject({
    data: z.record(z.string(), z.strictObject({ timezone: z.string(), name: z.string().nullable() })),
  }),
}

// A zone that has changed since only has another offset: the moment is the same.
const keptMs = 60_000
const mostAtOnce = 100
const none: TimeZones = new Map()

/**
 * @returns the zones of what an answer is about, of which most are known from calls before. Names are not: an event that was renamed has its
 * new one.
 */
export function createTimeZones(
  gateway: Gateway,
): (caller: Caller, data: unknown, isNamed: boolean) => Promise<TimeZones> {
  const known = createCache<string>(10_000, { ttl: keptMs })

  return async (caller, data, isNamed) => {
    const ids = eventsOf(data)
    if (ids.length === 0) return none
    const zones = new Map<string, EventSaid>()
    const unknown = new Set<string>()
    for (const id of ids) {
      const timezone = known.get(id)
      if (timezone === undefined || isNamed) unknown.add(id)
      else zones.set(id, { timezone, name: null })
    }
    if (unknown.size === 0) return zones
    try {
      const { body } = await call(gateway, eventTimezones, caller, { event_ids: [...unknown].slice(0, mostAtOnce) })
      for (const [id, event] of Object.entries(body.data as Record<string, EventSaid>)) {
        known.set(id, event.timezone)
        zones.set(id, event)
      }
    } catch {
      // What was asked for is answered; its times are in UTC.
    }
    return zones
  }
}

function eventsOf(data: unknown): string[] {
  const ids: string[] = []
  for (const object of Array.isArray(data) ? data : [data]) {
    const { event_id, timezone } = (object ?? {}) as { event_id?: unknown; timezone?: unknown }
    if (typeof event_id === 'string' && timezone === undefined) ids.push(event_id)
  }
  return ids
}
