// The queue of ticket e-mails: claims what is owed, composes it, hands it to the mail transport, and settles it with what the
// transport says. When a failure is tried again is decided in SQL (supabase/schemas/34_ticket_email_operations.sql).

import type { Logger } from 'pino'
import type { Observe, Queue } from './courier.ts'
import { type CourierRpc, settle } from './courier-rpc.ts'
import { MailError, type MailTransport } from './mail/index.ts'
import { type OwedTicketEmail, ticketEmail } from './ticket-email.ts'

type Sent = { message_id: string } | { error: string; permanent: boolean }
/** The reason is for the log. */
type Outcome = { sent: Sent; reason?: string }

/** @param from address that tickets come from; the name beside it is the organiser's. */
export function ticketEmailQueue(
  rpc: CourierRpc,
  mail: MailTransport,
  from: string,
  log: Logger,
  observe: Observe,
): Queue<OwedTicketEmail> {
  async function send(owed: OwedTicketEmail): Promise<Outcome> {
    try {
      return { sent: await mail.send(await ticketEmail(owed, from)) }
    } catch (error) {
      if (error instanceof MailError) {
        const { message, permanent, reason } = error
        return { sent: { error: message, permanent }, reason }
      }
      log.error({ err: error, delivery_id: owed.id }, 'ticket e-mail could not be composed')
      return { sent: { error: 'The e-mail could not be made.', permanent: false }, reason: 'not composed' }
    }
  }

  return {
    name: 'ticket_emails',
    // As many as the SMTP transport has connections: what waits for one uses up its claim.
    concurrency: 4,
    maxPerRun: 40,
    claim: async (limit) => (await rpc('claim_ticket_emails', { limit })) as OwedTicketEmail[],
    async deliver(owed) {
      const startedAt = performance.now()
      const { sent, reason } = await send(owed)
      const milliseconds = Math.round(performance.now() - startedAt)
      await settle(rpc, 'settle_ticket_email', { ticket_email_id: owed.id, claim: owed.claim, ...sent })
      const line = {
        delivery_id: owed.id,
        attendee_id: owed.attendee.id,
        attempt: owed.attempt,
        transport: mail.name,
        duration_ms: milliseconds,
      }
      if ('error' in sent) log.warn({ ...line, reason, permanent: sent.permanent }, 'ticket e-mail failed')
      else log.info(line, 'ticket e-mail')
      observe('ticket_emails', outcomeOf(sent), milliseconds / 1000)
    },
  }
}

const outcomeOf = (sent: Sent): string => (!('error' in sent) ? 'sent' : sent.permanent ? 'refused' : 'failed')
