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

/** Of what an answer is about. `isNamed`: with the names of the events. */
export type ZonesOf = (caller: Caller, data: unknown, isNamed: boolean) => Promise<TimeZones>

/** Zones are known from calls before, as a rule; names are not: an event that was renamed has its new one. */
export function createTimeZones(gateway: Gateway): ZonesOf {
  // A zone that has changed since only has another offset: the moment is the same.
  const known = createCache<string>(10_000, { ttl: 60_000 })

  return async (caller, data, isNamed) => {
    const zones = new Map<string, EventSaid>()
    const unknown = new Set<string>()
    for (const id of eventsOf(data)) {
      const timezone = isNamed ? undefined : known.get(id)
      if (timezone === undefined) unknown.add(id)
      else zones.set(id, { timezone, name: null })
    }
    if (unknown.size === 0) return zones
    try {
      const { body } = await call(gateway, eventTimezones, caller, { event_ids: [...unknown] })
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

/** Of objects that belong to an event and do not say in which zone it is. */
const eventsOf = (data: unknown): string[] =>
  ([data].flat() as { event_id?: unknown; timezone?: unknown }[]).flatMap((object) =>
    typeof object?.event_id === 'string' && object.timezone === undefined ? [object.event_id] : [],
  )
