// An Email as nodemailer takes it, for the transports that write MIME themselves. It is never told to read a file or fetch a URL.

import type { SendMailOptions } from 'nodemailer'
import { type Email, headersOfPrograms } from '../email.ts'
import { wireMailbox } from './address.ts'

/** @throws MailError when an address is none. */
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
  headers: headersOfPrograms,
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
