// Validates and encodes one mailbox for a transport. The result is exactly one mailbox, or a permanent MailError: no spelling of an
// address or a name may ever add a second recipient.

import { domainToASCII } from 'node:url'
import { oneLine } from '../../guests/plain-text.ts'
import type { Mailbox } from '../email.ts'
import { MailError } from './transport.ts'

/** An internationalised domain, such as bücher.example, is converted to ASCII, which every server supports. */
export function wireMailbox({ name, address }: Mailbox): Mailbox {
  // Excludes what RFC 5322 gives a meaning outside quotes. Quoted addresses are rarer than attacks that use them.
  const [, local, domain] = /^([^\s\p{Cc}@"(),:;<>[\]\\]+)@([^\s\p{Cc}@"(),:;<>[\]\\]+)$/u.exec(address) ?? []
  const asciiDomain = domain !== undefined && /[^ -~]/.test(domain) ? domainToASCII(domain) : domain
  if (!local || !asciiDomain)
    throw new MailError(true, 'no address', `${JSON.stringify(address)} is not an address mail can be sent to.`)
  return { name: oneLine(name), address: `${local}@${asciiDomain}` }
}

/** `"Name" <address>`, for APIs that take both in one string. */
export function mailboxText(mailbox: Mailbox): string {
  const { name, address } = wireMailbox(mailbox)
  return name === '' ? address : `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`
}
