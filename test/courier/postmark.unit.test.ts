// Ticket e-mails through Postmark's official client, to a stand-in that speaks its API.

import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, test } from 'vitest'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import { postmarkTransport } from '../../src/courier/mail/postmark.ts'
import { readPng } from '../support/qr.ts'
import { hostileNames } from './hostile.ts'
import { failure } from './mail-server.ts'
import { pendingEmails } from './pending-emails.ts'
import { pendingTicket, sender } from './pending-ticket.ts'
import { type Answer, accepted, refused, startPostmark } from './postmark-server.ts'

const token = 'b3a1c0de-0000-4000-8000-secret'
const anEmail = () => composeEmail(pendingTicket(), sender)

async function serve(answer: Answer) {
  const { calls, options } = await startPostmark(answer)
  return { calls, mail: postmarkTransport({ postmarkToken: token }, options) }
}

test('hands Postmark the whole e-mail, and answers the id that its webhooks will name', async () => {
  const { mail, calls } = await serve(accepted('0a129aee-e1cd-480d-b08d-4f48548ff48d'))
  const email = await anEmail()
  expect(await mail.send(email)).toEqual({ message_id: '0a129aee-e1cd-480d-b08d-4f48548ff48d' })

  const [call, ...others] = calls
  expect(others).toEqual([])
  expect([call?.method, call?.path, call?.headers['x-postmark-server-token']]).toEqual(['POST', '/email', token])
  const { Attachments, Headers, ...body } = call?.body ?? {}
  expect(body).toEqual({
    MessageStream: 'outbound',
    From: `"Literaturhaus Köln" <${sender}>`,
    To: '"Ada Lovelace" <ada@engines.example>',
    ReplyTo: '"Literaturhaus Köln" <hello@literaturhaus.example>',
    Subject: 'Your ticket: Lange Nacht der Übersetzung',
    HtmlBody: email.html,
    TextBody: email.text,
    TrackOpens: false,
    TrackLinks: 'None',
    Metadata: { email_id: email.id, attempt: '1' },
  })
  expect(Headers).toContainEqual({ Name: 'Message-ID', Value: email.messageId })
  expect(Headers).toContainEqual({ Name: 'X-PM-KeepID', Value: 'true' })
  expect(Headers).toContainEqual({ Name: 'Auto-Submitted', Value: 'auto-generated' })
  expect(Attachments?.map(({ Name, ContentType, ContentID }) => [Name, ContentType, ContentID])).toEqual([
    ['qr-code.png', 'image/png', /src="(cid:[^"]*)"/.exec(email.html)?.[1]],
    ['lange-nacht-ticket.png', 'image/png', null],
    ['lange-nacht.ics', 'text/calendar; charset=utf-8; method=PUBLISH', null],
  ])
  const [inline, saved] = (Attachments ?? []).map(({ Content }) => Buffer.from(Content, 'base64'))
  expect(saved).toEqual(inline)
  expect(readPng(inline as Buffer)).toBe('7K3MQ9ZTB2XW4D8H')
})

test('hands Postmark the headers by which an e-mail about changes is switched off', async () => {
  const { mail, calls } = await serve(accepted('0a129aee-e1cd-480d-b08d-4f48548ff48d'))
  await mail.send(await composeEmail(pendingEmails().event_changed, sender))
  await mail.send(await anEmail())
  const names = calls.map(({ body }) => body.Headers?.filter(({ Name }) => Name.startsWith('List-')))
  expect(names).toEqual([
    [
      { Name: 'List-Unsubscribe', Value: '<https://tickets.example/u/7d1e9b>' },
      { Name: 'List-Unsubscribe-Post', Value: 'List-Unsubscribe=One-Click' },
    ],
    [],
  ])
})

test('without an address for replies there is none', async () => {
  const { mail, calls } = await serve(accepted('1'))
  await mail.send(await composeEmail(pendingTicket({ organisation: { reply_to: null } }), sender))
  expect(calls[0]?.body).not.toHaveProperty('ReplyTo')
})

