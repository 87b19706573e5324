// E-mails about changes, and the links by which they are switched off.

import { pendingEmail } from './pending-email.ts'

type PendingChange = { opt_out_url: string; holders: { name: string; ticket_url: string | null }[] }

/** The last e-mail about a change to an attendee, as a courier with this PUBLIC_URL claims it. */
export const pendingChange = (attendeeId: string, publicUrl: string): Promise<PendingChange> =>
  pendingEmail('event_changed', attendeeId, publicUrl)
