// An edit that names the versions it may be made of: any of them will do, and none is not the same as no condition.

import { expect, test } from 'vitest'
import { actAs } from './actor.ts'
import { createTenant } from './tenant-fixture.ts'

const edits = {
  update_event: ['scope_events_write', 'events', '{"name": "Renamed"}'],
  update_ticket_type: ['scope_events_write', 'ticket_types', '{"name": "Renamed"}'],
  update_promo_code: ['scope_events_write', 'promo_codes', '{"percent_off": 30}'],
  update_webhook_endpoint: ['scope_events_write', 'webhook_endpoints', '{"description": "Renamed"}'],
  update_attendee: ['scope_attendees_write', 'attendees', '{"name": "Renamed"}'],
} as const

test.each(Object.entries(edits))(
  '%s is made of any version that is named',
  async (operation, [role, table, changes]) => {
    const party = await createTenant()
    await actAs(role, party.claims, async ({ rows, touched, refusal }) => {
      const [object] = await rows<{ id: string; version: number }>(`select id, version from public.${table} limit 1`)
      const { id, version = 0 } = object ?? {}
      const update = `select api.${operation}($1, $2, $3)`
      for (const versions of [[version + 1], [version + 1, version - 1], []]) {
        expect(await refusal(update, [id, changes, versions])).toMatchObject({
          sqlstate: 'PT412',
          code: 'version_mismatch',
          details: { version },
        })
      }
      expect(await touched(update, [id, changes, [version + 1, version]])).toBe(1)
      expect(await touched(update, [id, changes, null])).toBe(1)
    })
  },
)
