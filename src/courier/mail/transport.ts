// The interface of a mail transport. A transport makes one attempt: the queue retries.

import { clip, oneLine } from '../../guests/plain-text.ts'
import type { Email } from '../email.ts'

export type MailTransport = {
  /** For logs. */
  name: string
  /** Resolves once the transport has accepted the e-mail, with the id that the transport gave it.
   * @throws MailError */
  send(email: Email): Promise<{ message_id: string }>
  /** Closes connections once the e-mails in flight are finished. */
  close(): Promise<void>
}

/** Permanent: this e-mail to this address can never be sent. Anything else is retried. */
export class MailError extends Error {
  readonly permanent: boolean
  /** For logs, which must contain no address: the service and its code. */
  readonly reason: string

  /** The message is reduced to one line of bounded length without `secrets`: organisers read it in Studio. */
  constructor(permanent: boolean, reason: string, message: string, secrets: (string | undefined)[] = []) {
    super(clip(oneLine(withoutSecrets(message, secrets)), 300))
    this.permanent = permanent
    this.reason = reason
  }
}

const withoutSecrets = (message: string, secrets: (string | undefined)[]) =>
  secrets.reduce<string>((text, secret) => (secret ? text.replaceAll(secret, '***') : text), message)
