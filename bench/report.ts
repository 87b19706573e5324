// Tables for the terminal, medians with their range over the rounds, and targets.

import type { Round, Row } from './compare.ts'
import type { Faults } from './counts.ts'

export type Outcome = { targets: Target[]; faults: Faults }

/** `figure` is the measurement in words. */
export type Target = { target: string; figure: string; met: boolean }

export const noFaults: Faults = { lost: 0, duplicated: 0, oversold: 0, unsold: 0 }

const figures = {
  rate: 'throughput',
  p50: 'p50',
  p95: 'p95',
  p99: 'p99',
  postgres: 'CPU of Postgres',
} satisfies Partial<Record<keyof Round, string>>

/** A bound of the first subject's figure, or of its ratio to another subject's. */
export type Limit = { figure: keyof typeof figures; at: number; against?: string } & Bound
type Bound = { atLeast: number; atMost?: never } | { atMost: number; atLeast?: never }

export function targetsOf(title: string, rows: Row[], limits: Limit[]): Target[] {
  return limits.flatMap(({ figure, at, against, ...bound }) => {
    const [first, ...others] = rows.filter(({ connections }) => connections === at)
    const other = others.find(({ subject }) => subject === against)
    // There is no `base` without --base.
    if (first === undefined || (against !== undefined && other === undefined)) return []
    const values = other ? ratios(first, other, figure) : first.rounds.map((round) => round[figure])
    const of = `${title}: ${figures[figure]} at ${at} connection${at === 1 ? '' : 's'}`
    return judged(of, values, bound, other ? `× ${other.subject}` : figure === 'rate' ? '/s' : ' ms')
  })
}

export function judged(name: string, values: number[], { atLeast, atMost }: Bound, unit: string): Target {
  const value = median(values)
  const target = `${name} ${atMost === undefined ? `≥ ${atLeast}` : `≤ ${atMost}`}${unit}`
  return { target, figure: ranged(values), met: value >= (atLeast ?? -Infinity) && value <= (atMost ?? Infinity) }
}

const ratios = (a: Row, b: Row, figure: keyof typeof figures): number[] =>
  a.rounds.map((round, i) => round[figure] / (b.rounds[i]?.[figure] ?? Number.NaN))

export const median = (values: number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2
}

/** The median, with the lowest and the highest in brackets. */
export const ranged = (values: number[]): string =>
  `${fixed(median(values))} (${fixed(Math.min(...values))}–${fixed(Math.max(...values))})`

export const fixed = (value: number): string =>
  Number.isNaN(value) ? '–' : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)

export function printComparison(title: string, rows: Row[]): void {
  const heads = ['connections', 'subject', 'per s', 'p50 ms', 'p99 ms', 'node', 'postgrest', 'postgres', 'load']
  const lines = rows.map((row) => {
    const all = (figure: Exclude<keyof Round, 'statuses'>) => row.rounds.map((round) => round[figure])
    const parts = (['p50', 'p99', 'node', 'postgrest', 'postgres', 'load'] as const).map((part) => all(part))
    return [`${row.connections}`, row.subject, ranged(all('rate')), ...parts.map(median).map(fixed), answersOf(row)]
  })
  printTable(title, [[...heads, 'answers'], ...lines])
  for (const connections of new Set(rows.map((row) => row.connections))) {
    const [first, ...others] = rows.filter((row) => row.connections === connections)
    for (const other of others) {
      const parts = (['rate', 'p50', 'p99', 'postgres'] as const).map(
        (figure) => `${figures[figure]} ${ranged(ratios(first as Row, other, figure))}`,
      )
      console.log(`  ${connections}: ${first?.subject} / ${other.subject}: ${parts.join(', ')}`)
    }
  }
}

/** Answers of all rounds by status. */
function answersOf({ rounds }: Row): string {
  const statuses = Object.keys(Object.assign({}, ...rounds.map((round) => round.statuses)))
  const times = (status: string) => rounds.reduce((sum, round) => sum + (round.statuses[status] ?? 0), 0)
  return statuses.map((status) => `${times(status)} × ${status}`).join(', ')
}

export function printTable(title: string, table: string[][]): void {
  console.log(`\n  ${title}`)
  const widths = table[0]?.map((_, i) => Math.max(...table.map((row) => row[i]?.length ?? 0))) ?? []
  for (const row of table) {
    // Names to the left, figures to the right.
    const cells = row.map((cell, i) =>
      /^[\d–]/.test(cell) ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0),
    )
    console.log(`  ${cells.join('  ')}`.trimEnd())
  }
}

export function printOutcome({ targets, faults }: Outcome): void {
  console.log()
  for (const { target, figure, met } of targets) console.log(`  ${met ? 'met    ' : 'NOT MET'}  ${target}: ${figure}`)
  console.log(
    `  ${Object.entries(faults)
      .map(([fault, n]) => `${fault} ${n}`)
      .join(', ')}`,
  )
}
