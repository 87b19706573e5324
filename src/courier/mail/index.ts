// Chooses how e-mails are sent. In come plain options, out goes the transport; who reads them from where is not decided here.

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
