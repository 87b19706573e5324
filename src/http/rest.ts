// REST: the operations as routes below /api/v1. Must know nothing of an operation beyond its declaration.

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type Request, type RequestHandler, Router } from 'express'
import * as z from 'zod'
import { ApiError } from '../gateway/api-error.ts'
import { call, type Gateway, requireScope } from '../gateway/calls.ts'
import { openExport } from '../gateway/exports.ts'
import { isId, type Name, nameOf } from '../gateway/names.ts'
import { parseInput, validationFailed } from '../gateway/validation.ts'
import { maximumTags } from '../operations/changes.ts'
import { isReference } from '../operations/identifiers.ts'
import { inputOfCsv, isRead, type Operation, type Picture, pathParameters } from '../operations/operation.ts'
import { headersOfCsv, sendCsv } from './csv.ts'
import { deprecationHeaders } from './deprecation.ts'
import { callerOf } from './middleware/authenticate.ts'
import { methodNotAllowed, notJson } from './middleware/errors.ts'
import { digestOf, isKnown } from './middleware/etag.ts'
import { readJson } from './middleware/json-body.ts'
import { noteRoute } from './middleware/log-requests.ts'

const compress = promisify(gzip)

type Input = Record<string, unknown>
type InputOf = (req: Request) => Input

const verbs = { GET: 'get', POST: 'post', PATCH: 'patch', DELETE: 'delete' } as const

export function restRouter(operations: readonly Operation[], gateway: Gateway): Router {
  const router = Router({ caseSensitive: true })
  router.use(neverCached)

  const methodsByPath = new Map<string, Set<string>>()
  function add(operation: Operation, method: Operation['method'], path: string, handler: RequestHandler): void {
    router[verbs[method]](routeOf(path), begin(operation, path), readJson(operation.bodyLimit), handler)
    const methods = methodsByPath.get(path) ?? new Set()
    for (const each of method === 'GET' ? ['GET', 'HEAD'] : [method]) methods.add(each)
    methodsByPath.set(path, methods)
  }
  for (const operation of operations) {
    const { path, method, pictures = {}, csv } = operation
    const inputOf = isRead(operation) ? inputOfQuery(operation) : inputOfBody(operation)
    if (csv !== undefined) add(operation, 'GET', path, download(operation, gateway))
    add(operation, method, path, handle(operation, gateway, inputOf))
    for (const [extension, picture] of Object.entries(pictures)) {
      add(operation, 'GET', `${path}.${extension}`, draw(operation, gateway, inputOf, picture))
    }
  }
  for (const [path, methods] of methodsByPath) router.all(routeOf(path), refuseMethod(path, [...methods].join(', ')))
  return router
}

/** As Express has it: `/events/:event_id`. */
const routeOf = (path: string): string => path.replace(/\{(\w+)\}/g, ':$1')

const prefix = '/api/v1'

/** Checks the scope, before anything that was sent is read. */
function begin(operation: Operation, path: string): RequestHandler {
  const headers = deprecationHeaders(operation, path)
  return async (req, res, next) => {
    noteRoute(req, res, prefix + path)
    res.set(headers)
    res.locals.operation = operation.name
    await requireScope(operation, callerOf(res))
    next()
  }
}

function handle(operation: Operation, gateway: Gateway, inputOf: InputOf): RequestHandler {
  return async (req, res) => {
    const [input, names] = readReference(operation, inputOf(req))
    const answer = await call(gateway, operation, callerOf(res), input, req.headers['idempotency-key'], names)
    if (answer.replayed) res.set('Idempotent-Replayed', 'true')
    const { data } = answer.body as { data?: { version?: number } }
    const text = JSON.stringify(answer.body)
    if (data?.version !== undefined) {
      const etag = etagOf(data.version, text)
      res.set('ETag', etag)
      if (isRead(operation) && isKnown(etag, res.locals.ifNoneMatch)) return void res.status(304).end()
    }
    res.status(answer.status).type('json')
    // Large answers of one kind are compressed here: middleware would look at every other one as well.
    if (operation.compressed) res.vary('Accept-Encoding')
    if (!operation.compressed || req.acceptsEncodings('gzip', 'identity') !== 'gzip') return void res.send(text)
    res.set('Content-Encoding', 'gzip').send(await compress(text))
  }
}

function draw(operation: Operation, gateway: Gateway, inputOf: InputOf, { mediaType, draw }: Picture): RequestHandler {
  return async (req, res) => {
    const { body } = await call(gateway, operation, callerOf(res), inputOf(req))
    res.type(mediaType).send(await draw(body.data))
  }
}

function download(operation: Operation, gateway: Gateway): RequestHandler {
  const input = inputOfCsv(operation)
  const inputOf = inputOfQuery({ ...operation, input })
  return async (req, res) => {
    const caller = callerOf(res)
    const { bom = false, ...args } = parseInput(input, inputOf(req), { source: caller.source, isQuery: true })
    if (req.method === 'HEAD') {
      await caller.confirm()
      return void res.set(headersOfCsv(operation)).end()
    }
    try {
      const file = await openExport(gateway, operation, caller.principal, caller.source, args)
      await sendCsv(res, file, bom as boolean)
    } catch (error) {
      if (error instanceof ApiError && (error.status === 401 || error.status === 403)) caller.forget()
      throw error
    }
  }
}

