// Sends through an SMTP server over a small connection pool. It must never show the password of the URL.

import nodemailer, { type NodemailerError } from 'nodemailer'
import { mimeMessage } from './message.ts'
import { MailError, type MailTransport } from './transport.ts'

const options = {
  pool: true,
  maxConnections: 4,
  // The queue retries, and counts the attempts.
  maxRequeues: 0,
  // Servers close idle connections after a minute or more; the pool closes them first.
  idleTimeout: 30_000,
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  dnsTimeout: 10_000,
  socketTimeout: 60_000,
} as const

/** @param url `smtps://user:password@host:465`, or `smtp://…:587` with `?requireTLS=true`; further query parameters as in nodemailer. */
export function smtpTransport(url: string): MailTransport {
  const pool = nodemailer.createTransport({ ...options, url })
  const secrets = secretsOf(url)
  return {
    name: 'smtp',
    async send(email) {
      const message = mimeMessage(email)
      try {
        const { messageId } = await pool.sendMail(message)
        return { message_id: messageId }
      } catch (error) {
        throw asMailError(error as NodemailerError, secrets)
      }
    },
    async close() {
      pool.close()
    },
  }
}

// A refusal of the recipient or the content concerns this e-mail. A refused login or sender concerns the account: once that is resolved
// the e-mail can be sent, so it is not permanent.
function asMailError(error: NodemailerError, secrets: string[]): MailError {
  const isAboutTheEmail = error.command === 'RCPT TO' || error.command === 'DATA'
  const reason = ['SMTP', error.command, error.responseCode ?? error.code].filter(Boolean).join(' ')
  return new MailError(isAboutTheEmail && error.permanent === true, reason, `SMTP: ${error.message}`, secrets)
}

function secretsOf(url: string): string[] {
  const { username, password } = new URL(url)
  const plain = decodeURIComponent(password)
  return [plain, password, btoa(plain), btoa(`\0${decodeURIComponent(username)}\0${plain}`)].filter(() => plain !== '')
}
