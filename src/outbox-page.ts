// Ticket e-mails that were written to files, for a newcomer to look at: embedded mode only, and only for whoever sits at this
// machine, since a ticket lets its holder in. In comes the folder, out goes a router. It must never serve another file.

import { readdir, readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { localhostAllowedHostnames, validateHostHeader } from '@modelcontextprotocol/server'
import { type RequestHandler, Router } from 'express'
import helmet from 'helmet'
import PostalMime, { type Email } from 'postal-mime'
import { html } from './courier/html.ts'
import { Refusal } from './gateway/refusal.ts'

const shown = 100

export function outboxRouter(directory: string): Router {
  const router = Router()
  router.use('/outbox', forThisMachine, restrictPage)

  router.get('/outbox', async (_req, res) => {
    const names = (await emailsIn(directory)).slice(0, shown)
    const emails = await Promise.all(names.map(async (name) => ({ name, email: await read(directory, name) })))
    res.type('html').send(String(list(emails)))
  })
  router.get('/outbox/:name', async (req, res) => {
    const email = await read(directory, await known(directory, req.params.name))
    res.type('html').send(withPictures(email))
  })
  router.get('/outbox/:name/source', async (req, res) => {
    const name = await known(directory, req.params.name)
    res
      .type('message/rfc822')
      .attachment(name)
      .send(await readFile(join(directory, name)))
  })
  return router
}

/** Newest first: names begin with their time. */
async function emailsIn(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => [])
  return names
    .filter((name) => name.endsWith('.eml'))
    .sort()
    .reverse()
}

async function known(directory: string, name: string): Promise<string> {
  if ((await emailsIn(directory)).includes(name)) return name
  throw new Refusal(404, 'unknown_path', 'There is no such e-mail.', { hint: 'See /outbox.' })
}

const read = async (directory: string, name: string): Promise<Email> =>
  PostalMime.parse(await readFile(join(directory, name)), { attachmentEncoding: 'base64' })

function list(emails: { name: string; email: Email }[]) {
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Outbox</title>
    <link rel="icon" href="/docs/favicon.svg" type="image/svg+xml">
    <style>
      body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; color: #1f2a44; }
      table { width: 100%; border-collapse: collapse; }
      td, th { padding: 0.5rem; border-bottom: 1px solid #e3e6ee; text-align: left; }
    </style>
  </head>
  <body>
    <h1>Outbox</h1>
    <p>No mail service is configured, so tickets are written to files. The newest ${String(shown)} are here.</p>
    <table>
      <tr><th>Time</th><th>To</th><th>Subject</th><th></th></tr>
      ${emails.map(
        ({ name, email }) => html`<tr>
        <td>${email.date ?? ''}</td>
        <td>${email.to?.map(({ name, address }) => `${name} <${address}>`).join(', ') ?? ''}</td>
        <td><a href="/outbox/${name}">${email.subject ?? '(no subject)'}</a></td>
        <td><a href="/outbox/${name}/source">.eml</a></td>
      </tr>`,
      )}
    </table>
  </body>
</html>`
}

/** The pictures that the e-mail carries stand in it, since nothing may be loaded. */
function withPictures({ html: body = '', attachments }: Email): string {
  return attachments.reduce((text, { contentId, mimeType, content }) => {
    const cid = contentId?.replace(/^<|>$/g, '')
    return cid === undefined ? text : text.replaceAll(`cid:${cid}`, `data:${mimeType};base64,${content}`)
  }, body)
}

/** Anybody else finds nothing here. The name of the host, too: a page of another site must not read it through a name of its own. */
const forThisMachine: RequestHandler = (req, res, next) => {
  res.set('Cache-Control', 'no-store')
  const address = req.socket.remoteAddress?.replace(/^::ffff:/, '') ?? ''
  const loopback = address === '::1' || (isIP(address) === 4 && address.startsWith('127.'))
  const throughProxy = [
    'forwarded',
    'via',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-real-ip',
    'cf-connecting-ip',
  ].some((header) => header in req.headers)
  if (loopback && !throughProxy && validateHostHeader(req.headers.host, localhostAllowedHostnames()).ok) return next()
  next('router')
}

/** What was written into an e-mail runs nothing and loads nothing. */
const restrictPage = helmet.contentSecurityPolicy({
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    styleSrc: ["'unsafe-inline'"],
    imgSrc: ["'self'", 'data:'],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
  },
})
