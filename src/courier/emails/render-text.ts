// The text part of an e-mail: the same blocks as the HTML, for clients and people that prefer text.

import type { Facts } from '../../guests/facts.ts'
import { notesText } from '../../guests/notes.ts'
import { fill } from '../../guests/words/index.ts'
import type { Block } from './blocks.ts'
import type { Content } from './content.ts'

type Row = { label: string; lines: string[] }

export function emailText({ headline, blocks, closing, contact, optOut }: Content, facts: Facts): string {
  const { words, event, organisation, test } = facts
  const paragraphs = [
    `${test === undefined ? '' : `${test}\n`}${headline}\n${event}\n${fill(words.by, { organisation })}`,
  ]
  let rows: Row[] = []
  const finishRows = () => {
    if (rows.length > 0) paragraphs.push(tableOf(rows))
    rows = []
  }
  for (const block of blocks) {
    if (block.type === 'sentences') {
      finishRows()
      paragraphs.push(...block.sentences)
    } else if (block.type === 'quote') {
      finishRows()
      paragraphs.push([`${block.label}:`, ...block.lines.map((line) => `> ${line}`)].join('\n'))
    } else if (block.type === 'notes') {
      finishRows()
      paragraphs.push(...(block.label === undefined ? [] : [`${block.label}:`]), notesText(block.text))
    } else if (block.type === 'link' || block.type === 'button') {
      finishRows()
      paragraphs.push(`${block.label}\n${block.url}`)
    } else if (block.type === 'amounts') {
      finishRows()
      paragraphs.push(amountsOf(block.rows))
    } else {
      rows.push(...rowsOf(block, facts))
    }
  }
  finishRows()
  const { sentence, address } = contact
  const reached = address === undefined ? sentence : `${sentence} ${address}`
  const foot = optOut === undefined ? [] : [`${optOut.label}\n${optOut.url}`]
  return `${[...paragraphs, ...closing, reached, ...foot].join('\n\n')}\n`
}

function rowsOf(
  block: Exclude<Block, { type: 'sentences' | 'quote' | 'notes' | 'amounts' | 'link' | 'button' }>,
  { words }: Facts,
): Row[] {
  switch (block.type) {
    case 'details':
      return block.details.flatMap(({ label, lines, link }) => [
        { label, lines },
        ...(link ? [{ label: words.online, lines: [link] }] : []),
      ])
    case 'ticket':
      return [
        { label: words.name, lines: [block.holder] },
        ...(block.company ? [{ label: words.company, lines: [block.company] }] : []),
        { label: words.code, lines: [block.code] },
      ]
    case 'changes':
      return block.changes.flatMap(({ label, before, now }) => [
        { label: `${label} – ${words.before}`, lines: before },
        { label: `${label} – ${words.now}`, lines: now },
      ])
  }
}

function tableOf(rows: Row[]): string {
  const width = Math.max(...rows.map(({ label }) => label.length)) + 2
  return rows
    .flatMap(({ label, lines }) => lines.map((line, index) => `${(index === 0 ? label : '').padEnd(width)}${line}`))
    .join('\n')
}

function amountsOf(rows: { label: string; amount: string }[]): string {
  const width = Math.max(...rows.map(({ label }) => label.length)) + 2
  const right = Math.max(...rows.map(({ amount }) => amount.length))
  return rows.map(({ label, amount }) => `${label.padEnd(width)}${amount.padStart(right)}`).join('\n')
}
