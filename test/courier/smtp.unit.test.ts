// Ticket e-mails through a real SMTP server, and how rejected ones are settled.

import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { SMTPServerOptions } from 'smtp-server'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import { openMail } from '../../src/courier/mail/index.ts'
import { readPng } from '../support/qr.ts'
import { hostileNames } from './hostile.ts'
import { failure, openMailServer, refuse, startMailServer } from './mail-server.ts'
import { pendingEmails } from './pending-emails.ts'
import { pendingTicket, sender } from './pending-ticket.ts'

function openSmtp(url: string) {
  const mail = openMail({ smtpUrl: url })
  onTestFinished(() => mail.close())
  return mail
}

async function serve(options?: SMTPServerOptions) {
  const server = await startMailServer(options)
  return { ...server, mail: openSmtp(server.url) }
}

const anEmail = () => composeEmail(pendingTicket(), sender)

test('arrives whole: headers, text, HTML with its picture, and both files', async () => {
  const { mail, received } = await serve()
  const email = await anEmail()
  expect(await mail.send(email)).toEqual({ message_id: email.messageId })

  const [arrived, ...others] = received
  expect(others).toEqual([])
  expect(arrived).toMatchObject({
    envelope: { from: sender, to: ['ada@engines.example'] },
    from: { name: 'Literaturhaus Köln', address: sender },
    to: [{ name: 'Ada Lovelace', address: 'ada@engines.example' }],
    replyTo: [{ name: 'Literaturhaus Köln', address: 'hello@literaturhaus.example' }],
    subject: 'Your ticket: Lange Nacht der Übersetzung',
    messageId: email.messageId,
  })
  expect(arrived?.headers.find(({ key }) => key === 'auto-submitted')?.value).toBe('auto-generated')
  expect(arrived?.text?.trim()).toBe(email.text.trim())
  expect(arrived?.html?.trim()).toBe(email.html.trim())
  const [inline, saved, calendar] = arrived?.attachments ?? []
  expect(arrived?.attachments.map(({ filename, mimeType, disposition }) => [filename, mimeType, disposition])).toEqual([
    ['qr-code.png', 'image/png', 'inline'],
    ['lange-nacht-ticket.png', 'image/png', 'attachment'],
    ['lange-nacht.ics', 'text/calendar', 'attachment'],
  ])
  expect(email.html).toContain(`cid:${inline?.contentId?.replace(/^<|>$/g, '')}"`)
  expect(calendar?.method).toBe('PUBLISH')
  expect(saved?.content).toEqual(inline?.content)
  expect(readPng(Buffer.from(inline?.content as ArrayBuffer))).toBe('7K3MQ9ZTB2XW4D8H')
  // In base64, so that no server changes its line breaks.
  expect(arrived?.raw.replace(/\r\n/g, '')).toContain(email.attachments[2]?.content.toString('base64'))
})

test('an e-mail about changes can be switched off by a click of the mail program, and a ticket cannot', async () => {
  const { mail, received } = await serve()
  const { event_changed: changed, ticket } = pendingEmails()
  await mail.send(await composeEmail(changed, sender))
  await mail.send(await composeEmail(ticket, sender))
  // RFC 8058 asks for https: on this machine the e-mail has the link alone.
  await mail.send(await composeEmail({ ...changed, opt_out_url: 'http://127.0.0.1:3000/u/7d1e9b' }, sender))
  const unsubscribing = received.map(({ headers }) =>
    headers.filter(({ key }) => key.startsWith('list-')).map(({ key, value }) => `${key}: ${value}`),
  )
  expect(unsubscribing).toEqual([
    ['list-unsubscribe: <https://tickets.example/u/7d1e9b>', 'list-unsubscribe-post: List-Unsubscribe=One-Click'],
    [],
    [],
  ])
  expect(received[2]?.text).toContain('http://127.0.0.1:3000/u/7d1e9b')
})

