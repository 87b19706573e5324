// E-mails about changes, and the links by which they are switched off.

import { during } from './database.ts'

type PendingChange = { opt_out_url: string; holders: { name: string; ticket_url: string | null }[] }

/** The last e-mail about a change to an attendee, as a courier with this PUBLIC_URL claims it. */
export async function pendingChange(attendeeId: string, publicUrl: string): Promise<PendingChange> {
  return during(async (client) => {
    await client.query("select set_config('request.jwt.claims', $1, true)", [JSON.stringify({ public_url: publicUrl })])
    const { rows } = await client.query<{ pending: PendingChange }>(
      `select private.pending_email_json(e) as pending from public.emails e
       where e.attendee_id = $1 and e.kind = 'event_changed' order by e.id desc limit 1`,
      [attendeeId],
    )
    if (rows[0] === undefined) throw new Error('no e-mail about a change')
    return rows[0].pending
  })
}
