// Converts an Email to a nodemailer message, for the transports that write MIME. nodemailer must never read a file or fetch a URL.

import type { SendMailOptions } from 'nodemailer'
import { type Email, headersOf } from '../email.ts'
import { wireMailbox } from './address.ts'

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
