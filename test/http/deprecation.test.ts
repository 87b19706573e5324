// An operation that ends, on a server whose list of operations has one: today's has none. The promise is docs/reference/versions.md.

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import type { OpenApiDocument } from '../../src/http/openapi/document.ts'
import { operations } from '../../src/operations/index.ts'
import type { Operation } from '../../src/operations/operation.ts'
import { changesIn, subjectsOf } from '../support/changelog.ts'
import { connectV1 } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'
import { ownApp } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'
import { describedOperations } from './openapi/support.ts'

const ending = 'list_ticket_types'
const deprecated = { since: '2027-03-01', sunset: '2028-03-01', instead: 'get_event' }
const withOne = operations.map((each): Operation => (each.name === ending ? { ...each, deprecated } : each))

/** Why an operation may not end as it says. */
const problemsOf = (all: readonly Operation[], announced: Set<string>) =>
  all.flatMap(({ name, deprecated }) => {
    if (deprecated === undefined) return []
    const [since, sunset] = [new Date(deprecated.since), new Date(deprecated.sunset)]
    since.setUTCFullYear(since.getUTCFullYear() + 1)
    return [
      ...(sunset >= since ? [] : [`${name} ends within a year`]),
      ...(all.some((other) => other.name === deprecated.instead) ? [] : [`${name} has nothing in its place`]),
      ...(announced.has(name) ? [] : [`${name} is not in the changelog`]),
    ]
  })

test('its answers and refusals carry Deprecation, Sunset and a link that leads to the changelog', async () => {
  const organisation = await createOrganisation()
  const { url } = await ownApp({ operations: withOne })
  const { id } = await organisation.event()
  const path = `/events/${id}/ticket-types`
  const answers = [
    await rest(await organisation.key('events:read'), url)('GET', path),
    await rest(await organisation.key('checkin:write'), url)('GET', path),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 403])
  for (const { headers } of answers) {
    expect(headers.get('deprecation')).toBe('@1803859200')
    expect(headers.get('sunset')).toBe('Wed, 01 Mar 2028 00:00:00 GMT')
    const [, link = '', attributes] = /^<(.+)>(; .+)$/.exec(headers.get('link') ?? '') ?? []
    expect(attributes).toBe('; rel="deprecation"; type="text/html"')
    const page = await fetch(new URL(link, `${url}/api/v1${path}`))
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<h1')])
  }
  const other = await rest(await organisation.key('events:read'), url)('GET', `/events/${id}`)
  expect([other.status, other.headers.has('deprecation'), other.headers.has('link')]).toEqual([200, false, false])
})

test('OpenAPI marks it, and both OpenAPI and its tool say until when and what to use', async () => {
  const { url } = await ownApp({ operations: withOne })
  const words = 'Deprecated since 2027-03-01 and ends on 2028-03-01: use get_event. '
  const described = describedOperations((await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument)
  const marked = [...described.values()].filter((each) => 'deprecated' in each || each.description.startsWith(words))
  expect(marked).toMatchObject([{ operationId: ending, deprecated: true, description: expect.stringContaining(words) }])
  const { tools } = await connectV1(await (await createOrganisation()).key(), url)
  expect(tools.filter(({ description }) => description?.startsWith(words)).map(({ name }) => name)).toEqual([ending])
})

test('it stays for a year at least, names what takes its place, and is in the changelog', () => {
  const changes = changesIn(readFileSync('docs/reference/changelog.md', 'utf8'))
  expect(problemsOf(operations, subjectsOf(changes, 'Deprecated'))).toEqual([])
  const hasty = { since: '2027-03-01', sunset: '2028-02-29', instead: 'get_everything' }
  expect(problemsOf([{ ...(operations[0] as Operation), deprecated: hasty }], new Set())).toHaveLength(3)
})
