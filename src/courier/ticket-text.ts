// The text part of a ticket e-mail: the same facts as the HTML, for clients and people that prefer text.

import { type TicketFacts, ticketAdvice } from './ticket-facts.ts'

export function ticketText(facts: TicketFacts): string {
  const { time, venue, onlineUrl, company } = facts
  const when = time ? [...time.lines, time.zone] : ['To be announced']
  const where = venue.length > 0 || onlineUrl ? venue : ['To be announced']
  const rows: [label: string, lines: string[]][] = [
    ['When', when],
    ['Where', where],
    ['Online', onlineUrl ? [onlineUrl] : []],
    ['Name', [facts.attendee]],
    ['Company', company ? [company] : []],
    ['Ticket', [facts.ticketType]],
    ['Order', [facts.reference]],
    ['Code', [facts.code]],
  ]
  const paragraphs = [
    `Your ticket for\n${facts.event}\nby ${facts.organisation}`,
    rows.flatMap(([label, lines]) => lines.map((line, index) => row(index === 0 ? label : '', line))).join('\n'),
    ...ticketAdvice(facts),
  ]
  return `${paragraphs.join('\n\n')}\n`
}

const row = (label: string, line: string) => `${label.padEnd(9)}${line}`
