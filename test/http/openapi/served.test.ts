// What is served without a key: the document, the page that shows it, and the front door.

import { expect, inject, test } from 'vitest'
import { guides } from '../../../src/http/guides.ts'
import { describeApi } from '../../../src/http/openapi/document.ts'
import { operations } from '../../../src/operations/index.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { ownApp } from '../../support/own-app.ts'
import { rest } from '../../support/rest.ts'
import { describedOperations } from './support.ts'

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(`${inject('apiUrl')}${path}`, { headers, redirect: 'manual' })

test('the document is served to anybody, and may be kept for a while', async () => {
  const response = await get('/openapi.json')
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('public, max-age=300')
  expect(await response.json()).toEqual(JSON.parse(JSON.stringify(describeApi(operations))))
})

test('where there is demo data, its examples are of that', async () => {
  const demo = { eventId: '01926b5c-0000-7000-8000-0000000000e1', ticketTypeId: '01926b5c-0000-7000-8000-0000000000t1' }
  const { url } = await ownApp({ demo })
  const text = await (await fetch(`${url}/openapi.json`)).text()
  const described = describedOperations(JSON.parse(text)).get('POST /events/{event_id}/registrations')
  expect(described?.parameters?.[0]).toMatchObject({ name: 'event_id', example: demo.eventId })
  const [first] = Object.values(described?.requestBody?.content['application/json']?.examples ?? {})
  expect(first?.value).toMatchObject({ ticket_type_id: demo.ticketTypeId })
})

test('its server is this one: every path of it wants a key', async () => {
  const { servers = [], paths = {} } = describeApi(operations)
  for (const path of Object.keys(paths)) {
    const url = `${servers[0]?.url}${path.replace(/\{\w+\}/g, '01926b5c-0000-7000-8000-000000000000')}`
    expect((await get(url)).status, url).toBe(401)
  }
})

test('below a public URL its links to guides are absolute', async () => {
  const { url } = await ownApp({ publicUrl: 'https://tickets.example.com/usher/' })
  const { servers, tags } = (await (await fetch(`${url}/openapi.json`)).json()) as ReturnType<typeof describeApi>
  expect(servers?.[0]?.url).toBe('/usher/api/v1')
  expect(tags?.map(({ externalDocs }) => URL.parse(externalDocs?.url ?? '')?.href)).toContain(
    'https://tickets.example.com/usher/docs/guides/exports',
  )
})

test('the headers that it declares are sent', async () => {
  const described = describedOperations(describeApi(operations))
  const send = rest(await (await createOrganisation()).key())
  const [body, once] = [{ name: 'Party' }, { 'Idempotency-Key': 'once' }]
  await send('POST', '/events', body, once)
  const { status, headers } = await send('POST', '/events', body, once)
  const declared = Object.keys(described.get('POST /events')?.responses[status]?.headers ?? {})
  expect(declared).toContain('Idempotent-Replayed')
  expect(declared.filter((name) => !headers.has(name))).toEqual([])

  const refused = await rest('no key')('GET', '/me')
  const challenge = Object.keys(described.get('GET /me')?.responses[refused.status]?.headers ?? {})
  expect(challenge.filter((name) => !refused.headers.has(name))).toEqual([])
})

test('the page may speak to this server alone, and runs no script that stands in it', async () => {
  const response = await get('/docs')
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  const policy = Object.fromEntries(
    (response.headers.get('content-security-policy') ?? '').split(';').map((directive) => {
      const [name = '', ...sources] = directive.trim().split(' ')
      return [name, sources]
    }),
  )
  expect(policy['default-src']).toEqual(["'none'"])
  expect(policy['script-src']).toEqual(["'self'"])
  expect(policy['connect-src']).toEqual(["'self'"])
  const allowed = ["'self'", "'none'", 'data:', 'blob:']
  expect(
    Object.values(policy)
      .flat()
      .filter((source) => !allowed.includes(source)),
  ).toEqual([])

  const html = await response.text()
  expect(html).not.toMatch(/<style|<script(?![^>]* src=)|\son\w+=/i)
})

