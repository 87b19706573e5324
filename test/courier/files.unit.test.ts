// Ticket e-mails as files, read back by a library that did not write them.

import { randomUUID } from 'node:crypto'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import PostalMime from 'postal-mime'
import { expect, onTestFinished, test } from 'vitest'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import { forgetErased } from '../../src/courier/mail/files.ts'
import { openMail } from '../../src/courier/mail/index.ts'
import { readPng } from '../support/qr.ts'
import { failure } from './mail-server.ts'
import { pendingTicket, sender } from './pending-ticket.ts'

async function folder(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'usher-mail-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  return directory
}

test('an e-mail becomes a file that a mail program opens, and only its owner', async () => {
  const directory = join(await folder(), 'not', 'there', 'yet')
  const email = await composeEmail(pendingTicket(), sender)
  const before = Date.now()
  expect(await openMail({ directory }).send(email)).toEqual({ message_id: email.messageId })

  const [name = '', ...others] = await readdir(directory)
  expect(others).toEqual([])
  const [, time = '', id] = /^(\d{8}T\d{6}\.\d{3}Z)-(.*)\.eml$/.exec(name) ?? []
  expect(id).toBe(email.id)
  const written = Date.parse(time.replace(/^(....)(..)(..T..)(..)/, '$1-$2-$3:$4:'))
  expect(written).toBeGreaterThanOrEqual(before)
  expect(written).toBeLessThanOrEqual(Date.now())
  expect((await stat(join(directory, name))).mode & 0o777).toBe(0o600)
  expect((await stat(directory)).mode & 0o777).toBe(0o700)

  const bytes = await readFile(join(directory, name))
  expect(bytes.toString(), 'lines end as in a mail').not.toMatch(/[^\r]\n/)
  const read = await PostalMime.parse(bytes)
  expect(read).toMatchObject({
    from: { name: 'Literaturhaus Köln', address: sender },
    to: [{ name: 'Ada Lovelace', address: 'ada@engines.example' }],
    subject: email.subject,
    messageId: email.messageId,
  })
  expect(read.text?.trim()).toBe(email.text.trim())
  expect(read.attachments.map(({ filename }) => filename)).toEqual(email.attachments.map(({ filename }) => filename))
  const [inline, saved] = read.attachments.map(({ content }) => Buffer.from(content as ArrayBuffer))
  expect(saved).toEqual(inline)
  expect(readPng(inline as Buffer)).toBe('7K3MQ9ZTB2XW4D8H')
})

test('e-mails are files each, whatever their ids, and leave nothing unfinished behind', async () => {
  const directory = await folder()
  const mail = openMail({ directory })
  const odd = { ...pendingTicket(), id: '../../outside\0/x' }
  const emails = await Promise.all(
    [pendingTicket(), pendingTicket(), odd].map((pending) => composeEmail(pending, sender)),
  )
  await Promise.all(emails.map((email) => mail.send(email)))
  const names = await readdir(directory)
  expect(names).toHaveLength(3)
  for (const name of names) expect(name).toMatch(/^[\w.-]+\.eml$/)
})

test('a folder that cannot be written to is tried again later', async () => {
  const occupied = join(await folder(), randomUUID())
  await writeFile(occupied, 'a file')
  await chmod(occupied, 0o600)
  const attempt = openMail({ directory: occupied }).send(await composeEmail(pendingTicket(), sender))
  expect(await failure(attempt)).toMatchObject({ permanent: false, message: expect.stringContaining('EEXIST') })
})

test('an address that is none is refused as other transports refuse it', async () => {
  const directory = await folder()
  const pending = pendingTicket({ attendee: { email: 'nobody' } })
  const attempt = openMail({ directory }).send(await composeEmail(pending, sender))
  await expect(attempt).rejects.toMatchObject({ permanent: true })
  expect(await readdir(directory)).toEqual([])
})

test('the e-mails of people who were erased are deleted, and no other file', async () => {
  const directory = await folder()
  const ids = [randomUUID(), randomUUID()]
  for (const id of ids) await openMail({ directory }).send({ ...(await composeEmail(pendingTicket(), sender)), id })
  await writeFile(join(directory, 'notes.txt'), 'kept')
  await forgetErased(directory, async (asked) => asked.filter((id) => id === ids[0]))
  const left = await readdir(directory)
  expect(left.filter((name) => name.includes(ids[0] as string))).toEqual([])
  expect(left).toHaveLength(2)
  await forgetErased(join(directory, 'none'), async () => [])
})
