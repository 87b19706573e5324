// The e-mails that only a courier reads, with their links.

import { inject } from 'vitest'
import { during } from './database.ts'

/** The last e-mail of a kind to an attendee, an order or an entry, as a courier with this PUBLIC_URL claims it. */
export async function pendingEmail<Pending>(kind: string, to: string, publicUrl = inject('apiUrl')): Promise<Pending> {
  return during(async (client) => {
    await client.query("select set_config('request.jwt.claims', $1, true)", [JSON.stringify({ public_url: publicUrl })])
    const { rows } = await client.query<{ pending: Pending }>(
      `select private.pending_email_json(e) as pending from public.emails e
       where $1 in (e.attendee_id, e.order_id, e.waiting_list_entry_id) and e.kind = $2 order by e.id desc limit 1`,
      [to, kind],
    )
    if (rows[0] === undefined) throw new Error(`no e-mail: ${kind}`)
    return rows[0].pending
  })
}
