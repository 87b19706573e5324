// The list of ticket e-mails at /mail.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { mailPreviewAt } from '../../src/apps/mail/mail-preview.ts'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import { openMail } from '../../src/courier/mail/index.ts'
import { pendingTicket, sender } from '../courier/pending-ticket.ts'
import { ownApp } from '../support/own-app.ts'

async function mailPreview() {
  const directory = await mkdtemp(join(tmpdir(), 'usher-mail-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const { url } = await ownApp({ mailFolder: directory })
  return {
    url: `${url}/mail`,
    html: async () => (await fetch(`${url}/mail`)).text(),
    /** A ticket as the courier writes it. */
    ticket: async (name: string, event: string, email = 'ada@engines.example') =>
      openMail({ directory }).send(
        await composeEmail(pendingTicket({ attendee: { name, email }, event: { name: event } }), sender),
      ),
    file: (name: string, ...headers: string[]) =>
      writeFile(
        join(directory, `${name}.eml`),
        `${headers.join('\r\n')}\r\nContent-Type: text/html\r\n\r\n<p>Hello</p>`,
      ),
  }
}

test('a time can be read, says its zone, and is there for programs too', async () => {
  const { html, file } = await mailPreview()
  await file('summer', 'Date: Sat, 21 Nov 2026 19:02:30 +0100')
  await file('none', 'Subject: Without a date')
  await file('odd', 'Date: <b>yesterday</b>')
  const page = await html()
  expect(page).toContain('<time datetime="2026-11-21T18:02:30.000Z">21 Nov 2026, 18:02 UTC</time>')
  expect(page.match(/<time/g)).toHaveLength(1)
})

test('names and subjects are text, whatever is in them', async () => {
  const { html, ticket, file } = await mailPreview()
  await ticket('<script>alert(1)</script>', '<b>Party</b> & "more"')
  await file('"><img src=x>', 'Subject: </a><i>', 'To: "</td><u>" <x@example.com>')
  const page = await html()
  expect(page).toContain('&lt;script&gt;alert(1)')
  expect(page).toContain('&lt;b&gt;Party&lt;/b&gt; &amp; &quot;more&quot;')
  expect(page).not.toMatch(/<script|<b>|<img|<i>|<u>/)
})

test('all of those that an e-mail goes to are named, also in a group, and one without a subject can be opened', async () => {
  const { html, file } = await mailPreview()
  await file('group', 'To: Crew: Ada <ada@example.com>, bob@example.com;, "" <eve@example.com>')
  await file('blank', 'Subject:  ')
  const page = await html()
  const addresses = [...page.matchAll(/[a-z]+@example\.com/g)].map(String)
  expect(addresses).toEqual(['ada@example.com', 'bob@example.com', 'eve@example.com'])
  expect(page).not.toContain('undefined')
  expect(page.match(/>\(no subject\)<\/a>/g)).toHaveLength(2)
})

test('the newest hundred are said to be so when there are more, and then alone', async () => {
  const { html, file } = await mailPreview()
  expect(await html()).not.toMatch(/newest/)
  const write = (n: number) => file(`20261121T180200.${String(n).padStart(3, '0')}Z-x`, `Subject: Number ${n}.`)
  await write(1)
  expect(await html()).toContain('One e-mail.')
  await Promise.all(Array.from({ length: 99 }, (_, n) => write(n + 2)))
  expect(await html()).toContain('>100 e-mails, newest first.<')
  await write(101)
  const page = await html()
  expect(page).toContain('>The newest 100 of 101 e-mails.')
  const listed = [...page.matchAll(/Number (\d+)\./g)].map(([, n]) => Number(n))
  expect(listed).toEqual(Array.from({ length: 100 }, (_, n) => 101 - n))
})

test('the mail preview loads nothing but logos, runs nothing, and is kept by nobody', async () => {
  const { headers } = await fetch((await mailPreview()).url)
  expect(headers.get('content-security-policy')).toBe(
    "default-src 'none';style-src 'unsafe-inline';img-src 'self' data: https:;base-uri 'none';form-action 'none';frame-ancestors 'none'",
  )
  expect(headers.get('cache-control')).toBe('no-store')
})

test.each([
  ['http://127.0.0.1:3000', 'http://127.0.0.1:3000/mail'],
  ['http://localhost:3000', 'http://localhost:3000/mail'],
  ['http://[::1]:3000', 'http://[::1]:3000/mail'],
  ['http://192.168.1.5:3000', undefined],
  ['http://127.0.0.53:3000', undefined],
])('of a listener at %s the mail preview is at %s', (url, preview) => {
  expect(mailPreviewAt(url)).toBe(preview)
})
