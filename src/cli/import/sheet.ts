// A CSV file as rows of cells: what the file is, its delimiter and its lines. It knows nothing of guests.

import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream'
import { CsvError, type Options, parse } from 'csv-parse'
import { parse as parseAtOnce } from 'csv-parse/sync'
import { CommandError } from '../command-error.ts'

/** `line` is the one that the row begins in, from 1, as an editor counts. */
export type Row = { line: number; cells: string[] }

export type Sheet = {
  path: string
  encoding: string
  delimiter: string
  header: string[]
  /** From the start, each time. Lines without anything in them are left out. */
  rows(): AsyncIterable<Row>
}

export const delimiters = { ',': 'comma', ';': 'semicolon', '\t': 'tab', '|': 'bar' } as const

// Of a line that is longer, a quote was not closed.
const mostBytesInARow = 1024 * 1024
const bytesOfABeginning = 256 * 1024

const options = {
  // Of UTF-8, and of UTF-16 as Excel writes it: the parser decodes by it.
  bom: true,
  // A file that was edited on several systems has several.
  record_delimiter: ['\r\n', '\n', '\r'],
  relax_column_count: true,
  // A quote inside of a cell without quotes is a character.
  relax_quotes: true,
  skip_empty_lines: true,
  max_record_size: mostBytesInARow,
} satisfies Options

// A zip archive is an .xlsx, .ods or .numbers; the other is an .xls.
const workbooks = ['504b0304', 'd0cf11e0']

/**
 * @param knows how many of these names are those of columns that the reader wants: tells which delimiter it is
 * @throws CommandError 2
 */
export async function openSheet(
  path: string,
  asked: string | undefined,
  knows: (header: string[]) => number,
): Promise<Sheet> {
  const beginning = await beginningOf(path)
  if (workbooks.includes(beginning.toString('hex', 0, 4))) {
    throw new CommandError(2, `${path} is a workbook, not text. ${saveAsUtf8}`)
  }
  const encoding = beginning[0] === 0xff && beginning[1] === 0xfe ? 'utf-16le' : 'utf-8'
  if (encoding === 'utf-8' && beginning.includes(0)) {
    throw new CommandError(2, `${path} is not text: it contains null bytes. ${saveAsUtf8}`)
  }
  // Excel's own note about the delimiter, in quotes where another program has saved the file.
  const note = /^("?)sep=(.)\1(?:\r\n|\n|\r)/.exec(new TextDecoder(encoding).decode(beginning))
  const from_line = note ? 2 : 1
  const delimiter = asked ?? note?.[2]
  const tried = (delimiter === undefined ? Object.keys(delimiters) : [delimiter]).map((delimiter) => {
    const header = headerOf(beginning, { ...options, delimiter, from_line })
    return { delimiter, header, known: knows(header) }
  })
  const [best] = tried.sort((a, b) => b.known - a.known || b.header.length - a.header.length)
  if (!best || best.header.every((name) => name === '')) throw new CommandError(2, `${path} is empty.`)
  requireUtf8(path, { line: from_line, cells: best.header })
  return { path, encoding, ...best, rows: () => rowsOf(path, { ...options, delimiter: best.delimiter, from_line }) }
}

async function beginningOf(path: string): Promise<Buffer> {
  try {
    // Read more than once, which a pipe cannot be.
    const found = await stat(path)
    if (found.isDirectory()) throw new CommandError(2, `${path} is a folder, not a file.`)
    if (!found.isFile()) throw new CommandError(2, `${path} is not a regular file. Save the list to a file first.`)
    const parts: Buffer[] = await Array.fromAsync(createReadStream(path, { end: bytesOfABeginning - 1 }))
    return Buffer.concat(parts)
  } catch (error) {
    if (error instanceof CommandError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    const reason =
      code === 'ENOENT' ? 'There is no such file' : code === 'EACCES' ? 'You have no permission to read it' : message
    throw new CommandError(2, `${path} cannot be read. ${reason}.`)
  }
}

/** Empty where the text cannot be read with these options. */
function headerOf(beginning: Buffer, options: Options): string[] {
  try {
    const [header = []] = parseAtOnce(beginning, { ...options, to: 1 }) as string[][]
    return header.map((name) => name.trim())
  } catch (error) {
    if (error instanceof CsvError) return []
    throw error
  }
}

async function* rowsOf(path: string, options: Options): AsyncGenerator<Row> {
  const parser = parse({ ...options, from: 2, skip_records_with_empty_values: true, info: true })
  pipeline(createReadStream(path), parser, () => {})
  let line = 1
  try {
    for await (const { record, info } of parser as AsyncIterable<{ record: string[]; info: { lines: number } }>) {
      line = info.lines - linesWithin(record)
      const row = { line, cells: record }
      requireUtf8(path, row)
      yield row
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new CommandError(2, `${path} cannot be read after line ${line}. A quotation mark is probably not closed.`)
  }
}

const linesWithin = (cells: string[]): number =>
  cells.reduce((sum, cell) => sum + (cell.match(/\r\n|\n|\r/g)?.length ?? 0), 0)

const saveAsUtf8 = 'Save the list as "CSV UTF-8" in Excel, or as CSV in UTF-8 elsewhere, and import that file.'

/** What the parser puts in the place of bytes that are no UTF-8 is also what a program left of a letter that it lost. */
function requireUtf8(path: string, { line, cells }: Row): void {
  if (!cells.some((cell) => cell.includes('\ufffd'))) return
  throw new CommandError(2, `${path} is not UTF-8: see line ${line}. ${saveAsUtf8}`)
}
