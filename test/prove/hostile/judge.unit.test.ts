// Answers that must not pass: without these, a round that finds nothing proves nothing.

import { describe, expect, test } from 'vitest'
import { operations } from '../../../src/operations/index.ts'
import { judge } from './judge.ts'
import { exchange, type HostileRequest } from './request.ts'
import { smuggledMark } from './sockets.ts'
import type { Answer } from './wire.ts'

const request = (face: HostileRequest['face'], operation?: string) => {
  const sent = { method: 'GET', target: '/', headers: [] }
  return exchange('rest', face, sent, { operation: operations.find(({ name }) => name === operation) })
}

const answer = (status: number, body: unknown, headers: Record<string, string> = {}): Answer => ({
  status,
  headers: new Map(
    Object.entries({ 'content-type': 'application/json', 'x-request-id': 'one', ...headers }).map(([name, value]) => [
      name,
      [value],
    ]),
  ),
  body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
  isWhole: true,
})
const page = (html: string) => answer(404, `<!DOCTYPE html>${html}`, { 'content-type': 'text/html' })

const refusal = (code: string, members: object = {}) => ({
  error: { code, message: 'No.', retryable: false, request_id: 'one', ...members },
})

const judged = (of: HostileRequest, ...answers: Answer[]) => judge(of, { answers, end: 'open', milliseconds: 1 })

const rpc = (members: object) => ({ jsonrpc: '2.0', id: 1, ...members })
const toolError = (error: object) =>
  rpc({ result: { isError: true, content: [{ type: 'text', text: JSON.stringify(error) }] } })

const long = 'x'.repeat(70_000)

describe('passes', () => {
  test.each<[string, HostileRequest, Answer]>([
    ['a refusal', request('rest', 'get_event'), answer(404, refusal('not_found'))],
    ['a refusal of a page', request('page'), page('<h1>No</h1>')],
    ['an error of JSON-RPC', request('mcp'), answer(400, rpc({ id: null, error: { code: -32700, message: 'No.' } }))],
    ['an error of a tool', request('mcp'), answer(200, toolError(refusal('not_found')))],
    ['an error of OAuth', request('oauth'), answer(400, { error: 'invalid_request', error_description: 'No.' })],
  ])('%s', (_what, of, given) => {
    expect(judged(of, given)).toEqual([])
  })
})

describe('does not pass', () => {
  test.each<[string, HostileRequest, Answer, RegExp]>([
    ['a fault', request('rest'), answer(500, refusal('internal_error')), /a fault of the server/],
    ['a fault in a result', request('mcp'), answer(200, toolError(refusal('internal_error'))), /a fault of the server/],
    [
      'a stack',
      request('rest'),
      answer(400, refusal('bad_request', { message: 'x at run (/srv/a.ts:3:1)' })),
      /inside/,
    ],
    [
      'words of Postgres',
      request('rest'),
      answer(422, refusal('validation_failed', { hint: 'relation "x"' })),
      /inside/,
    ],
    ['a leak in a header', request('rest'), answer(404, refusal('not_found'), { 'x-cause': 'PGRST116' }), /inside/],
    ['an unknown code', request('rest'), answer(400, refusal('oops')), /no documented code/],
    ['a code of another status', request('rest'), answer(400, refusal('not_found')), /no documented code/],
    ['a code of another operation', request('rest', 'get_event'), answer(409, refusal('sold_out')), /get_event/],
    ['another shape', request('rest'), answer(400, { message: 'No.' }), /no documented shape/],
    ['a further member', request('rest'), answer(400, refusal('bad_request', { stack: 'x' })), /no documented shape/],
    ['another request id', request('rest'), answer(400, refusal('bad_request', { request_id: 'two' })), /request_id/],
    ['a page in place of JSON', request('rest'), page('<h1>No</h1>'), /in place of JSON/],
    ['a page of Express', request('any'), page('<pre>Cannot GET /</pre>'), /no page/],
    ['JSON that is none', request('rest'), answer(200, '{"data":'), /says that it is JSON/],
    [
      'an answer of another operation',
      request('rest', 'get_event'),
      answer(200, { data: [] }),
      /no answer of get_event/,
    ],
    ['an error without a message', request('mcp'), answer(400, rpc({ error: { code: -32600 } })), /no JSON-RPC/],
    ['a long quotation', request('mcp'), answer(400, rpc({ error: { code: -32600, message: long } })), /no JSON-RPC/],
    ['an unknown code of a tool', request('mcp'), answer(200, toolError(refusal('oops'))), /no documented code/],
    ['a long refusal', request('rest'), answer(422, refusal('validation_failed', { details: long })), /bytes/],
    ['a header of the sender', request('rest'), answer(404, refusal('not_found'), { 'x-injected': 'yes' }), /sender/],
    ['markup of the sender', request('page'), page('<h1>No</h1><script>alert(1)</script>'), /markup/],
    ['what was smuggled', request('any'), answer(200, {}, { 'x-request-id': smuggledMark }), /smuggled/],
    ['half an answer', request('rest'), { ...answer(200, {}), isWhole: false }, /cut off/],
  ])('%s', (_what, of, given, rule) => {
    expect(judged(of, given).join()).toMatch(rule)
  })

  test.each([
    ['no answer', { answers: [], end: 'closed' as const }, /0 answers/],
    ['a hang', { answers: [], end: 'hang' as const }, /nothing came in time/],
    ['a server that is gone', { answers: [], end: 'refused' as const }, /nobody listens/],
    ['two answers', { answers: [answer(200, {}), answer(200, {})], end: 'open' as const }, /2 answers came to 1/],
    ['what is no HTTP', { answers: [], end: 'closed' as const, garbage: 'x' }, /no HTTP/],
  ])('%s', (_what, outcome, rule) => {
    expect(judge(request('rest'), { milliseconds: 1, ...outcome }).join()).toMatch(rule)
  })
})
