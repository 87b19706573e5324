// Shows where two snapshots differ: `-` stands before what only the schemas have, `+` before what only the migrations have.

import { diff } from 'node:util'
import type { Snapshot } from './catalogue.ts'

// Equal lines shown around a difference.
const context = 2

/** @returns '' when they are equal. */
export function diffSnapshots(schemas: Snapshot, migrations: Snapshot): string {
  const missing = [...schemas.keys()].filter((object) => !migrations.has(object))
  const surplus = [...migrations.keys()].filter((object) => !schemas.has(object))
  return [
    missing.map((object) => `- ${object}`).join('\n'),
    surplus.map((object) => `+ ${object}`).join('\n'),
    ...[...schemas].map(([object, definition]) => diffObject(object, definition, migrations.get(object))),
  ]
    .filter((part) => part !== '')
    .join('\n\n')
}

function diffObject(object: string, schemas: string, migrations: string | undefined): string {
  if (migrations === undefined || schemas === migrations) return ''
  return [`  ${object}`, ...diffLines(schemas.split('\n'), migrations.split('\n'))].join('\n')
}

function diffLines(schemas: string[], migrations: string[]): string[] {
  const marked = diff(schemas, migrations) as [operation: number, line: string][]
  const isShown = (index: number) =>
    marked.slice(Math.max(0, index - context), index + context + 1).some(([operation]) => operation !== 0)
  return marked.flatMap(([operation, line], index) => {
    if (isShown(index)) return [`${operation > 0 ? '-' : operation < 0 ? '+' : ' '}   ${line}`]
    // A run of lines left out between two that are shown.
    return isShown(index - 1) && marked.slice(index).some(([later]) => later !== 0) ? ['    …'] : []
  })
}
