// What is public: the front door, the OpenAPI document, and the documentation page. Swagger UI comes from npm and is served
// from here, so the page works without any network but ours. No key is asked for, so an answer must cost no memory of its own.

import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type RequestHandler, Router } from 'express'
import helmet from 'helmet'
import packageJson from '../../package.json' with { type: 'json' }
import type { Operation } from '../operation.ts'
import { describeApi } from './openapi/document.ts'

const ownFiles = join(import.meta.dirname, 'docs-page')
const swaggerFiles = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'))

/** What the page is made of, by name: nothing else of these folders is served. */
const assets: Record<string, string> = {
  'page.css': ownFiles,
  'page.js': ownFiles,
  'favicon.svg': ownFiles,
  'swagger-ui.css': swaggerFiles,
  'swagger-ui-bundle.js': swaggerFiles,
}

const index = {
  name: 'Usher',
  version: packageJson.version,
  documentation: '/docs',
  openapi: '/openapi.json',
  rest: '/api/v1',
  mcp: '/api/mcp',
  health: '/health',
}

export function publicRouter(operations: readonly Operation[]): Router {
  const router = Router()
  const file = (root: string, name: string, maxAge: number) =>
    serveContent(readFileSync(join(root, name)), extname(name), maxAge)

  const json = serveContent(Buffer.from(JSON.stringify(index)), 'json', 0)
  router.get('/', (req, res, next) => {
    const asJson = () => json(req, res, next)
    res.format({ json: asJson, html: () => res.redirect('/docs'), default: asJson })
  })
  router.get('/openapi.json', serveContent(Buffer.from(JSON.stringify(describeApi(operations))), 'json', 300))
  router.use('/docs', restrictPage)
  router.get('/docs', file(ownFiles, 'page.html', 0))
  for (const [name, root] of Object.entries(assets)) router.get(`/docs/${name}`, file(root, name, 3600))
  return router
}

const compress = promisify(gzip)
// Below this a compressed answer is no smaller where it counts, in packets.
const worthCompressing = 1_400

/**
 * What never changes: one buffer for all answers, and one more for those who take gzip, made when the first of them asks. A
 * reader who does not read holds on to a reference, not to a copy.
 */
function serveContent(plain: Buffer, type: string, maxAge: number): RequestHandler {
  const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`
  let compressed: Promise<Buffer> | undefined
  return async (req, res) => {
    res.set({ 'Cache-Control': `public, max-age=${maxAge}`, ETag: etag }).type(type)
    if (plain.length < worthCompressing) return void res.send(plain)
    res.vary('Accept-Encoding')
    if (req.acceptsEncodings(['gzip', 'identity']) !== 'gzip') return void res.send(plain)
    compressed ??= compress(plain)
    // Other bytes, another tag (RFC 9110, section 8.8.3.3).
    res.set({ 'Content-Encoding': 'gzip', ETag: etag.replace(/"$/, '-gzip"') }).send(await compressed)
  }
}

/**
 * The page speaks to this server alone, for a key is pasted into it. Swagger UI's pictures are data: URLs, and those that a
 * call answers blob: ones. Not `upgrade-insecure-requests`: where there is no https, nothing would load.
 */
const restrictPage = helmet.contentSecurityPolicy({
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: ["'self'"],
    imgSrc: ["'self'", 'data:', 'blob:'],
    connectSrc: ["'self'"],
    baseUri: ["'none'"],
    formAction: ["'none'"],
    frameAncestors: ["'none'"],
  },
})
