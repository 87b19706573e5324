// An e-mail as a plain value: what a composer hands to a transport. Nothing in it depends on how it is sent.

/** Name and address apart, so that no name is ever read as part of an address. */
export type Mailbox = { name: string; address: string }

export type Attachment = {
  filename: string
  contentType: string
  content: Buffer
  /** Shown inside the HTML, which names it as `cid:…`; without one it is a file to save. */
  cid?: string
}

export type Email = {
  /** Of what is owed. The same owed e-mail has the same id, and so the same messageId, however often it is tried. */
  id: string
  /** The how-manieth time it is tried. */
  attempt: number
  from: Mailbox
  to: Mailbox
  replyTo?: Mailbox
  subject: string
  html: string
  text: string
  attachments: Attachment[]
  /** RFC 5322 Message-ID with its angle brackets: a mailbox that gets the same e-mail twice can tell. */
  messageId: string
}

/** Nobody's holiday notice should answer a program: RFC 3834, and what Exchange looks for instead. */
export const headersOfPrograms = {
  'Auto-Submitted': 'auto-generated',
  'X-Auto-Response-Suppress': 'OOF, AutoReply',
} as const
