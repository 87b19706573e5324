// Tables for the terminal, and ratios with their spread over the rounds.

import type { Comparison, Round, Row } from './compare.ts'
import type { Faults } from './counts.ts'
import type { SubjectName } from './subjects.ts'

export type Spread = { median: number; min: number; max: number }

/** What a scenario found; `figures` of those that do not compare. */
export type Outcome = { targets: Target[]; faults?: Faults; rows?: Row[]; figures?: Record<string, unknown> }

/** `figure` is what was measured, in words. */
export type Target = { target: string; figure: string; met: boolean }

export const median = (values: number[]): number => {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  return ((sorted[Math.ceil(middle) - 1] ?? Number.NaN) + (sorted[Math.floor(middle)] ?? Number.NaN)) / 2
}

export const spread = (values: number[]): Spread => ({
  median: median(values),
  min: Math.min(...values),
  max: Math.max(...values),
})

type Figure = 'rate' | 'p50' | 'p95' | 'p99'
type Side = { subject: SubjectName; connections: number }

const rowOf = ({ rows }: Comparison, side: Side): Row | undefined =>
  rows.find(({ subject, connections }) => subject === side.subject && connections === side.connections)

/** Of two rows, round by round. Undefined: one of them was not measured. */
export function ratio(comparison: Comparison, figure: Figure, of: Side, to: Side): Spread | undefined {
  const [above, below] = [rowOf(comparison, of), rowOf(comparison, to)]
  if (above === undefined || below === undefined) return undefined
  return spread(above.rounds.map((round, i) => round[figure] / (below.rounds[i]?.[figure] ?? Number.NaN)))
}

export function figureOf(comparison: Comparison, figure: Figure, of: Side): Spread | undefined {
  const row = rowOf(comparison, of)
  return row && spread(row.rounds.map((round) => round[figure]))
}

export const judged = (
  target: string,
  figure: string,
  value: number,
  {
    atLeast = Number.NEGATIVE_INFINITY,
    atMost = Number.POSITIVE_INFINITY,
  }: { atLeast?: number | undefined; atMost?: number | undefined },
): Target => ({ target, figure, met: value >= atLeast && value <= atMost })

export const times = ({ median, min, max }: Spread): string => `${fixed(median)}× (${fixed(min)}–${fixed(max)})`

export const fixed = (value: number): string =>
  Number.isNaN(value) ? '–' : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)

const at = (row: Row, of: (round: Round) => number): string => fixed(median(row.rounds.map(of)))

export function printComparison(comparison: Comparison): void {
  const levels = new Set(comparison.rows.map(({ connections }) => connections))
  const table = [
    ['connections', 'subject', 'per s', 'p50 ms', 'p99 ms', 'node', 'postgrest', 'postgres', 'load', 'answers'],
  ]
  for (const row of comparison.rows) {
    table.push([
      String(row.connections),
      row.subject,
      at(row, ({ rate }) => rate),
      at(row, ({ p50 }) => p50),
      at(row, ({ p99 }) => p99),
      ...(['node', 'postgrest', 'postgres', 'load'] as const).map((part) => at(row, ({ cpu }) => cpu[part])),
      statusesOf(row),
    ])
  }
  printTable(table)
  for (const connections of levels) {
    const [first, ...others] = comparison.rows.filter((row) => row.connections === connections)
    if (first === undefined) continue
    for (const { subject } of others) {
      const parts = (['rate', 'p50', 'p99'] as const).map((figure) => {
        const found = ratio(comparison, figure, first, { subject, connections })
        return `${figure === 'rate' ? 'throughput' : figure} ${found ? times(found) : '–'}`
      })
      console.log(`  ${connections}: ${first.subject} / ${subject}: ${parts.join(', ')}`)
    }
  }
}

/** Answers of all rounds by status. */
function statusesOf({ rounds }: Row): string {
  const sum: Record<string, number> = {}
  for (const { statuses } of rounds)
    for (const [status, n] of Object.entries(statuses)) sum[status] = (sum[status] ?? 0) + n
  return Object.entries(sum)
    .map(([status, n]) => `${n} × ${status}`)
    .join(', ')
}

export function printTable(table: string[][]): void {
  const widths = table[0]?.map((_, i) => Math.max(...table.map((row) => row[i]?.length ?? 0))) ?? []
  for (const row of table) {
    // Names to the left, figures to the right.
    console.log(
      `  ${row.map((cell, i) => (/^[\d–]/.test(cell) ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0))).join('  ')}`.trimEnd(),
    )
  }
}

export function printTargets(targets: Target[]): void {
  for (const { target, figure, met } of targets) console.log(`  ${met ? 'met    ' : 'NOT MET'}  ${target}: ${figure}`)
}