test('connections are kept, for the next e-mail', async () => {
  const { mail, received, connections } = await serve()
  for (let sent = 0; sent < 3; sent++) await mail.send(await anEmail())
  expect([received.length, connections()]).toEqual([3, 1])
})

test('an address at a domain with an umlaut is written so that every server understands it', async () => {
  const { mail, received } = await serve()
  await mail.send(await composeEmail(pendingTicket({ attendee: { email: 'ada@bücher.example' } }), sender))
  expect(received[0]?.raw).toContain('To: Ada Lovelace <ada@xn--bcher-kva.example>\r\n')
})

describe('hostile text never reaches another header or another recipient', () => {
  let harmlessHeaders: string[]
  beforeAll(async () => {
    const { url, received, close } = await openMailServer()
    const mail = openMail({ smtpUrl: url })
    await mail.send(await anEmail())
    await mail.close()
    await close()
    harmlessHeaders = (received[0]?.headers ?? []).map(({ key }) => key)
    expect(harmlessHeaders).toContain('subject')
  })

  test.each(Object.entries(hostileNames))('%s', async (_, text) => {
    const { mail, received } = await serve()
    const changes = { organisation: { name: text }, event: { name: text }, attendee: { name: text } }
    // Neither as the composer clears it, nor as it would be if the composer did not.
    const email = await composeEmail(pendingTicket(changes), sender)
    const raw = {
      ...email,
      subject: text,
      from: { ...email.from, name: text },
      to: { ...email.to, name: text },
      replyTo: { name: text, address: sender },
    }
    await mail.send(email)
    await mail.send(raw)
    for (const arrived of received) {
      expect(arrived.headers.map(({ key }) => key)).toEqual(harmlessHeaders)
      expect(arrived.envelope).toEqual({ from: sender, to: ['ada@engines.example'] })
      expect(arrived.to?.map(({ address }) => address)).toEqual(['ada@engines.example'])
      expect([arrived.bcc, arrived.cc]).toEqual([undefined, undefined])
    }
    expect(received).toHaveLength(2)
    // RFC 5322, 2.1.1.
    for (const line of `${received[0]?.raw}`.split('\r\n')) expect(Buffer.byteLength(line)).toBeLessThanOrEqual(998)
  })

  test.each([
    'ada@engines.example>\r\nRCPT TO:<evil@evil.example',
    'ada@engines.example, evil@evil.example',
    'evil@evil.example,ada@engines.example',
    '<ada@engines.example>',
    'Ada <ada@engines.example>',
    '"ada@evil.example"@engines.example',
    'ada@@engines.example',
    'ada',
    '',
  ])('%j is no address, and never will be', async (address) => {
    const { mail, connections } = await serve()
    const email = await anEmail()
    const error = await failure(mail.send({ ...email, to: { name: 'Ada', address } }))
    expect([error.permanent, connections()]).toEqual([true, 0])
    expect(error.message).not.toMatch(/\p{Cc}/u)
  })
})

