// An organisation with an event whose guests and buyers are e-mailed about changes.

import type { PoolClient } from 'pg'
import { asPurge, studio } from '../../support/database.ts'
import { createOrganisation, type TestOrganisation } from '../../support/organisation.ts'
import { lockOutbox } from '../../support/outbox.ts'
import { rest } from '../../support/rest.ts'

export async function emailFixture() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const send = rest(await organisation.key())
  const register = async (email: string, more: Record<string, unknown> = {}) => {
    const guest = { ticket_type_id: event.ticketTypeId, name: 'Ada', email, ...more }
    const { body } = await send('POST', `/events/${event.id}/registrations`, guest)
    const [{ id: attendeeId }] = body.data.attendees
    return { orderId: body.data.id as string, attendeeId: attendeeId as string }
  }
  /** Edits the event, and returns the effect of the answer. */
  const change = async (body: object) => (await send('PATCH', `/events/${event.id}`, body)).body.effect
  /** Marks everything queued as sent. */
  const sent = () =>
    studio.query(
      "update public.emails set status = 'sent', sent_at = now(), next_attempt_at = null where organisation_id = $1 and status = 'queued'",
      [organisation.id],
    )
  return { organisation, event, send, register, change, sent }
}

type Effect = { not_told: { reason: string; count: number }[] }

export const reasons = ({ not_told }: Effect) =>
  Object.fromEntries(not_told.map(({ reason, count }) => [reason, count]))

/** Deletes the e-mails of all other organisations, which take turns with this one, and makes everything queued due. */
export async function dueAlone(client: PoolClient, organisation: TestOrganisation): Promise<void> {
  await lockOutbox(client)
  await client.query(`delete from public.emails using ${asPurge} where organisation_id <> $1`, [organisation.id])
  await client.query("update public.emails set next_attempt_at = '2000-01-01' where status = 'queued'")
}
