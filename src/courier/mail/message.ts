// What transports make of an e-mail: one mailbox each for its addresses, or a permanent MailError, so that no spelling of an address or a
// name adds a second recipient; and a nodemailer message, for those that write MIME. nodemailer must never read a file or fetch a URL.

import { domainToASCII } from 'node:url'
import type { SendMailOptions } from 'nodemailer'
import { oneLine } from '../../guests/plain-text.ts'
import { type Email, headersOf, type Mailbox } from '../email.ts'
import { MailError } from './transport.ts'

/** An internationalised domain, such as bücher.example, is converted to ASCII, which every server supports. */
function wireMailbox({ name, address }: Mailbox): Mailbox {
  // Excludes what RFC 5322 gives a meaning outside quotes. Quoted addresses are rarer than attacks that use them.
  const [, local, domain] = /^([^\s\p{Cc}@"(),:;<>[\]\\]+)@([^\s\p{Cc}@"(),:;<>[\]\\]+)$/u.exec(address) ?? []
  const asciiDomain = domain !== undefined && /[^ -~]/.test(domain) ? domainToASCII(domain) : domain
  if (!local || !asciiDomain)
    throw new MailError(true, 'no address', `${JSON.stringify(address)} is not a deliverable address.`)
  return { name: oneLine(name), address: `${local}@${asciiDomain}` }
}

/** `"Name" <address>`, for APIs that take both in one string. */
export function mailboxText(mailbox: Mailbox): string {
  const { name, address } = wireMailbox(mailbox)
  return name === '' ? address : `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`
}

/** @throws MailError, if an address is not valid. */
export const mimeMessage = (email: Email): SendMailOptions => ({
  from: wireMailbox(email.from),
  to: wireMailbox(email.to),
  ...(email.replyTo && { replyTo: wireMailbox(email.replyTo) }),
  subject: email.subject,
  html: email.html,
  text: email.text,
  messageId: email.messageId,
  headers: headersOf(email),
  attachments: email.attachments.map(({ filename, contentType, content, cid }) => ({
    filename,
    contentType,
    content,
    contentDisposition: cid === undefined ? 'attachment' : 'inline',
    ...(cid !== undefined && { cid }),
  })),
  disableFileAccess: true,
  disableUrlAccess: true,
})
