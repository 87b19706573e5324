// Writes e-mails as .eml files into a folder instead of sending them: the default until a mail service is configured. Files are
// written atomically, and only their owner may read them, because a ticket admits whoever shows it.

import { randomUUID } from 'node:crypto'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import nodemailer from 'nodemailer'
import { mimeMessage } from './message.ts'
import { MailError, type MailTransport } from './transport.ts'

export function fileTransport(directory: string): MailTransport {
  const mime = nodemailer.createTransport({ streamTransport: true, buffer: true, newline: 'windows' })
  return {
    name: 'files',
    async send(email) {
      const { message } = await mime.sendMail(mimeMessage(email))
      const time = new Date().toISOString().replace(/[-:]/g, '')
      await writeAtomically(directory, `${time}-${email.id.replace(/[^A-Za-z0-9-]/g, '')}.eml`, message as Buffer)
      return { message_id: email.messageId }
    },
    async close() {},
  }
}

/** Deletes the e-mails of people who were erased. @param isErased which of the ids of e-mails are theirs. */
export async function forgetErased(directory: string, isErased: (ids: string[]) => Promise<string[]>): Promise<void> {
  const names = await readdir(directory).catch(() => [])
  const byId = new Map(names.flatMap((name) => [[/-([0-9a-f-]{36})\.eml$/.exec(name)?.[1] ?? '', name] as const]))
  byId.delete('')
  for (const id of byId.size === 0 ? [] : await isErased([...byId.keys()])) {
    await rm(join(directory, byId.get(id) as string), { force: true })
  }
}

async function writeAtomically(directory: string, name: string, content: Buffer): Promise<void> {
  const unfinished = join(directory, `.${randomUUID()}.tmp`)
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await writeFile(unfinished, content, { mode: 0o600, flush: true })
    await rename(unfinished, join(directory, name))
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {})
    const code = String((error as NodeJS.ErrnoException).code ?? error)
    throw new MailError(false, `file ${code}`, `The e-mail could not be written to a file: ${code}.`)
  }
}
