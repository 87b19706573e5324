// The mail preview at /mail: e-mails that were written to files. Embedded mode only, and for this machine only, since a
// ticket admits its holder. Must never serve another file.

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { localhostAllowedHostnames, validateHostHeader } from '@modelcontextprotocol/server'
import { type RequestHandler, Router } from 'express'
import PostalMime, { type Email } from 'postal-mime'
import { ApiError } from '../../gateway/api-error.ts'
import { isLoopback } from '../../process/loopback.ts'
import { mailPreviewList } from './mail-preview-list.ts'

const maximumListed = 100

export function mailPreviewRouter(directory: string): Router {
  const router = Router()
  router.use('/mail', forThisMachine)

  router.get('/mail', async (_req, res) => {
    const names = await emailsIn(directory)
    const newest = names.slice(0, maximumListed)
    const emails = await Promise.all(newest.map(async (name) => ({ name, email: await read(directory, name) })))
    res.type('html').send(mailPreviewList(emails, names.length))
  })
  router.get('/mail/:name', async (req, res) => {
    const email = await read(directory, await known(directory, req.params.name))
    res.type('html').send(withImages(email))
  })
  router.get('/mail/:name/source', async (req, res) => {
    const name = await known(directory, req.params.name)
    res
      .type('message/rfc822')
      .attachment(name)
      .send(await readFile(join(directory, name)))
  })
  return router
}

/** Newest first: file names begin with their time. */
async function emailsIn(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => [])
  return names
    .filter((name) => name.endsWith('.eml'))
    .sort()
    .reverse()
}

async function known(directory: string, name: string): Promise<string> {
  if ((await emailsIn(directory)).includes(name)) return name
  throw new ApiError(404, 'unknown_path', 'There is no such e-mail.', { hint: 'See /mail.' })
}

const read = async (directory: string, name: string): Promise<Email> =>
  PostalMime.parse(await readFile(join(directory, name)), { attachmentEncoding: 'base64' })

/** Attached images are inlined. */
function withImages({ html: body = '', attachments }: Email): string {
  return attachments.reduce((text, { contentId, mimeType, content }) => {
    const cid = contentId?.replace(/^<|>$/g, '')
    return cid === undefined ? text : text.replaceAll(`cid:${cid}`, `data:${mimeType};base64,${content}`)
  }, body)
}

/** Its address where this machine reaches the API. Undefined: it would not be served there. */
export function mailPreviewAt(url: string): string | undefined {
  return localhostAllowedHostnames().includes(new URL(url).hostname) ? `${url}/mail` : undefined
}

const proxyHeaders = ['forwarded', 'via', 'x-forwarded-for', 'x-forwarded-host', 'x-real-ip', 'cf-connecting-ip']

/** For others these paths do not exist. The Host header is checked against DNS rebinding. */
const forThisMachine: RequestHandler = (req, res, next) => {
  const loopback = isLoopback(req.socket.remoteAddress ?? '')
  const throughProxy = proxyHeaders.some((header) => header in req.headers)
  const isLocalName = validateHostHeader(req.headers.host, localhostAllowedHostnames()).ok
  if (!loopback || throughProxy || !isLocalName) return next('router')
  res.set({ 'Cache-Control': 'no-store', 'Content-Security-Policy': policy })
  next()
}

/** Content of an e-mail must not run anything, and loads nothing but logos. */
const policy = [
  "default-src 'none'",
  "style-src 'unsafe-inline'",
  "img-src 'self' data: https:",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join(';')