describe('what the server says about the e-mail decides whether it is tried again', () => {
  const atRecipient = (code: number, message: string): SMTPServerOptions => ({
    onRcptTo: (_address, _session, callback) => callback(refuse(code, message)),
  })
  const atData = (code: number, message: string): SMTPServerOptions => ({
    onData: (stream, _session, callback) => {
      stream.resume().on('end', () => callback(refuse(code, message)))
    },
  })
  const atSender = (code: number, message: string): SMTPServerOptions => ({
    onMailFrom: (_address, _session, callback) => callback(refuse(code, message)),
  })

  test.each([
    ['an unknown recipient', atRecipient(550, 'No such user'), true, '550 No such user'],
    ['a recipient to be tried later', atRecipient(451, 'Greylisted'), false, '451 Greylisted'],
    ['content that is refused', atData(554, 'Rejected as spam'), true, '554 Rejected as spam'],
    ['a full disk', atData(452, 'Insufficient storage'), false, '452 Insufficient storage'],
    // Our account's fault: it passes once somebody has seen to it.
    ['a sender that is refused', atSender(550, 'Sender not verified'), false, '550 Sender not verified'],
  ])('%s', async (_, options, permanent, message) => {
    const { mail } = await serve(options)
    const error = await failure(mail.send(await anEmail()))
    expect(error.permanent).toBe(permanent)
    expect(error.message).toContain(message)
  })

  test('a refused login is transient, and tells no password', async () => {
    const { port, received } = await startMailServer({
      authOptional: false,
      allowInsecureAuth: true,
      onAuth: ({ username, password }, _session, callback) =>
        // As talkative as a server can be.
        callback(refuse(535, `Bad ${username} ${password} ${btoa(`\0${username}\0${password}`)}`)),
    })
    const error = await failure(openSmtp(`smtp://usher:s3cret%2Bword@127.0.0.1:${port}`).send(await anEmail()))
    expect(error.permanent).toBe(false)
    expect(error.message).toContain('535 Bad usher *** ***')
    expect(received).toEqual([])
  })

  test('after a refusal the next e-mail passes', async () => {
    let refusals = 0
    const { mail, received } = await serve({
      onRcptTo: (_address, _session, callback) => (refusals++ === 0 ? callback(refuse(451, 'Later')) : callback()),
    })
    const email = await anEmail()
    expect((await failure(mail.send(email))).permanent).toBe(false)
    expect(await mail.send(email)).toEqual({ message_id: email.messageId })
    expect(received).toHaveLength(1)
  })
})

describe('a server that cannot be talked to is tried again later', () => {
  async function tcpServer(onConnection: (socket: Socket) => void) {
    let connections = 0
    const server = createServer((socket) => {
      connections++
      socket.on('error', () => {})
      onConnection(socket)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    return { url: `smtp://127.0.0.1:${port}`, server, connections: () => connections }
  }

  test('one that closes the connection, and it is asked once', async () => {
    const { url, connections } = await tcpServer((socket) => socket.destroy())
    expect((await failure(openSmtp(url).send(await anEmail()))).permanent).toBe(false)
    expect(connections()).toBe(1)
  })

  test('one that closes the connection in the middle of the e-mail', async () => {
    const { url, connections } = await tcpServer((socket) => {
      socket.write('220 here\r\n')
      socket.on('data', (bytes) => {
        const command = bytes.toString().slice(0, 4).toUpperCase()
        if (command === 'DATA') socket.write('354 go on\r\n')
        else if (/^(EHLO|HELO|MAIL|RCPT)$/.test(command)) socket.write('250 ok\r\n')
        else socket.destroy()
      })
    })
    expect((await failure(openSmtp(url).send(await anEmail()))).permanent).toBe(false)
    expect(connections()).toBe(1)
  })

  test('one that says it is closing', async () => {
    const { url } = await tcpServer((socket) => socket.end('421 Too busy\r\n'))
    const error = await failure(openSmtp(url).send(await anEmail()))
    expect([error.permanent, error.message]).toEqual([false, expect.stringContaining('421 Too busy')])
  })

  test('one that is not there', async () => {
    const { url, server } = await tcpServer(() => {})
    await new Promise((resolve) => server.close(resolve))
    const error = await failure(openSmtp(url).send(await anEmail()))
    expect([error.permanent, error.message]).toEqual([false, expect.stringContaining('ECONNREFUSED')])
  })
})

test('closing finishes the e-mail that is being sent, and takes no more', async () => {
  const { mail, received } = await serve()
  const [email, late] = [await anEmail(), await anEmail()]
  await mail.send(await anEmail())
  const sending = mail.send(email)
  await new Promise((resolve) => setImmediate(resolve))
  await mail.close()
  await sending
  expect(received.map(({ messageId }) => messageId)).toContain(email.messageId)
  expect((await failure(mail.send(late))).permanent).toBe(false)
})
