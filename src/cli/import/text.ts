// The text of a file, in the encoding that it is in: a stream, so that its size does not matter.

import { createReadStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { CommandError } from '../command-error.ts'

const boms = [
  { label: 'utf-8', bytes: [0xef, 0xbb, 0xbf] },
  { label: 'utf-16le', bytes: [0xff, 0xfe] },
  { label: 'utf-16be', bytes: [0xfe, 0xff] },
]

// A zip archive is an .xlsx, .ods or .numbers; the other is an .xls.
const workbooks = [
  [0x50, 0x4b, 0x03, 0x04],
  [0xd0, 0xcf, 0x11, 0xe0],
]

/**
 * What its byte order mark says, else what is asked for, else UTF-8; nothing is guessed.
 * @returns a name that TextDecoder takes
 * @throws CommandError 2 where the file cannot be read, is empty, is no text, or is not the UTF-8 that it should be
 */
export async function findEncoding(path: string, asked?: string): Promise<string> {
  const first = await firstBytes(path)
  const startsWith = (bytes: number[]) => bytes.every((byte, i) => first[i] === byte)
  if (workbooks.some(startsWith)) {
    throw new CommandError(
      2,
      `${path} is a workbook, not text. In Excel, save it as "CSV UTF-8", and import that file.`,
    )
  }
  const told = asked === undefined ? undefined : labelOf(asked)
  // The file of the refused has one, whatever --encoding its list needed.
  const label = boms.find(({ bytes }) => startsWith(bytes))?.label ?? told
  if (label === undefined && first.includes(0)) {
    throw new CommandError(
      2,
      `${path} is no text: it holds bytes of value 0. Save the list as CSV; if it is UTF-16, add --encoding utf-16le.`,
    )
  }
  if (label === undefined || label === 'utf-8') await requireUtf8(path)
  return label ?? 'utf-8'
}

async function firstBytes(path: string): Promise<Buffer> {
  try {
    // Read more than once, which a pipe cannot be.
    const found = await stat(path)
    if (found.isDirectory()) throw new CommandError(2, `${path} is a folder, not a file.`)
    if (!found.isFile()) throw new CommandError(2, `${path} is no regular file. Save the list to a file first.`)
    const file = await open(path)
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(4096), 0, 4096, 0)
      if (bytesRead === 0) throw new CommandError(2, `${path} is empty.`)
      return buffer.subarray(0, bytesRead)
    } finally {
      await file.close()
    }
  } catch (error) {
    if (error instanceof CommandError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    const reason = code === 'ENOENT' ? 'There is no such file' : code === 'EACCES' ? 'It may not be read' : message
    throw new CommandError(2, `${path} cannot be read. ${reason}.`)
  }
}

function labelOf(asked: string): string {
  try {
    return new TextDecoder(asked).encoding
  } catch {
    throw new CommandError(
      2,
      `--encoding takes the name of an encoding, such as utf-8, utf-16le, windows-1252, iso-8859-15 or macintosh, not ${asked}.`,
    )
  }
}

async function requireUtf8(path: string): Promise<void> {
  const decoder = new TextDecoder('utf-8', { fatal: true })
  let line = 1
  try {
    // Latin-1 has a character for each byte.
    for await (const chunk of createReadStream(path, 'latin1') as AsyncIterable<string>) {
      const parts = chunk.split(/(?<=\n|\r(?=[^\n]))/)
      for (const [i, part] of parts.entries()) {
        decoder.decode(Buffer.from(part, 'latin1'), { stream: true })
        if (part.endsWith('\n') || i + 1 < parts.length) line += 1
      }
    }
    decoder.decode()
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new CommandError(
      2,
      `${path} is not UTF-8: see line ${line}. Save it as "CSV UTF-8", or say what it is: --encoding windows-1252 for a CSV file of Excel on Windows, macintosh on a Mac.`,
    )
  }
}

/** The text without its byte order mark. @throws CommandError 2 at bytes that the encoding does not have */
export async function* readText(path: string, label: string): AsyncGenerator<string> {
  const decoder = new TextDecoder(label, { fatal: true })
  try {
    for await (const chunk of createReadStream(path)) {
      const text = decoder.decode(chunk, { stream: true })
      if (text !== '') yield text
    }
    const rest = decoder.decode()
    if (rest !== '') yield rest
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    throw new CommandError(2, `${path} is not in ${label}. Name another with --encoding.`)
  }
}