/** The path of an order has its id, or its reference: the input with an id in any case, and what is in its place. */
function readReference(operation: Operation, input: Input): [Input, Name[]] {
  const { order_id: order } = input
  if (!operation.path.includes('{order_id}') || typeof order !== 'string' || isId(order) || !isReference(order))
    return [input, []]
  const name = nameOf('order_id', 'order_reference', order)
  return [{ ...input, order_id: name.id }, [name]]
}

/**
 * Converts query text to the integers, booleans and lists that the schema expects; a list is its items with commas between. Other text is
 * left as it is, for validation to reject.
 */
function inputOfQuery(operation: Operation): InputOf {
  const properties = z.toJSONSchema(operation.input, { io: 'input' }).properties ?? {}
  const typeOf = (name: string) => {
    const property = properties[name]
    return typeof property === 'object' ? property.type : undefined
  }
  return (req) => {
    refuseInPath(operation, req.query)
    const repeated = Object.keys(req.query).filter((name) => Array.isArray(req.query[name]) && typeOf(name) !== 'array')
    refuseEach(repeated, 'is given twice')
    const input: Input = { ...req.query, ...req.params }
    for (const [name, text] of Object.entries(input)) {
      if (typeof text !== 'string') continue
      const type = typeOf(name)
      if (type === 'integer' && /^-?\d{1,15}$/.test(text)) input[name] = Number(text)
      if (type === 'array') input[name] = text.split(',')
      if (type === 'boolean' && (text === 'true' || text === 'false')) input[name] = text === 'true'
    }
    return input
  }
}

function inputOfBody(operation: Operation): InputOf {
  return (req) => {
    // No body is needed if every field is optional or in the path.
    if (req.headers['content-length'] !== '0' && req.is('application/json') === false) throw notJson()
    const body: unknown = req.body ?? {}
    if (typeof body !== 'object' || body === null || Array.isArray(body)) throw invalid('body', 'must be a JSON object')
    // A dry_run in the query of a cancellation, for example, must not be ignored.
    refuseEach(Object.keys(req.query), 'belongs in the body')
    refuseInPath(operation, body)
    if (operation.method !== 'PATCH') {
      if (req.headers['if-match'] !== undefined) throw invalid('If-Match', 'is not supported here')
      return { ...body, ...req.params }
    }
    if (Object.keys(body).length === 0) throw invalid('body', 'must name at least one field to change')
    return { ...req.params, changes: body, ...ifVersion(req.headers['if-match']) }
  }
}

const invalid = (param: string, message: string): ApiError => validationFailed([{ param, message }])

function refuseInPath(operation: Operation, given: object): void {
  const twice = pathParameters(operation).filter((name) => Object.hasOwn(given, name))
  refuseEach(twice, 'is given by the path')
}

function refuseEach(params: string[], message: string): void {
  if (params.length > 0) throw validationFailed(params.map((param) => ({ param, message })))
}

/**
 * `"3-GRcWB2Ji4Jnp6EFXDdS0yw"`: the version, by which If-Match goes, and a digest of the answer, which also changes with what no version
 * counts, such as a ticket sold.
 */
const etagOf = (version: number, answer: string): string => `"${version}-${digestOf(answer)}"`

/** The version of an ETag; one of the version alone is taken, too. */
const versionIn = (etag: string): string | undefined => /^(?:W\/)?"(\d{1,9})(?:-[\w-]{22})?"$/.exec(etag)?.[1]

/**
 * If-Match lists the ETags of the accepted versions (RFC 9110, section 13.1.1). A weak ETag counts as strong: proxies weaken it when they
 * compress an answer.
 */
function ifVersion(ifMatch: string | undefined): { if_version?: number[] } {
  if (ifMatch === undefined || ifMatch.trim() === '*') return {}
  // A list may have empty elements (section 5.6.1).
  const tags = ifMatch.split(',').map((tag) => tag.trim())
  const given = tags.filter(Boolean)
  if (given.length === 0 || !given.every((tag) => /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/.test(tag)))
    throw invalid('If-Match', 'must be an ETag from an earlier answer, or a list of them')
  if (given.length > maximumTags) throw invalid('If-Match', `must be at most ${maximumTags} ETags`)
  // A foreign ETag is valid, but matches nothing.
  return { if_version: given.flatMap((tag) => versionIn(tag) ?? []).map(Number) }
}

/** Express would answer If-None-Match by itself where there is no ETag, too. */
const neverCached: RequestHandler = (req, res, next) => {
  res.locals.ifNoneMatch = req.headers['if-none-match']
  delete req.headers['if-none-match']
  res.set('Cache-Control', 'no-store')
  next()
}

function refuseMethod(path: string, allow: string): RequestHandler {
  return (req, res) => {
    noteRoute(req, res, prefix + path)
    throw methodNotAllowed(req.method, allow, `Allowed: ${allow}.`)
  }
}
