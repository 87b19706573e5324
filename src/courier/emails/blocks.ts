// The blocks of an e-mail, which the HTML and the text part render each in its way.

import { type Facts, whenLines, whereLines } from '../../guests/facts.ts'
import type { AmountRow } from '../../guests/money.ts'
import type { PendingEmail } from '../../guests/pending.ts'
import { oneLine } from '../../guests/plain-text.ts'

/** Lines under a label; the first one is set off, but in a list. */
export type Detail = { label: string; lines: string[]; link?: string | undefined; isList?: boolean }

export type Block =
  | { type: 'details'; details: Detail[] }
  | { type: 'ticket'; number: number; code: string; holder: string; company: string | undefined }
  | { type: 'changes'; changes: { label: string; before: string[]; now: string[] }[] }
  | { type: 'amounts'; rows: AmountRow[] }
  | { type: 'sentences'; sentences: string[] }
  | { type: 'quote'; label: string; lines: string[] }
  // In the Markdown of src/guests/notes.ts.
  | { type: 'notes'; label: string | undefined; text: string }
  | { type: 'button'; label: string; url: string }
  | { type: 'link'; label: string; url: string }

export const sentences = (...said: string[]): Block => ({ type: 'sentences', sentences: said })

export const details = (...rows: Detail[]): Block => ({ type: 'details', details: rows })

export const whenAndWhere = (facts: Facts): Block =>
  details(
    { label: facts.words.when, lines: whenLines(facts.time, facts.words) },
    { label: facts.words.where, lines: whereLines(facts, facts.words), link: facts.onlineUrl },
  )

export const ticketRow = (lines: string[], { words }: Facts): Detail => ({ label: words.ticket, lines })

export const orderRow = ({ words, reference }: Facts): Detail => ({ label: words.order, lines: [reference] })

/** None without an address: the courier may have no PUBLIC_URL. */
export const linkTo = (url: string | null, label: string, type: 'link' | 'button' = 'link'): Block[] =>
  url === null ? [] : [{ type, label, url }]

export const orderLink = ({ order_url }: PendingEmail, { words }: Facts, type: 'link' | 'button' = 'link') =>
  linkTo(order_url, words.orderPage.open, type)

export const lineOf = ({ name, ticket_type }: { name: string; ticket_type: string }) =>
  oneLine(`${name} – ${ticket_type}`)

export const unique = (lines: string[]): string[] => [...new Set(lines)]

// As private.pending_email_json.
const mostGuests = 100

export const guestLines = (lines: string[]): string[] =>
  lines.length > mostGuests ? [...lines.slice(0, mostGuests), '…'] : lines
