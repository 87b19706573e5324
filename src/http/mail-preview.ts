// Shows the ticket e-mails that were written to files. Embedded mode only, and only to this machine, since a ticket lets its
// holder in. Must never serve another file.

import { readdir, readFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { localhostAllowedHostnames, validateHostHeader } from '@modelcontextprotocol/server'
import { type RequestHandler, Router } from 'express'
import helmet from 'helmet'
import PostalMime, { type Email } from 'postal-mime'
import { ApiError } from '../gateway/api-error.ts'
import { mailPreviewList } from './mail-preview-list.ts'

const shown = 100

export function mailPreviewRouter(directory: string): Router {
  const router = Router()
  router.use('/outbox', forThisMachine, restrictPage)

  router.get('/outbox', async (_req, res) => {
    const names = await emailsIn(directory)
    const newest = names.slice(0, shown)
    const emails = await Promise.all(newest.map(async (name) => ({ name, email: await read(directory, name) })))
    res.type('html').send(mailPreviewList(emails, names.length))
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
  throw new ApiError(404, 'unknown_path', 'There is no such e-mail.', { hint: 'See /outbox.' })
}

const read = async (directory: string, name: string): Promise<Email> =>
  PostalMime.parse(await readFile(join(directory, name)), { attachmentEncoding: 'base64' })

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
