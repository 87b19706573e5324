// A real SMTP server that keeps what it is given, parsed by a library that did not write it; or that refuses, at any step.

import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import PostalMime, { type Email } from 'postal-mime'
import { SMTPServer, type SMTPServerOptions } from 'smtp-server'
import { expect, onTestFinished } from 'vitest'
import { MailError } from '../../src/courier/mail/index.ts'
import { languages } from '../../src/guests/words/index.ts'

const isOfTest = new RegExp(
  `^\\[(${Object.values(languages)
    .map((words) => words.test)
    .join('|')})\\]`,
)

export type Received = Email & { envelope: { from: string; to: string[] }; raw: string; at: number }

/** How sending fails, whatever sends. */
export async function failure(attempt: Promise<unknown>): Promise<MailError> {
  const error = await attempt.catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(MailError)
  return error as MailError
}

/** An answer that refuses: `refuse(550, 'No such user')`. */
export const refuse = (responseCode: number, message: string) => Object.assign(new Error(message), { responseCode })

/** Until the test ends. The e-mails of test organisations must not come, whatever the test is about. */
export async function startMailServer(options?: SMTPServerOptions) {
  const server = await openMailServer(options)
  onTestFinished(async () => {
    await server.close()
    expect(server.received.filter(({ subject = '' }) => isOfTest.test(subject))).toEqual([])
  })
  return server
}

export type MailServer = Awaited<ReturnType<typeof openMailServer>>

export async function openMailServer(options: SMTPServerOptions = {}) {
  const received: Received[] = []
  let connections = 0
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    disableReverseLookup: true,
    onConnect(_session, callback) {
      connections++
      callback()
    },
    onData(stream, { envelope }, callback) {
      stream.toArray().then(async (chunks: Buffer[]) => {
        const at = Date.now()
        const bytes = Buffer.concat(chunks)
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
        const to = envelope.rcptTo.map(({ address }) => address)
        received.push({ ...(await PostalMime.parse(bytes)), envelope: { from, to }, raw: bytes.toString(), at })
        callback()
      }, callback)
    },
    ...options,
  })
  // A client that hangs up, as tests make it, is no fault of the server.
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo
  return {
    url: `smtp://127.0.0.1:${port}`,
    port,
    received,
    connections: () => connections,
    close: () => new Promise<void>((resolve) => server.close(resolve)),
  }
}
