// The list of ticket e-mails at /mail: as HTML, and as a browser draws it.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { hasBrowser } from '../../scripts/support/browser.ts'
import { mailPreviewAt } from '../../src/apps/mail/mail-preview.ts'
import { composeEmail } from '../../src/courier/emails/compose.ts'
import { openMail } from '../../src/courier/mail/index.ts'
import { atWidth, expectReadable, expectScheme, outline, widths } from '../browser/accessibility.ts'
import { pendingTicket, sender } from '../courier/pending-ticket.ts'
import { sharedBrowser } from '../support/browser.ts'
import { ownApp } from '../support/own-app.ts'

let browser: Browser
beforeAll(async () => {
  if (hasBrowser) browser = await sharedBrowser()
})

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

const long = 'W'.repeat(200)
const longAddress = `${'a'.repeat(60)}@${'b'.repeat(60)}.example`

test.skipIf(!hasBrowser)(
  'the mail preview fits and can be read on phones and wide screens, bright and dark, whatever the names',
  async () => {
    const { url, ticket, file } = await mailPreview()
    await ticket('Ada Lovelace', 'Lantern Conference')
    await ticket(long, 'E'.repeat(200), longAddress)
    await file('nothing')
    await file('long', `Subject: ${long}`, `To: "${long}" <${longAddress}>`, `Date: ${long}`)
    const page = await browser.newPage()
    onTestFinished(() => page.close())
    await page.goto(url)
    for (const width of widths) {
      await atWidth(page, width)
      expect(await outline(page), `${width}`).toEqual({ overflow: false, mains: 1, headings: 1 })
      expect(await page.getByRole('row').count(), 'a header and four e-mails').toBe(5)
      const links = await page.getByRole('link').all()
      expect(links).toHaveLength(9)
      for (const link of links) {
        const box = await link.boundingBox()
        expect(box?.x).toBeGreaterThanOrEqual(0)
        expect((box?.x ?? 0) + (box?.width ?? width)).toBeLessThanOrEqual(width)
      }
      if (width !== 375) await expectReadable(page, { also: (scheme) => expectScheme(page, scheme) })
    }
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toBe('Mail preview')
    for (const header of await page.locator('th').allTextContents()) expect(header.trim()).not.toBe('')

    await page.keyboard.press('Tab')
    const focused = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
    expect([await page.locator(':focus').textContent(), focused]).toEqual(['Reload', 'solid'])
  },
)

test.skipIf(!hasBrowser)('an empty mail preview leads to the operation that fills it', async () => {
  const { url } = await mailPreview()
  const page = await browser.newPage()
  onTestFinished(() => page.close())
  await page.goto(url)
  for (const width of widths) {
    await atWidth(page, width)
    expect(await outline(page), `${width}`).toEqual({ overflow: false, mains: 1, headings: 1 })
    if (width !== 375) await expectReadable(page, { also: (scheme) => expectScheme(page, scheme) })
  }
  expect(await page.locator('th').count()).toBe(0)
  const link = page.getByRole('link', { name: 'the documentation' })
  expect(await link.getAttribute('href')).toBe('/docs#/Orders/register_attendee')
})

test('a time can be read, says its zone, and is there for programs too', async () => {
  const { html, file } = await mailPreview()
  await file('summer', 'Date: Sat, 21 Nov 2026 19:02:30 +0100')
  await file('none', 'Subject: Without a date')
  await file('odd', 'Date: <b>yesterday</b>')
  const page = await html()
  expect(page).toContain('<time datetime="2026-11-21T18:02:30.000Z">21 Nov 2026, 18:02 UTC</time>')
  expect(page.match(/<time/g)).toHaveLength(1)
})

test('its rows and cells have no roles but their own, as validators want it', async () => {
  const { html, file } = await mailPreview()
  await file('one', 'Subject: One')
  expect(await html()).not.toMatch(/<(table|t[a-z]+) [^>]*role=/)
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

test('all of those that an e-mail goes to are named, also in a group', async () => {
  const { html, file } = await mailPreview()
  await file('group', 'To: Crew: Ada <ada@example.com>, bob@example.com;, "" <eve@example.com>')
  const page = await html()
  expect([...page.matchAll(/[a-z]+@example\.com/g)].map(String)).toEqual([
    'ada@example.com',
    'bob@example.com',
    'eve@example.com',
  ])
  expect(page).not.toContain('undefined')
})

test('an e-mail without a subject can be opened', async () => {
  const { html, file } = await mailPreview()
  await file('first', 'To: ada@example.com')
  await file('second', 'Subject:  ')
  expect((await html()).match(/>\(no subject\)<\/a>/g)).toHaveLength(2)
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
