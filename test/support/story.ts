// A story of an event on an Usher of its own, told to its end: then every e-mail, webhook and audit entry of it is listed.

import { rm } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect, onTestFinished } from 'vitest'
import { readConfig } from '../../src/cli/config.ts'
import { start } from '../../src/cli/start.ts'
import { notificationTypes } from '../../src/operations/webhook-endpoints.ts'
import { createLog } from '../../src/process/log.ts'
import { expectReadable, outline } from '../browser/accessibility.ts'
import { type MailServer, type Received, startMailServer } from '../courier/mail-server.ts'
import { makeDataDirectory } from './data-directory.ts'
import { readPng } from './qr.ts'
import { rest } from './rest.ts'
import { startWebhookReceiver } from './webhook-receiver.ts'

/** An Usher with nothing but its demo, which sends e-mails to a mailbox and webhooks of every type to an endpoint. */
export async function running() {
  const dataDir = await makeDataDirectory()
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
  const mail = await startMailServer()
  const receiver = await startWebhookReceiver()
  onTestFinished(receiver.close)
  const environment = { USHER_DATA_DIR: dataDir, PORT: '0', SMTP_URL: mail.url, MAIL_FROM: 'tickets@example.com' }
  const { url, demo, stop } = await start(readConfig(environment), createLog('silent'), () => {})
  onTestFinished(stop)
  if (demo === null) throw new Error('a first start has a demo')
  const answers: string[] = []
  const send = async (method: string, path: string, body?: object) => {
    const answer = await rest(demo.key, url)(method, path, body)
    expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(300)
    answers.push(JSON.stringify(answer.body))
    return answer.body.data
  }
  const [lastOfDemo] = await send('GET', '/audit-entries?limit=1')
  const types = notificationTypes.filter((type) => type !== 'webhook_endpoint.test')
  const { secret } = await send('POST', '/webhook-endpoints', { url: `${receiver.url}/hooks`, types })
  // One that arrives again is the same.
  const webhooks = new Map<unknown, Webhook>()
  receiver.answerWith((response, webhook) => {
    webhooks.set(webhook.headers['webhook-id'], webhook.verified(secret) as Webhook)
    response.writeHead(204).end()
  })
  return { url, key: demo.key, keyForPeople: demo.keyForPeople, send, answers, mail, webhooks, lastOfDemo }
}

type Webhook = { type: string; timestamp: string; data: Record<string, unknown> }
export type Usher = Awaited<ReturnType<typeof running>>

export const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()

export const plain = (text = '') => text.replaceAll(/[\u00a0\u202f]/g, ' ')

/** Waits for an e-mail as the mail server received it. */
export async function emailTo({ received }: MailServer, to: string, headline: string): Promise<Received> {
  const found = () =>
    received.find(({ envelope, subject }) => envelope.to.includes(to) && plain(subject).startsWith(headline))
  await expect.poll(found).toBeDefined()
  return found() as Received
}

/** Links to pages that a secret opens: the address, the letter of the page, and the secret. */
export const linksIn = (text: string) => [...text.matchAll(/http:\/\/127\.0\.0\.1:\d+\/([a-z])\/([0-9a-f]{32,})\b/g)]

/** The code of the ticket, read from the attached picture. */
export function codeIn({ attachments }: Received): string {
  const picture = attachments.find(({ filename }) => filename?.endsWith('-ticket.png'))
  return readPng(Buffer.from(picture?.content as ArrayBuffer)) ?? expect.fail('no code')
}

/** The page can be read by everybody, and fits into its window. */
export async function look(page: Page): Promise<void> {
  expect(await outline(page)).toEqual({ overflow: false, mains: 1, headings: 1 })
  await expectReadable(page, { hasOutline: true })
}

/** Clicks, then waits for a text. */
export async function press(page: Page, role: 'button' | 'link', name: string, said: string): Promise<void> {
  await page.getByRole(role, { name, exact: true }).click()
  await page.getByText(said).first().waitFor()
}

export function expectWithout(text: string, secrets: string[]): void {
  for (const secret of secrets) expect(text).not.toContain(secret)
}

/** All e-mails are sent, and they are these: [kind, recipient]. */
export async function expectSent({ send }: Usher, due: (readonly [string, string, ...unknown[]])[]): Promise<void> {
  const listed = async () =>
    (await send('GET', '/emails?limit=100'))
      .map(({ kind, to, status }: Record<string, string>) => `${kind} ${to} ${status}`)
      .sort()
  await expect.poll(listed).toEqual(due.map(([kind, to]) => `${kind} ${to} sent`).sort())
}

/** Waits until this many webhooks arrived. @returns each change, with the types in alphabetical order. */
export async function webhooksOf({ send, webhooks }: Usher, count: number): Promise<Webhook[]> {
  const deliveries = (): Promise<Record<string, string>[]> => send('GET', '/webhook-deliveries?limit=100')
  const expected = Array(count).fill('delivered')
  await expect.poll(async () => (await deliveries()).map(({ status }) => status)).toEqual(expected)
  expect([...webhooks.keys()].sort()).toEqual((await deliveries()).map(({ notification_id }) => notification_id).sort())
  return [...webhooks.values()].sort((a, b) => (a.timestamp + a.type < b.timestamp + b.type ? -1 : 1))
}

type Entry = Record<'id' | 'action' | 'object_type' | 'actor' | 'source', string> & { changes: unknown }

/** The audit entries of the story, the first one first. */
export async function trailOf({ send, lastOfDemo }: Usher): Promise<Entry[]> {
  const entries: Entry[] = await send('GET', '/audit-entries?limit=100')
  return entries.slice(0, entries.map(({ id }) => id).indexOf(lastOfDemo.id)).reverse()
}

export const actOf = ({ actor, source, action, object_type }: Entry) => `${actor} ${source} ${action} ${object_type}`
