// A stop while e-mails are being sent: what has begun is finished and recorded, and what waits is as if it had not been claimed.

import { expect, test } from 'vitest'
import { readConfig } from '../../src/cli/config.ts'
import type { keptOf } from '../../src/courier/email.ts'
import { openQueues } from '../../src/courier/queues.ts'
import { createLog } from '../../src/process/log.ts'
import { startMailServer } from './mail-server.ts'
import { pendingTicket, sender } from './pending-ticket.ts'

/** The queue of e-mails to a mail server, which takes each when it may. */
async function openEmails(mayTake: Promise<void> = Promise.resolve()) {
  let arrived = 0
  const { url } = await startMailServer({
    onData(stream, _session, callback) {
      stream.resume().on('end', () => {
        arrived++
        void mayTake.then(() => callback())
      })
    },
  })
  const recorded: Record<string, unknown>[] = []
  const { queues, close } = openQueues(
    { ...readConfig({ SMTP_URL: url, MAIL_FROM: sender }), ownPorts: [] },
    async (_fn, { results }) => void recorded.push(...(results as Record<string, unknown>[])),
    createLog('silent'),
  )
  const emails = queues.find(({ name }) => name === 'ticket_emails') ?? expect.unreachable()
  return { emails, close, recorded, arrived: () => arrived }
}

test('an e-mail that waits for its turn at a stop is neither sent nor recorded', async () => {
  const held = Promise.withResolvers<void>()
  const { emails, close, recorded, arrived } = await openEmails(held.promise)
  const pending = Array.from({ length: 6 }, () => pendingTicket())
  const deliveries = pending.map((one) => emails.deliver(one))
  await expect.poll(arrived).toBe(4)
  await close()
  held.resolve()
  await Promise.all(deliveries)
  expect(arrived()).toBe(4)
  expect(recorded).toHaveLength(4)
  for (const one of recorded) expect(one).toHaveProperty('message_id')
})

test('tickets that go together are one message, and each is recorded with its result', async () => {
  const { emails, close, recorded, arrived } = await openEmails()
  const other = {
    name: 'Grace',
    company: null,
    guest: null,
    ticket_url: null,
    ticket_type: 'Regular',
    ticket_code: 'BBBBCCCCDDDDEEEE',
  }
  const pending = pendingTicket({ others: [{ ...other, email_id: 'other' }] })
  await emails.deliver(pending)
  await close()
  const { claim } = pending
  const [{ message_id } = {}] = recorded
  expect(message_id).toEqual(expect.any(String))
  expect(recorded).toEqual([pending.id, 'other'].map((email_id) => ({ email_id, claim, message_id })))
  expect([arrived(), emails.sizeOf?.(pending)]).toEqual([1, 2])
})

test('an e-mail of a test organisation is recorded with what it says, once, and reaches no mail server', async () => {
  const { emails, close, recorded, arrived } = await openEmails()
  const other = { name: 'Grace', company: null, guest: null, ticket_url: null, ticket_type: 'Regular' }
  const others = [{ ...other, ticket_code: 'TEST-BBBBCCCCDDDDEEEE', email_id: 'other' }]
  const pending = pendingTicket({ organisation: { is_test: true }, others })
  await emails.deliver(pending)
  await emails.deliver(pendingTicket())
  await close()
  expect(arrived()).toBe(1)
  const [kept, withIt, sent] = recorded as { message_id: string; content?: ReturnType<typeof keptOf> }[]
  expect(kept?.content).toMatchObject({
    subject: expect.stringMatching(/^\[Test\] /),
    text: expect.stringMatching(/^Test\n[\s\S]*TEST- BBBB CCCC DDDD EEEE/),
    html: expect.stringContaining('>Test</p>'),
  })
  const [shown, file, , , calendar] = kept?.content?.attachments ?? []
  expect(shown).toMatchObject({ content_type: 'image/png', content_id: expect.stringMatching(/^qr\./) })
  expect(file).toMatchObject({ content_id: null, content: shown?.content })
  expect(Buffer.from(calendar?.content ?? '', 'base64').toString()).toMatch(/^BEGIN:VCALENDAR/)
  expect(withIt).toMatchObject({ message_id: kept?.message_id })
  expect([withIt?.content, sent?.content]).toEqual([undefined, undefined])
})
