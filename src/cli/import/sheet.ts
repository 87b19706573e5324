// A CSV file as rows of cells. It knows of delimiters and quotes, not of guests.

import { Readable } from 'node:stream'
import { CsvError, type Options, parse } from 'csv-parse'
import { parse as parseAtOnce } from 'csv-parse/sync'
import { CommandError } from '../command-error.ts'
import { findEncoding, readText } from './text.ts'

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
const lengthOfABeginning = 256 * 1024

const options = {
  // A file that was edited on several systems has several.
  record_delimiter: ['\r\n', '\n', '\r'],
  relax_column_count: true,
  // A quote inside of a cell without quotes is a character.
  relax_quotes: true,
  skip_empty_lines: true,
  max_record_size: mostBytesInARow,
} satisfies Options

/**
 * @param knows how many of these names are those of columns that the reader wants: tells which delimiter it is
 * @throws CommandError 2
 */
export async function openSheet(
  path: string,
  asked: { encoding?: string | undefined; delimiter?: string | undefined },
  knows: (header: string[]) => number,
): Promise<Sheet> {
  const encoding = await findEncoding(path, asked.encoding)
  const beginning = await beginningOf(path, encoding)
  // Excel's own note about the delimiter, in quotes where another program has saved the file.
  const note = /^("?)sep=(.)\1(?:\r\n|\n|\r)/.exec(beginning)
  const from_line = note ? 2 : 1
  const delimiter = asked.delimiter ?? note?.[2]
  const tried = (delimiter === undefined ? Object.keys(delimiters) : [delimiter]).map((delimiter) => {
    const header = headerOf(beginning, { ...options, delimiter, from_line })
    return { delimiter, header, known: knows(header) }
  })
  const [best] = tried.sort((a, b) => b.known - a.known || b.header.length - a.header.length)
  if (!best || best.header.every((name) => name === '')) throw new CommandError(2, `${path} has nothing in it.`)
  return {
    path,
    encoding,
    delimiter: best.delimiter,
    header: best.header,
    rows: () => rowsOf(path, encoding, { ...options, delimiter: best.delimiter, from_line }),
  }
}

async function beginningOf(path: string, encoding: string): Promise<string> {
  let text = ''
  for await (const part of readText(path, encoding)) {
    text += part
    if (text.length > lengthOfABeginning) break
  }
  return text
}

/** Empty where the text cannot be read with these options. */
function headerOf(text: string, options: Options): string[] {
  try {
    const [header = []] = parseAtOnce(text, { ...options, to: 1 }) as string[][]
    return header.map((name) => name.trim())
  } catch (error) {
    if (error instanceof CsvError) return []
    throw error
  }
}

async function* rowsOf(path: string, encoding: string, options: Options): AsyncGenerator<Row> {
  const parser = parse({ ...options, info: true })
  const text = Readable.from(readText(path, encoding))
  text.on('error', (error) => parser.destroy(error))
  text.pipe(parser)
  let line = 1
  let isHeader = true
  try {
    for await (const { record, info } of parser as AsyncIterable<{ record: string[]; info: { lines: number } }>) {
      line = info.lines - linesWithin(record)
      if (isHeader) isHeader = false
      else if (record.some((cell) => cell.trim() !== '')) yield { line, cells: record }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    throw new CommandError(
      2,
      `${path} cannot be read on after line ${line}. A quotation mark that opens a cell is probably not closed.`,
    )
  } finally {
    text.destroy()
  }
}

const linesWithin = (cells: string[]): number =>
  cells.reduce((sum, cell) => sum + (cell.match(/\r\n|\n|\r/g)?.length ?? 0), 0)

/** A row as it stands in a file. */
export const lineOf = (cells: string[], delimiter: string): string =>
  `${cells.map((cell) => (isPlain(cell, delimiter) ? cell : `"${cell.replaceAll('"', '""')}"`)).join(delimiter)}\r\n`

const isPlain = (cell: string, delimiter: string): boolean => !/["\r\n]|^\s|\s$/.test(cell) && !cell.includes(delimiter)
