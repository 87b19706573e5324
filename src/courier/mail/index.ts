// Chooses the mail transport.

import { fileTransport } from './files.ts'
import { postmarkTransport } from './postmark.ts'
import { smtpTransport } from './smtp.ts'
import type { MailTransport } from './transport.ts'

export { MailError, type MailTransport } from './transport.ts'

export type MailOptions =
  | { postmarkToken: string; messageStream?: string }
  | { smtpUrl: string }
  | { directory: string }

export function openMail(options: MailOptions): MailTransport {
  if ('postmarkToken' in options) {
    const { postmarkToken, ...rest } = options
    return postmarkTransport(postmarkToken, rest)
  }
  return 'smtpUrl' in options ? smtpTransport(options.smtpUrl) : fileTransport(options.directory)
}