test('another message stream can be named', async () => {
  const { calls, options } = await startPostmark(accepted('1'))
  await postmarkTransport({ postmarkToken: token, messageStream: 'tickets' }, options).send(await anEmail())
  expect(calls[0]?.body.MessageStream).toBe('tickets')
})

test.each(Object.entries(hostileNames))('%s in a name stays within its quotes', async (_, text) => {
  const { mail, calls } = await serve(accepted('1'))
  const email = await anEmail()
  await mail.send({ ...email, from: { name: text, address: sender }, to: { ...email.to, name: text } })
  const { From, To } = calls[0]?.body ?? {}
  // One quoted string (RFC 5322, 3.2.4), one address, nothing else.
  expect(From).toMatch(/^"(?:[^"\\\p{Cc}]|\\["\\])*" <tickets@usher\.example>$/u)
  expect(To).toMatch(/^"(?:[^"\\\p{Cc}]|\\["\\])*" <ada@engines\.example>$/u)
})

test('an address at a domain with an umlaut is written as Postmark takes it', async () => {
  const { mail, calls } = await serve(accepted('1'))
  await mail.send(await composeEmail(pendingTicket({ attendee: { email: 'ada@bücher.example' } }), sender))
  expect(calls[0]?.body.To).toBe('"Ada Lovelace" <ada@xn--bcher-kva.example>')
})

test('an address that is none is not sent to', async () => {
  const { mail, calls } = await serve(accepted('1'))
  const email = await anEmail()
  const error = await failure(mail.send({ ...email, to: { name: '', address: 'x>,<evil@evil.example' } }))
  expect([error.permanent, calls.length]).toEqual([true, 0])
})

describe("Postmark's answer decides whether an e-mail is tried again", () => {
  test.each([
    ['an inactive recipient', refused(422, 406, 'You tried to send to recipient(s) marked as inactive.'), true],
    ['an invalid e-mail', refused(422, 300, "Invalid 'To' address."), true],
    ['JSON it cannot read', refused(422, 402), true],
    ['too many requests', refused(429, 429), false],
    ['too many requests, said in the body only', refused(422, 429), false],
    ['a fault of its own', refused(500, 500), false],
    ['an unavailable service', refused(503, 0), false],
    ['maintenance', refused(422, 100), false],
    // Our account's fault: it passes once somebody has seen to it.
    ['a bad token', refused(401, 10), false],
    ['a sender signature that is missing', refused(422, 400), false],
    ['an account that ran out of credits', refused(422, 405), false],
    // Not Postmark's words.
    ['a page of a proxy', { status: 403, body: '<html>Forbidden</html>' } as const, false],
    ['a page where an answer should be', { status: 200, body: '<html>Welcome to our Wi-Fi</html>' } as const, false],
    ['an answer without an id', { status: 200, body: { ErrorCode: 0 } } as const, false],
    ['nothing', 'hang up' as const, false],
  ])('%s', async (_, answer, permanent) => {
    const { mail, calls } = await serve(answer)
    const error = await failure(mail.send(await anEmail()))
    expect([error.permanent, calls.length]).toEqual([permanent, 1])
    expect(error.message).toMatch(/^Postmark/)
  })

  test('nobody there', async () => {
    const server = createServer().listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    await new Promise((resolve) => server.close(resolve))
    const mail = postmarkTransport({ postmarkToken: token }, { requestHost: `127.0.0.1:${port}`, useHttps: false })
    expect((await failure(mail.send(await anEmail()))).permanent).toBe(false)
  })

  test('the reason is one line of bounded length, without the token', async () => {
    const { mail } = await serve(
      refused(422, 406, `Inactive: ada@engines.example\r\ntoken ${token} ${'x'.repeat(5000)}`),
    )
    const { message } = await failure(mail.send(await anEmail()))
    expect(message).toMatch(/^Postmark 406: Inactive: ada@engines\.example token \*\*\* x+…$/)
    expect(message.length).toBeLessThanOrEqual(300)
  })
})
