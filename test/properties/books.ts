// The file for accounting held against the figures of the event: to the last unit, in minor units and in decimals.

import { inject } from 'vitest'
import { parseCsv } from '../support/csv.ts'
import { rest } from '../support/rest.ts'

/** What does not add up. None, or something is wrong. */
export async function problemsOfBooks(eventId: string, key: string): Promise<string[]> {
  const file = await fetch(`${inject('apiUrl')}/api/v1/exports/payments?event_id=${eventId}`, {
    headers: { Authorization: `Bearer ${key}` },
  })
  const lines = parseCsv(await file.text())
  const sum = (column: string, types: string[]) =>
    lines
      .filter(({ type = '' }) => types.includes(type))
      .reduce((total, line) => total + BigInt((line[column] as string).replace('.', '')), 0n)
  const { paid, refunded } = (await rest(key)('GET', `/events/${eventId}/summary`)).body.data.revenue
  return ['amount', 'amount_decimal'].flatMap((column) => {
    const books = { paid: sum(column, ['payment', 'void']), refunded: -sum(column, ['refund']) }
    const isSame = books.paid === BigInt(paid) && books.refunded === BigInt(refunded)
    return isSame
      ? []
      : [`${column}: paid ${books.paid}, refunded ${books.refunded}, but the event has ${paid}, ${refunded}`]
  })
}
