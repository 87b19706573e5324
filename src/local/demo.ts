// Adds demo data and two API keys on the first start of an embedded stack, and describes them by commands that work as pasted.
// It must never run on a Supabase project.

import { readFile } from 'node:fs/promises'
import type pg from 'pg'
import { scopes } from '../operations/operation.ts'
import { issueKey } from './admin.ts'

export type DemoEvent = { eventId: string; ticketTypeId: string; paidTicketTypeId: string; ticketCode: string }
export type Demo = DemoEvent & { key: string; keyForPeople: string }

const seed = new URL('../../supabase/seed.sql', import.meta.url)

/** Null, and nothing is added, if the database has any organisation. */
export async function seedDemo(client: pg.ClientBase): Promise<Demo | null> {
  const { rows: organisations } = await client.query('select from public.organisations limit 1')
  if (organisations.length > 0) return null

  await client.query(await readFile(seed, 'utf8'))
  const key = await issueKey(client, { organisation: 'demo', name: 'First steps', scopes })
  const keyForPeople = await issueKey(client, { organisation: 'demo', name: 'Organiser', scopes, kind: 'person' })
  return { key, keyForPeople, ...((await findDemo(client)) as DemoEvent) }
}

/** Undefined once it is no longer as it was added. */
export async function findDemo(client: pg.ClientBase): Promise<DemoEvent | undefined> {
  const { rows } = await client.query<DemoEvent>(`
    select a.event_id as "eventId", a.ticket_type_id as "ticketTypeId", p.id as "paidTicketTypeId", a.ticket_code as "ticketCode"
    from public.attendees a
    join public.ticket_types p on p.event_id = a.event_id and p.name = 'Professional'
    join public.orders o on o.id = a.order_id
    join public.organisations n on n.id = a.organisation_id
    where o.external_id = 'demo-guest-1' and n.slug = 'demo'`)
  return rows[0]
}

/** What `usher start` prints below the ready line. The samples of the guides begin from its line of variables. */
export function describeDemo(url: string, demo: Demo): string {
  const { key, keyForPeople, eventId, ticketTypeId, paidTicketTypeId, ticketCode } = demo
  return `
Your API key for the organisation "demo", with every scope. It is shown only this once; paste the line to follow the guides:

  export USHER_URL=${url} USHER_KEY=${key} EVENT=${eventId} TICKET_TYPE=${ticketTypeId} PAID_TICKET_TYPE=${paidTicketTypeId}

Your own key, to sign in with on pages and confirm what assistants ask for (shown once as well): ${keyForPeople}

Register on the page of the demo's event: ${url}/e/demo/lantern-conference

Register a guest:

  curl -X POST ${url}/api/v1/events/${eventId}/registrations \\
    -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -H 'Idempotency-Key: first-guest' \\
    -d '{"ticket_type_id":"${ticketTypeId}","name":"Mary Jackson","email":"mary@example.com"}'

Check Ada Lovelace in, who is registered already (your guest's ticket_code, in the answer above, works as well):

  curl -X POST ${url}/api/v1/check-ins \\
    -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\
    -d '{"event_id":"${eventId}","code":"${ticketCode}"}'

Connect Claude Code (other MCP clients: docs/guides/assistants):

  claude mcp add --transport http usher ${url}/api/mcp --header 'Authorization: Bearer ${key}'
`
}
