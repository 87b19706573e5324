// An export as a CSV file (RFC 4180) in UTF-8, sent as fast as the client reads it. One that cannot be completed is cut off: a client tells
// it from a complete one by its missing end.

import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate as others } from 'node:timers/promises'
import { stringify } from 'csv-stringify'
import type { Response } from 'express'
import type { OpenExport, Row } from '../gateway/exports.ts'
import type { Operation } from '../operations/operation.ts'
import { jsonWithoutFormulas, withoutFormulas } from './formulas.ts'

// Rows that are written before other requests have their turn.
const rowsAtOnce = 25

export function headersOfCsv({ csv }: Operation, day = new Date().toISOString().slice(0, 10)): Record<string, string> {
  return {
    'Content-Type': 'text/csv; charset=utf-8',
    'Content-Disposition': `attachment; filename="${csv?.name}-${day}.csv"`,
  }
}

/** @throws ApiError, after the answer has begun and is cut off, when the key is no longer valid. */
export async function sendCsv(res: Response, open: OpenExport, bom: boolean): Promise<void> {
  const { operation, asOf, fields, pages, signal } = open
  const columns = [...new Set(fields ?? operation.csv?.columns)]
  res.set({ ...headersOfCsv(operation, asOf.slice(0, 10)), 'Usher-Export-As-Of': asOf })
  // The listener's limit is for a reader who does not read. A page of which no row matches writes nothing, and more than one may follow.
  res.on('timeout', () => {
    if (res.writableLength > 0) res.destroy()
    else res.socket?.setTimeout(res.socket.timeout ?? 0)
  })
  try {
    await pipeline(
      Readable.from(linesOf(pages, columns), { highWaterMark: rowsAtOnce }),
      stringify({ bom, record_delimiter: '\r\n' }),
      res as ServerResponse,
      { signal },
    )
  } catch (error) {
    // The client has gone away, which is no error of anybody; during the first page, before there was anything to send. Or it gives way.
    if (!isGone.includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  } finally {
    open.close()
  }
}

const isGone = ['ERR_STREAM_PREMATURE_CLOSE', 'ERR_STREAM_UNABLE_TO_PIPE', 'ABORT_ERR']

/** The header is written before the first row is there. */
async function* linesOf(pages: AsyncIterable<Row[]>, columns: string[]): AsyncGenerator<string[]> {
  yield columns.map(withoutFormulas)
  for await (const rows of pages) {
    for (const [i, row] of rows.entries()) {
      if (i % rowsAtOnce === 0) await others()
      yield columns.map((column) => cellOf(fieldOf(row, column)))
    }
  }
}

function fieldOf(row: Row, column: string): unknown {
  const [, name = '', key = ''] = /^(metadata|answers)[.](.+)$/s.exec(column) ?? []
  if (name === '') return row[column]
  const object = (row[name] ?? {}) as Row
  return Object.hasOwn(object, key) ? object[key] : undefined
}

/** Metadata as a whole is JSON, and empty where it is. */
function cellOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value !== 'object') return withoutFormulas(String(value))
  return Object.keys(value).length === 0 ? '' : jsonWithoutFormulas(JSON.stringify(value))
}
