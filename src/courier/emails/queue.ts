// The queue of e-mails, of every kind: claims pending e-mails, composes them, hands them to the mail transport, and settles each with the
// transport's result. Those of test organisations are kept, and must never reach a transport. SQL decides when a failure is retried (see
// `api.settle_emails`).

import pLimit from 'p-limit'
import type { Logger } from 'pino'
import type { CourierRpc } from '../../gateway/courier-rpc.ts'
import { isToAttendee, isToBuyer, type PendingEmail } from '../../guests/pending.ts'
import type { Observe, Queue } from '../courier.ts'
import { bouncingAddress, keptOf } from '../email.ts'
import { MailError, type MailTransport } from '../mail/index.ts'
import { batchResults, settle } from '../settle.ts'
import { composeEmail, recipientOf } from './compose.ts'

// As many e-mails are sent at once as the SMTP transport has connections. Claimed are as many as are sent in about a second, since one
// claim of many costs little more than one of a few; but a claim of more than this is felt by requests.
const mostSending = 4
const mostClaimed = 16
// A claim outlives the longest wait for its turn and the longest attempt: SMTP has some eight replies, each of which may take as long as
// the socket's time-out.
const leaseSeconds = 600
const longestWaitMs = 60_000
// A courier that crashes sends again what it has sent within this time.
const gatherMs = 50

type Sent = { message_id: string; content?: ReturnType<typeof keptOf> } | { error: string; permanent: boolean }
/** `reason` is for the log. */
type Outcome = { sent: Sent; reason?: string }

/** @param from the sender address; the sender name is the organiser's. */
export function emailQueue(
  rpc: CourierRpc,
  mail: MailTransport,
  from: string,
  log: Logger,
  observe: Observe,
): Queue<PendingEmail> & { close(): Promise<void> } {
  const inTurn = pLimit(mostSending)
  const record = batchResults(
    (results: Record<string, unknown>[]) => settle(rpc, 'settle_emails', { results }),
    gatherMs,
  )
  // Of recent attempts.
  let meanMs = 1_000
  let isClosed = false

  async function send(pending: PendingEmail): Promise<Outcome> {
    try {
      const email = await composeEmail(pending, from)
      if (pending.organisation.is_test) {
        if (email.to.address.toLowerCase() === bouncingAddress)
          throw new MailError(true, 'test', 'This address bounces in a test organisation.')
        return { sent: { message_id: email.messageId, content: keptOf(email) } }
      }
      return { sent: await mail.send(email) }
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
    get concurrency() {
      return Math.max(mostSending, Math.min(mostClaimed, Math.floor((mostSending * 1_000) / meanMs)))
    },
    maxPerRun: 40,
    sizeOf,
    claim: async (limit) =>
      (await rpc('claim_emails', { limit, lease_seconds: leaseSeconds, keeps_tests: true })) as PendingEmail[],
    async deliver(pending) {
      const claimedAt = performance.now()
      const attempt = await inTurn(async () => {
        const startedAt = performance.now()
        // Its claim expires, and it is sent then.
        if (isClosed || startedAt - claimedAt > longestWaitMs) return null
        const outcome = await send(pending)
        const milliseconds = Math.round(performance.now() - startedAt)
        meanMs += (milliseconds - meanMs) / 8
        return { ...outcome, milliseconds }
      })
      if (attempt === null) return false
      const { sent, reason, milliseconds } = attempt
      const { id, claim } = pending
      const others = pending.kind === 'ticket' ? pending.others : []
      await Promise.all(
        [id, ...others.map((each) => each.email_id)].map((email_id) =>
          record({ email_id, claim, ...sent, ...(email_id !== id && { content: undefined }) }),
        ),
      )
      const line = {
        delivery_id: pending.id,
        kind: pending.kind,
        [isToAttendee(pending) ? 'attendee_id' : isToBuyer(pending) ? 'order_id' : 'waiting_list_entry_id']:
          recipientOf(pending).id,
        attempt: pending.attempt,
        ...(others.length > 0 && { tickets: sizeOf(pending) }),
        transport: pending.organisation.is_test ? 'kept' : mail.name,
        duration_ms: milliseconds,
      }
      if ('error' in sent) log.warn({ ...line, reason, permanent: sent.permanent }, 'e-mail failed')
      else log.info(line, 'e-mail')
      observe('ticket_emails', outcomeOf(sent), milliseconds / 1000)
      // A claim of rows that go together comes back with less than it asked for.
      return others.length > 0
    },
    /** Begins no attempt any more, and closes the mail transport. */
    async close() {
      isClosed = true
      await mail.close()
    },
  }
}

/** Of rows of the queue. */
const sizeOf = (pending: PendingEmail): number => (pending.kind === 'ticket' ? pending.others.length + 1 : 1)

const outcomeOf = (sent: Sent): string => (!('error' in sent) ? 'sent' : sent.permanent ? 'refused' : 'failed')
