// The public routes: the index, the OpenAPI document, the documentation page and the pages of docs/. Swagger UI is served from its npm
// package, so the page loads nothing from elsewhere. No key is required, so an answer must not allocate memory of its own.

import { globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type RequestHandler, Router } from 'express'
import helmet from 'helmet'
import packageJson from '../../../package.json' with { type: 'json' }
import { docsFolder, guides } from '../../http/guides.ts'
import { digestOf } from '../../http/middleware/etag.ts'
import { describeApi } from '../../http/openapi/document.ts'
import { storyIds } from '../../http/openapi/examples.ts'
import type { Operation } from '../../operations/operation.ts'
import { llmsText, renderGuide, searchIndex } from './guides.ts'

const ownFiles = import.meta.dirname
const swaggerFiles = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))

/** Files of the page, by name; nothing else in these folders is served. */
const assets: Record<string, string> = {
  'page.css': ownFiles,
  'guide.css': ownFiles,
  'page.js': ownFiles,
  'guide.js': ownFiles,
  'favicon.svg': ownFiles,
  'swagger-ui.css': swaggerFiles,
  'swagger-ui-bundle.js': swaggerFiles,
}

const indexAt = (path: string) => ({
  name: 'Usher',
  version: packageJson.version,
  documentation: `${path}/docs`,
  openapi: `${path}/openapi.json`,
  rest: `${path}/api/v1`,
  mcp: `${path}/api/mcp`,
  health: `${path}/health`,
})

/** An event that exists, for the identifiers that the page fills in; without it they are examples. */
export type Demo = { eventId: string; ticketTypeId: string }

/** @param publicUrl where others reach the API; a proxy strips its path. */
export function publicRouter(operations: readonly Operation[], demo?: Demo, publicUrl?: string): Router {
  const router = Router()
  const path = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/$/, '')
  const file = (root: string, name: string, maxAge: number) =>
    serveContent(() => readFileSync(join(root, name)), extname(name), maxAge)

  const json = serveContent(() => Buffer.from(JSON.stringify(indexAt(path))), 'json', 0)
  router.get('/', (req, res, next) => {
    const asJson = () => json(req, res, next)
    // With a path nothing tells whether it was asked for with a slash, so only the whole address is right.
    const docs = path === '' ? '/docs' : `${publicUrl}/docs`
    res.format({ json: asJson, html: () => res.redirect(docs), default: asJson })
  })
  const openApi = () => Buffer.from(withDemo(JSON.stringify(describeApi(operations, publicUrl)), demo))
  router.get('/openapi.json', serveContent(openApi, 'json', 300))
  // Swagger UI's images are data: URLs, those in answers blob: URLs.
  router.use('/docs', restrictPage({ imgSrc: ["'self'", 'data:', 'blob:'] }))
  router.get('/docs', withoutSlash, file(ownFiles, 'page.html', 0))
  const text = (path: string, type: string, make: () => string) =>
    router.get(
      path,
      withoutSlash,
      serveContent(() => Buffer.from(make()), type, 300),
    )
  const frame = readFileSync(join(ownFiles, 'guide.html'), 'utf8')
  for (const guide of guides) {
    text(`/docs/${guide.name}`, 'html', () => renderGuide(guide, frame))
    text(`/docs/${guide.name}.md`, 'md', () => guide.text)
  }
  text('/docs/search.json', 'json', () => JSON.stringify(searchIndex()))
  text('/llms.txt', 'txt', () => llmsText(packageJson.description))
  for (const picture of globSync('**/*.png', { cwd: docsFolder })) {
    router.get(`/docs/${picture}`, file(docsFolder, picture, 3600))
  }
  for (const [name, root] of Object.entries(assets)) router.get(`/docs/${name}`, file(root, name, 3600))
  // Where browsers look by themselves, as on a page of JSON.
  router.get('/favicon.ico', file(ownFiles, 'favicon.svg', 3600))
  return router
}

/** Links in pages are relative, for a proxy may strip a path: so a page has one address, without a slash at its end. */
export const withoutSlash: RequestHandler = ({ path }, res, next) => {
  if (!path.endsWith('/')) return next()
  res.redirect(301, `../${path.split('/').at(-2)}`)
}

const withDemo = (document: string, demo: Demo | undefined): string =>
  demo === undefined
    ? document
    : document.replaceAll(storyIds.eventId, demo.eventId).replaceAll(storyIds.ticketTypeId, demo.ticketTypeId)

const compress = promisify(gzip)
// Bytes; a smaller answer fits into one packet, compressed or not.
const compressFrom = 1_400

/**
 * Serves constant content, made on the first request: one buffer for all answers, and one compressed for those that accept gzip. A
 * client that does not read holds a reference, not a copy.
 */
export function serveContent(make: () => Buffer, type: string, maxAge: number): RequestHandler {
  let content: { plain: Buffer; etag: string } | undefined
  let compressed: Promise<Buffer> | undefined
  return async (req, res) => {
    content ??= withEtag(make())
    const { plain, etag } = content
    res.set({ 'Cache-Control': `public, max-age=${maxAge}`, ETag: etag }).type(type)
    if (plain.length < compressFrom) return void res.send(plain)
    res.vary('Accept-Encoding')
    if (req.acceptsEncodings(['gzip', 'identity']) !== 'gzip') return void res.send(plain)
    compressed ??= compress(plain)
    // Each encoding has an ETag of its own (RFC 9110, section 8.8.3.3).
    res.set({ 'Content-Encoding': 'gzip', ETag: etag.replace(/"$/, '-gzip"') }).send(await compressed)
  }
}

const withEtag = (plain: Buffer): { plain: Buffer; etag: string } => ({ plain, etag: `"${digestOf(plain)}"` })

/**
 * A page that holds a key may load from, and connect to, this server only. Without `upgrade-insecure-requests`: over plain http nothing
 * would load.
 */
export const restrictPage = (directives: Record<string, string[]>): RequestHandler => {
  const [none, self] = [["'none'"], ["'self'"]]
  const own = { defaultSrc: none, scriptSrc: self, styleSrc: self, imgSrc: self, connectSrc: self }
  const others = { baseUri: none, formAction: none, frameAncestors: none }
  return helmet.contentSecurityPolicy({ useDefaults: false, directives: { ...own, ...others, ...directives } })
}
