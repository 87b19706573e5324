// The door page: static files that a browser checks tickets in with. No build step: the types are stripped from its modules on
// the first request, and packages are served as they are. Nothing here needs a key; the page sends its own with each call.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { findPackageJSON, stripTypeScriptTypes } from 'node:module'
import { dirname, extname, join } from 'node:path'
import { Router } from 'express'
import { paletteOf, propertiesOf } from '../../guests/look.ts'
import { restrictPage, serveContent, withoutSlash } from '../docs/docs-page.ts'

const ownFiles = join(import.meta.dirname, 'browser')
/** Files that other pages have, too. */
const sharedFiles: Record<string, string> = { 'look.ts': '../../guests/look.ts', 'sheet.css': '../sheet.css' }
/** The folder of a package, whichever build of it Node itself would import. */
const folderOf = (name: string): string => dirname(findPackageJSON(name, import.meta.url) as string)
const zxing = join(folderOf('zxing-wasm'), 'dist')

/** Files of packages, by their path below /door/; the paths within a package stay as they are, for its own imports. */
const packageFiles: Record<string, string> = {
  'lit-html/lit-html.js': join(folderOf('lit-html'), 'lit-html.js'),
  'idb/index.js': join(folderOf('idb'), 'build/index.js'),
  'zxing/share.js': join(zxing, 'es/share.js'),
  'zxing/reader/index.js': join(zxing, 'es/reader/index.js'),
  'zxing/zxing_reader.wasm': join(zxing, 'reader/zxing_reader.wasm'),
}
/** Where the imports of packages are found. Not by an import map: workers have none. */
const packages: Record<string, string> = {
  'lit-html': './lit-html/lit-html.js',
  idb: './idb/index.js',
  'zxing-wasm/reader': './zxing/reader/index.js',
}

const worker = 'service-worker.ts'
const ownNames = [...readdirSync(ownFiles, { recursive: true, encoding: 'utf8' }), ...Object.keys(sharedFiles)]
  .map((name) => name.replaceAll('\\', '/'))
  .filter((name) => ['.ts', '.css', '.svg', '.webmanifest'].includes(extname(name)))

/** What the page consists of: each path that its service worker keeps, with the content. The page itself has the path ''. */
export function doorFiles(): Map<string, Buffer> {
  const files = new Map<string, Buffer>()
  for (const name of ownNames.filter((own) => own !== worker)) files.set(name, ownFile(name))
  for (const [path, file] of Object.entries(packageFiles)) files.set(path, readFileSync(file))
  return files.set('', readFileSync(join(ownFiles, 'page.html')))
}

function ownFile(name: string): Buffer {
  const content = readFileSync(join(import.meta.dirname, sharedFiles[name] ?? join('browser', name)))
  if (name.endsWith('.css')) {
    const colours = name === 'sheet.css' ? propertiesOf(paletteOf(null)) : ''
    return Buffer.from(colours + content.toString().replace(/\/\*[\s\S]*?\*\/|^\s+/gm, ''))
  }
  if (!name.endsWith('.ts')) return content
  // Types leave blanks, which are a quarter of the page together with comments and indentation. No text of the page runs over lines
  // but HTML, where blanks at the beginning of one mean nothing.
  const text = stripTypeScriptTypes(content.toString())
    .replace(/^[ \t]+|[ \t]+$/gm, '')
    .replace(/ {2,}/g, ' ')
    .replace(/^(?:\/\/.*|\/\*\*.*\*\/)?\n/gm, '')
  const here = text.replace(/(?<= from ')[^']+(?=\/look\.ts')/g, '.')
  return Buffer.from(here.replace(/(?<= from )'([^'.][^']*)'/g, (_, from: string) => `'${packages[from]}'`))
}

export function doorRouter(): Router {
  const router = Router()
  let made: Map<string, Buffer> | undefined
  const content = (path: string) => {
    made ??= doorFiles()
    return made.get(path) as Buffer
  }
  // WebAssembly reads the codes.
  const scriptSrc = ["'self'", "'wasm-unsafe-eval'"]
  router.use('/door', restrictPage({ scriptSrc, manifestSrc: ["'self'"], workerSrc: ["'self'"] }))
  router.get(
    '/door',
    withoutSlash,
    serveContent(() => content(''), 'html', 0),
  )
  for (const path of [...ownNames.filter((own) => own !== worker), ...Object.keys(packageFiles)]) {
    router.get(
      `/door/${path}`,
      serveContent(() => content(path), typeOf(path), 0),
    )
  }
  // It must stand above all that it answers for: below /door/ it could not answer for /door.
  const serveWorker = serveContent(() => withFileList(ownFile(worker).toString(), doorFiles()), 'js', 0)
  router.get(`/door/${worker}`, (req, res, next) =>
    serveWorker(req, res.set('Service-Worker-Allowed', '../door'), next),
  )
  return router
}

/** A changed file changes the worker's text, by which browsers notice a new version. */
function withFileList(text: string, files: Map<string, Buffer>): Buffer {
  const version = createHash('sha256')
  for (const [path, content] of files) version.update(`${path}\n${content.length}\n`).update(content)
  const paths = [...files.keys()].map((path) => path || '../door')
  const list = { version: version.digest('base64url').slice(0, 16), paths }
  return Buffer.from(`const door = ${JSON.stringify(list)}\n${text}`)
}

const typeOf = (path: string): string => {
  const extension = extname(path).slice(1)
  return extension === 'ts' ? 'js' : extension === 'webmanifest' ? 'application/manifest+json' : extension
}
