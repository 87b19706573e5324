// Addresses as the wire wants them. In comes one mailbox, out goes exactly one, or a permanent MailError: no spelling of an
// address or a name may ever reach a second recipient.

import { domainToASCII } from 'node:url'
import type { Mailbox } from '../email.ts'
import { oneLine } from '../plain-text.ts'
import { MailError } from './transport.ts'

/** With a domain such as bücher.example in its ASCII form, which every server understands. */
export function wireMailbox({ name, address }: Mailbox): Mailbox {
  // What RFC 5322 gives a meaning outside of quotes; addresses in quotes are rarer than mischief with them.
  const [, local, domain] = /^([^\s\p{Cc}@"(),:;<>[\]\\]+)@([^\s\p{Cc}@"(),:;<>[\]\\]+)$/u.exec(address) ?? []
  const asciiDomain = domain !== undefined && /[^ -~]/.test(domain) ? domainToASCII(domain) : domain
  if (!local || !asciiDomain)
    throw new MailError(true, 'no address', `${JSON.stringify(address)} is not an address mail can be sent to.`)
  return { name: oneLine(name), address: `${local}@${asciiDomain}` }
}

/** `"Name" <address>`, for interfaces that take both in one string. */
export function mailboxText(mailbox: Mailbox): string {
  const { name, address } = wireMailbox(mailbox)
  return name === '' ? address : `"${name.replace(/["\\]/g, '\\$&')}" <${address}>`
}
