// Converts an Email to a nodemailer message, for the transports that write MIME. nodemailer must never read a file or fetch a URL.

import type { SendMailOptions } from 'nodemailer'
import { automatedMailHeaders, type Email } from '../email.ts'
import { wireMailbox } from './address.ts'

/** @throws MailError, if an address is not valid. */
export const mimeMessage = ({
  from,
  to,
  replyTo,
  subject,
  html,
  text,
  messageId,
  attachments,
}: Email): SendMailOptions => ({
  from: wireMailbox(from),
  to: wireMailbox(to),
  ...(replyTo && { replyTo: wireMailbox(replyTo) }),
  subject,
  html,
  text,
  messageId,
  headers: automatedMailHeaders,
  attachments: attachments.map(({ filename, contentType, content, cid }) => ({
    filename,
    contentType,
    content,
    contentDisposition: cid === undefined ? 'attachment' : 'inline',
    ...(cid !== undefined && { cid }),
  })),
  disableFileAccess: true,
  disableUrlAccess: true,
})
