// What every way of sending an e-mail has in common. A transport tries once: repeating is up to whoever owes the e-mail.

import type { Email } from '../email.ts'
import { clip, oneLine } from '../plain-text.ts'

export type MailTransport = {
  /** For logs. */
  name: string
  /** Answers under which id the transport knows the e-mail, once it has taken responsibility for it.
   * @throws MailError */
  send(email: Email): Promise<{ message_id: string }>
  /** Lets go of connections; e-mails that are being sent are finished. */
  close(): Promise<void>
}

/** Permanent: this e-mail to this address will not do, ever. Everything else is worth another try later. */
export class MailError extends Error {
  readonly permanent: boolean
  /** For logs, which hold no address: a code, and whose it is. */
  readonly reason: string

  /** The message becomes one line of bounded length, and `secrets` are struck out: organisers read it in Studio. */
  constructor(permanent: boolean, reason: string, message: string, secrets: (string | undefined)[] = []) {
    super(clip(oneLine(withoutSecrets(message, secrets)), 300))
    this.permanent = permanent
    this.reason = reason
  }
}

const withoutSecrets = (message: string, secrets: (string | undefined)[]) =>
  secrets.reduce<string>((text, secret) => (secret ? text.replaceAll(secret, '***') : text), message)
