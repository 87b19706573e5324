// Where clients find out how to sign in, and where they find nothing.

import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { listenOnLoopback } from '../../../scripts/support/listen.ts'
import { checkPublicUrl } from '../../../src/cli/doctor/check-services.ts'
import { ownApp } from '../../support/own-app.ts'

const get = async (url: string) => {
  const response = await fetch(url)
  return { status: response.status, body: await response.json() }
}
const post = async (url: string, headers: Record<string, string> = {}) => {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: '{}',
  })
  return { status: response.status, challenge: response.headers.get('www-authenticate') }
}

test('a client without a token is told where to get one, step by step', async () => {
  const { url } = await ownApp()
  const { status, challenge } = await post(`${url}/api/mcp/connect`)
  expect(status).toBe(401)
  const [, at = ''] = /resource_metadata="([^"]+)"/.exec(challenge ?? '') ?? []
  expect(at).toBe(`${url}/.well-known/oauth-protected-resource/api/mcp/connect`)
  const { body: resource } = await get(at)
  expect(resource).toMatchObject({ resource: `${url}/api/mcp/connect`, authorization_servers: [`${url}/oauth`] })
  const { body: server } = await get(`${url}/.well-known/oauth-authorization-server/oauth`)
  expect(server).toMatchObject({
    issuer: `${url}/oauth`,
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: true,
    registration_endpoint: `${url}/oauth/register`,
  })
  const wrong = await post(`${url}/api/mcp/connect`, { Authorization: `Bearer ${'x'.repeat(43)}` })
  expect(wrong.challenge).toBe(`Bearer realm="usher", error="invalid_token", resource_metadata="${at}"`)
})

test('a client of /api/mcp is never asked to sign in, whether its key is missing or wrong', async () => {
  const { url } = await ownApp()
  expect(await post(`${url}/api/mcp`)).toEqual({ status: 401, challenge: 'Bearer realm="usher"' })
  const wrong = { Authorization: 'Bearer usher_live_wrong' }
  expect(await post(`${url}/api/mcp`, wrong)).toEqual({
    status: 401,
    challenge: 'Bearer realm="usher", error="invalid_token"',
  })
  for (const kind of ['oauth-protected-resource', 'oauth-authorization-server', 'openid-configuration']) {
    for (const path of ['', '/api/mcp']) expect((await get(`${url}/.well-known/${kind}${path}`)).status).toBe(404)
  }
})

test('with a path in PUBLIC_URL the documents are at the root of the host, with the path behind them', async () => {
  const { url } = await ownApp({ publicUrl: 'https://events.example/usher' })
  const at = '/.well-known/oauth-protected-resource/usher/api/mcp/connect'
  expect((await post(`${url}/api/mcp/connect`)).challenge).toContain(`resource_metadata="https://events.example${at}"`)
  expect((await get(url + at)).body).toMatchObject({
    resource: 'https://events.example/usher/api/mcp/connect',
    authorization_servers: ['https://events.example/usher/oauth'],
  })
  const { body } = await get(`${url}/.well-known/oauth-authorization-server/usher/oauth`)
  expect(body).toMatchObject({
    issuer: 'https://events.example/usher/oauth',
    token_endpoint: 'https://events.example/usher/oauth/token',
  })
})

test('a client in a web page of another site may read the documents, register and have tokens, and see no page', async () => {
  const { url } = await ownApp()
  const origin = { Origin: 'https://inspector.example' }
  const [token, register] = [`${url}/oauth/token`, `${url}/oauth/register`]
  for (const at of [token, register, `${url}/.well-known/oauth-authorization-server/oauth`]) {
    const asked = await fetch(at, {
      method: 'OPTIONS',
      headers: { ...origin, 'Access-Control-Request-Method': 'POST' },
    })
    expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
    expect(asked.headers.get('access-control-allow-headers')).toContain('MCP-Protocol-Version')
  }
  const json = { ...origin, 'Content-Type': 'application/json' }
  const body = JSON.stringify({ redirect_uris: ['https://inspector.example/callback'] })
  const registered = await fetch(register, { method: 'POST', headers: json, body })
  expect([registered.status, registered.headers.get('access-control-allow-origin')]).toEqual([201, '*'])
  const { client_id } = (await registered.json()) as { client_id: string }
  const form = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: 'x', client_id })
  const refused = await fetch(token, { method: 'POST', headers: origin, body: form })
  expect([await refused.json(), refused.headers.get('access-control-allow-origin')]).toMatchObject([
    { error: 'invalid_grant' },
    '*',
  ])
  expect(
    (await fetch(`${url}/oauth/grants`, { headers: origin })).headers.get('access-control-allow-origin'),
  ).toBeNull()
})

test.each([
  ['it is switched off', { oauth: false as const }],
  ['PUBLIC_URL would carry keys in the clear', { publicUrl: 'http://events.example' }],
])('nothing of it is there where %s', async (_why, parts) => {
  const { url } = await ownApp(parts)
  for (const path of [
    '/.well-known/oauth-protected-resource/api/mcp/connect',
    '/.well-known/oauth-authorization-server/oauth',
    '/oauth/grants',
    '/oauth/auth',
  ]) {
    expect((await get(url + path)).status).toBe(404)
  }
  expect((await post(`${url}/api/mcp/connect`)).challenge).toBe('Bearer realm="usher"')
})

test('usher doctor names the paths that a proxy has to pass on', async () => {
  let target = ''
  let passesOn = false
  const proxy = createServer(async (req, res) => {
    const isBelow = req.url?.startsWith('/usher/')
    if (!isBelow && !passesOn) return void res.writeHead(404).end()
    const path = isBelow ? req.url?.slice('/usher'.length) : req.url
    const answer = await fetch(target + path, { method: req.method ?? 'GET' })
    res.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(await answer.text())
  })
  const { url, close } = await listenOnLoopback(proxy)
  onTestFinished(close)
  const publicUrl = `${url}/usher`
  target = (await ownApp({ publicUrl })).url
  const look = async () =>
    (await checkPublicUrl({ publicUrl, database: { kind: 'embedded', dataDir: 'none' }, oauth: true })).find(
      ({ check }) => check === 'oauth',
    )
  expect(await look()).toMatchObject({
    status: 'failed',
    fix: expect.stringMatching(
      'pass /.well-known/oauth-protected-resource/usher/api/mcp/connect and /.well-known/oauth-authorization-server/usher/oauth on',
    ),
  })
  passesOn = true
  expect(await look()).toMatchObject({ status: 'ok' })
})
