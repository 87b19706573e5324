// Sends through Postmark's API with its official client. The message_id is the MessageID that Postmark's webhooks refer to. It tracks
// neither opens nor clicks.

import { Errors, Models, ServerClient } from 'postmark'
import { type Email, headersOf } from '../email.ts'
import { mailboxText } from './message.ts'
import { MailError, type MailTransport } from './transport.ts'

export type PostmarkOptions = { postmarkToken: string; messageStream?: string }

/** @param client for a test double of Postmark's API. */
export function postmarkTransport(
  { postmarkToken: token, messageStream }: PostmarkOptions,
  client: { requestHost?: string; useHttps?: boolean } = {},
): MailTransport {
  const postmark = new ServerClient(token, { timeout: 30, ...client })
  return {
    name: 'postmark',
    async send(email) {
      const message = postmarkMessage(email, messageStream)
      const answer = await postmark.sendEmail(message).catch((error: unknown) => {
        throw asMailError(error, token)
      })
      if (typeof answer.MessageID === 'string') return { message_id: answer.MessageID }
      throw new MailError(false, 'Postmark no MessageID', 'Postmark: the answer has no MessageID.')
    },
    async close() {},
  }
}

function postmarkMessage(email: Email, messageStream = 'outbound'): Models.Message {
  const headers = { ...headersOf(email), 'Message-ID': email.messageId, 'X-PM-KeepID': 'true' }
  return {
    MessageStream: messageStream,
    From: mailboxText(email.from),
    To: mailboxText(email.to),
    ...(email.replyTo && { ReplyTo: mailboxText(email.replyTo) }),
    Subject: email.subject,
    HtmlBody: email.html,
    TextBody: email.text,
    TrackOpens: false,
    TrackLinks: Models.LinkTrackingOptions.None,
    // Every Postmark webhook about this e-mail repeats this, even if the answer to this call was lost.
    Metadata: { email_id: email.id, attempt: String(email.attempt) },
    Headers: Object.entries(headers).map(([Name, Value]) => ({ Name, Value })),
    Attachments: email.attachments.map(({ filename, contentType, content, cid }) => ({
      Name: filename,
      ContentType: contentType,
      Content: content.toString('base64'),
      ContentID: cid === undefined ? null : `cid:${cid}`,
    })),
  }
}

// https://postmarkapp.com/developer/api/overview#error-codes. These concern the account or the moment, not this e-mail:
// bad token, maintenance, sender signature missing or unconfirmed, out of credits, account pending or suspended, rate limit.
// Once that is resolved the e-mail can be sent, so they are not permanent.
const notAboutTheEmail = new Set([10, 100, 400, 401, 405, 412, 413, 429])

function asMailError(error: unknown, token: string): MailError {
  if (!(error instanceof Errors.PostmarkError)) {
    return new MailError(false, 'Postmark unreachable', `Postmark: ${String(error)}`, [token])
  }
  const { code, statusCode, message } = error
  // Without an ErrorCode the answer did not come from Postmark, but from a proxy, or there was none.
  const permanent =
    code > 0 && !notAboutTheEmail.has(code) && statusCode >= 400 && statusCode < 500 && statusCode !== 429
  return new MailError(
    permanent,
    `Postmark ${code > 0 ? code : `HTTP ${statusCode}`}`,
    `Postmark${code > 0 ? ` ${code}` : ''}: ${message}`,
    [token],
  )
}
