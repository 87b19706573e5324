// An e-mail as a plain value, independent of the transport that sends it.

/** Name and address are separate, so that a name is never parsed as part of an address. */
export type Mailbox = { name: string; address: string }

export type Attachment = {
  filename: string
  contentType: string
  content: Buffer
  /** Shown inline in the HTML, which refers to it as `cid:…`; without it the attachment is a file. */
  cid?: string
}

export type Email = {
  /** Of the pending e-mail: the same at each attempt, and so is the messageId. */
  id: string
  /** Attempt number, from 1. */
  attempt: number
  from: Mailbox
  to: Mailbox
  replyTo?: Mailbox
  subject: string
  html: string
  text: string
  attachments: Attachment[]
  /** Where whoever gets it switches such e-mails off. */
  optOutUrl?: string
  /** RFC 5322 Message-ID with its angle brackets, so that a mailbox can recognise a duplicate. */
  messageId: string
}

/** In a test organisation, whatever is sent to this address bounces. */
export const bouncingAddress = 'bounce@example.com'

/** As `get_email` answers it: an e-mail of a test organisation, which is kept in place of being sent. */
export const keptOf = ({ subject, text, html, attachments }: Email) => ({
  subject,
  text,
  html,
  attachments: attachments.map(({ filename, contentType, content, cid }) => ({
    filename,
    content_type: contentType,
    content_id: cid ?? null,
    content: content.toString('base64'),
  })),
})

/** Besides those that every e-mail has. */
export const headersOf = ({ optOutUrl }: Email): Record<string, string> => ({
  // Suppress automatic replies: RFC 3834, and the header that Exchange looks for instead.
  'Auto-Submitted': 'auto-generated',
  'X-Auto-Response-Suppress': 'OOF, AutoReply',
  // RFC 8058, which asks for https.
  ...(optOutUrl?.startsWith('https:') && {
    'List-Unsubscribe': `<${optOutUrl}>`,
    'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
  }),
})