const mediaTypes: Record<string, string> = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json; charset=utf-8',
}

test('all that the page is made of is here', async () => {
  const html = await (await get('/docs')).text()
  const links = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link = '']) => link)
  expect(links).toEqual(expect.arrayContaining(['docs/swagger-ui-bundle.js', 'docs/page.js', 'openapi.json']))
  for (const link of new Set(links)) {
    expect(link).toMatch(/^\w[\w.-]*(\/|$)/)
    const response = await get(`/${link}`)
    expect(response.status, link).toBe(200)
    const ending = /\.(\w+)$/.exec(link)?.[1] ?? 'html'
    expect(response.headers.get('content-type'), link).toBe(mediaTypes[ending])
  }
})

test('a browser finds the icon where it looks by itself', async () => {
  const response = await get('/favicon.ico')
  expect([response.status, response.headers.get('content-type')]).toEqual([200, mediaTypes.svg])
})

test('each chapter links to a guide', async () => {
  for (const { externalDocs } of describeApi(operations).tags ?? []) {
    const response = await get(externalDocs?.url ?? 'none')
    expect([response.status, response.headers.get('content-security-policy')], externalDocs?.url).toEqual([
      200,
      expect.stringContaining("script-src 'self'"),
    ])
  }
})

test('each page is there as Markdown at its address, and in the list for assistants', async () => {
  const list = await (await get('/llms.txt')).text()
  const links = [...list.matchAll(/^- \[.+\]\((docs\/.+\.md)\): .+$/gm)].map(([, link = '']) => link)
  expect(links).toEqual(guides.map(({ name }) => `docs/${name}.md`))
  const response = await get('/docs/guides/webhooks.md')
  expect(response.headers.get('content-type')).toBe('text/markdown; charset=utf-8')
  expect(await response.text()).toMatch(/^# Webhooks\n/)
})

test('its scripts and styles of ours ask nobody else, and its styles load nothing', async () => {
  for (const script of ['/docs/page.js', '/docs/guide.js']) {
    expect(await (await get(script)).text()).not.toMatch(/https?:|\/\/\w+\./)
  }
  expect(await (await get('/docs/page.js')).text()).toContain('validatorUrl: null')
  for (const sheet of ['/docs/page.css', '/docs/guide.css', '/docs/swagger-ui.css']) {
    const css = await (await get(sheet)).text()
    expect(css.length, sheet).toBeGreaterThan(100)
    expect(css, sheet).not.toMatch(/@import|url\((?!"?'?data:)/)
  }
})

test.each([
  '/docs/page.html',
  '/docs/package.json',
  '/docs/guide.html',
  '/docs/contribute/architecture',
  '/docs/contribute/architecture.md',
  '/docs/guides/..%2fsecurity',
  '/docs/swagger-ui-bundle.js.map',
  '/docs/%2e%2e%2fserver.ts',
  '/docs/..%2f..%2fpackage.json',
])('nothing else of its folders is served: %s', async (path) => {
  expect((await get(path)).status).toBe(404)
})

test.each([
  ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 302],
  ['*/*', 200],
  ['application/json', 200],
  ['text/plain', 200],
])('the front door answers Accept: %s with %i', async (accept, status) => {
  const response = await get('/', { Accept: accept })
  expect(response.status).toBe(status)
  expect(response.headers.get('vary')).toBe('Accept')
  if (status === 302) return expect(response.headers.get('location')).toBe('/docs')
  const { name, version, ...places } = (await response.json()) as Record<string, string>
  expect({ name, version }).toEqual({ name: 'Usher', version: expect.stringMatching(/^\d+\.\d+\.\d+$/) })
  expect(Object.keys(places)).toEqual(['documentation', 'openapi', 'rest', 'mcp', 'health'])
  for (const path of Object.values(places)) expect([200, 401], path).toContain((await get(path)).status)
})
