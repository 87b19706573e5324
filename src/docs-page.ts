// What is public: the front door, the OpenAPI document, and the documentation page. Swagger UI comes from npm and is served
// from here, so the page works without any network but ours. In come the operations, out goes a router; no key is asked for.

import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Router } from 'express'
import helmet from 'helmet'
import packageJson from '../package.json' with { type: 'json' }
import { describeApi } from './openapi.ts'
import type { Operation } from './operation.ts'

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
  const document = JSON.stringify(describeApi(operations))
  const router = Router()

  router.get('/', (_req, res) => {
    const json = () => void res.json(index)
    res.format({ json, html: () => res.redirect('/docs'), default: json })
  })
  router.get('/openapi.json', (_req, res) => {
    res.set('Cache-Control', 'public, max-age=300').type('json').send(document)
  })
  router.use('/docs', restrictPage)
  router.get('/docs', (_req, res) => res.sendFile('page.html', { root: ownFiles }))
  for (const [name, root] of Object.entries(assets)) {
    router.get(`/docs/${name}`, (_req, res) => res.sendFile(name, { root, maxAge: '1h' }))
  }
  return router
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
