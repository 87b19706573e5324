// The queue of e-mails, of every kind: claims pending e-mails, composes them, hands them to the mail transport, and settles each with the
// transport's result. SQL decides when a failure is retried (see `api.settle_email`).

import type { Logger } from 'pino'
import { type CourierRpc, settle } from '../../gateway/courier-rpc.ts'
import { logosOf } from '../../guests/logo-images.ts'
import { isToAttendee, isToBuyer, type PendingEmail } from '../../guests/pending.ts'
import type { Observe, Queue } from '../courier.ts'
import { MailError, type MailTransport } from '../mail/index.ts'
import { composeEmail, recipientOf } from './compose.ts'

type Sent = { message_id: string } | { error: string; permanent: boolean }
/** `reason` is for the log. */
type Outcome = { sent: Sent; reason?: string }

/** @param from the sender address; the sender name is the organiser's. */
export function emailQueue(
  rpc: CourierRpc,
  mail: MailTransport,
  from: string,
  log: Logger,
  observe: Observe,
): Queue<PendingEmail> {
  const logoOf = logosOf(rpc)

  async function send(pending: PendingEmail): Promise<Outcome> {
    try {
      return { sent: await mail.send(await composeEmail(pending, from, await logoOf(pending.organisation))) }
    } catch (error) {
      if (error instanceof MailError) {
        const { message, permanent, reason } = error
        return { sent: { error: message, permanent }, reason }
      }
      log.error({ err: error, delivery_id: pending.id }, 'e-mail could not be composed')
      return { sent: { error: 'The e-mail could not be made.', permanent: false }, reason: 'not composed' }
    }
  }

  return {
    name: 'ticket_emails',
    // As many as the SMTP transport has connections: an e-mail that waits for one uses up its claim.
    concurrency: 4,
    maxPerRun: 40,
    claim: async (limit) => (await rpc('claim_emails', { limit })) as PendingEmail[],
    async deliver(pending) {
      const startedAt = performance.now()
      const { sent, reason } = await send(pending)
      const milliseconds = Math.round(performance.now() - startedAt)
      await settle(rpc, 'settle_email', { email_id: pending.id, claim: pending.claim, ...sent })
      const line = {
        delivery_id: pending.id,
        kind: pending.kind,
        [isToAttendee(pending) ? 'attendee_id' : isToBuyer(pending) ? 'order_id' : 'waiting_list_entry_id']:
          recipientOf(pending).id,
        attempt: pending.attempt,
        transport: mail.name,
        duration_ms: milliseconds,
      }
      if ('error' in sent) log.warn({ ...line, reason, permanent: sent.permanent }, 'e-mail failed')
      else log.info(line, 'e-mail')
      observe('ticket_emails', outcomeOf(sent), milliseconds / 1000)
    },
  }
}

const outcomeOf = (sent: Sent): string => (!('error' in sent) ? 'sent' : sent.permanent ? 'refused' : 'failed')
