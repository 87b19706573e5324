// Chooses the mail transport.

import { fileTransport } from './files.ts'
import { type PostmarkOptions, postmarkTransport } from './postmark.ts'
import { smtpTransport } from './smtp.ts'
import type { MailTransport } from './transport.ts'

export { MailError, type MailTransport } from './transport.ts'

export type MailOptions = PostmarkOptions | { smtpUrl: string } | { directory: string }

export function openMail(options: MailOptions): MailTransport {
  if ('postmarkToken' in options) return postmarkTransport(options)
  return 'smtpUrl' in options ? smtpTransport(options.smtpUrl) : fileTransport(options.directory)
}
