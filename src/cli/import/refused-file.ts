// The file of those who were refused: the columns of the list, and before them why. Mended there, it is imported like any other list.

import { constants, existsSync } from 'node:fs'
import { access, appendFile, writeFile } from 'node:fs/promises'
import { dirname, join, parse } from 'node:path'
import { stringify } from 'csv-stringify/sync'
import { CommandError } from '../command-error.ts'
import type { Row, Sheet } from './sheet.ts'

/** By which spreadsheets know UTF-8. */
const bom = '\ufeff'

/** @throws CommandError 2: it could not be written later */
export async function openRefusedFile({ path: list, header, delimiter }: Sheet, asked?: string) {
  if (asked !== undefined && existsSync(asked)) {
    throw new CommandError(2, `${asked} exists already. Choose another file for refused rows, or move it.`)
  }
  const folder = dirname(asked ?? list)
  await access(folder, constants.W_OK).catch(() => {
    throw new CommandError(2, `The file for refused rows cannot be written in ${folder}. Name another with --refused.`)
  })
  // A list that is such a file already gets no second column of errors.
  const hasErrors = header[0]?.toLowerCase() === 'error'
  let path: string | null = null
  return {
    /** Null: nobody was refused so far, and there is no file. */
    path: () => path,
    async add(refused: { row: Row; error?: string }[]): Promise<void> {
      if (refused.length === 0) return
      const rows = refused.map(({ row: { cells }, error = '' }) => [error, ...(hasErrors ? cells.slice(1) : cells)])
      const first = hasErrors ? header : ['error', ...header]
      const to = path ?? asked ?? freeName(list)
      try {
        if (path === null) await writeFile(to, bom + csvOf([first], delimiter), { flag: 'wx' })
        path = to
        await appendFile(to, csvOf(rows, delimiter))
      } catch (error) {
        throw new CommandError(1, `Refused rows cannot be written to ${to}. ${(error as Error).message}.`)
      }
    },
  }
}

const csvOf = (rows: string[][], delimiter: string): string =>
  stringify(rows, { delimiter, record_delimiter: 'windows', quoted_match: /[\r\n]/ })

/** guests.refused.csv beside guests.csv; guests.refused-2.csv if that exists, for it may be the one that somebody is mending. */
function freeName(list: string): string {
  const { dir, name, ext } = parse(list)
  const base = join(dir, `${name.replace(/\.refused(-\d+)?$/, '')}.refused`)
  const extension = ext === '' ? '.csv' : ext
  for (let number = 1; ; number++) {
    const path = number === 1 ? `${base}${extension}` : `${base}-${number}${extension}`
    if (!existsSync(path)) return path
  }
}
