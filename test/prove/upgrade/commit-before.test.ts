// What integrators had with the commit before, on the schema of now: its API, as while a new one is deployed, and its calls to the API of now,
// by the promise of docs/reference/versions.md. A break that is meant is a new line below "Removed" in docs/reference/changelog.md.

import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import * as z from 'zod'
import { describeApi } from '../../../src/http/openapi/document.ts'
import { freePort } from '../../../src/local/ports.ts'
import { operations } from '../../../src/operations/index.ts'
import type { Operation } from '../../../src/operations/operation.ts'
import { functionsIn } from '../../database/catalogue.ts'
import { type Change, changesIn, subjectsOf } from '../../support/changelog.ts'
import { connectV1 } from '../../support/mcp.ts'
import { validator } from '../../support/schema-validators.ts'
import { startSupabaseGateway } from '../../support/supabase-gateway.ts'
import { spawnProgram, untilHealthy } from '../stack.ts'
import { commitBefore, repository, unpack } from './versions.ts'

const before = commitBefore()

describe.skipIf(before === undefined)(`after ${before?.slice(0, 8) ?? 'no commit that this clone has'}`, () => {
  const ends: (() => unknown)[] = []
  afterAll(async () => {
    for (const end of ends.reverse()) await end()
  })
  let old: Version
  let oldUrl: string
  let changes: Change[]
  let removed: Set<string>
  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'usher-test-'))
    ends.push(() => rm(folder, { recursive: true, force: true }))
    const code = await unpack(before as string, join(folder, 'code'))
    old = await versionIn(code)
    oldUrl = await startApi(code, ends)
    const known = new Set(changesIn(changelogIn(code)).map(({ text }) => text))
    changes = changesIn(changelogIn(repository)).filter(({ text }) => !known.has(text))
    removed = subjectsOf(changes, 'Removed')
  })
  const kept = () => old.operations.filter(({ name }) => !removed.has(name))

  test.each([
    ['its API answers each operation on the schema of now', () => oldUrl],
    ['each of its calls is answered by the API of now as before', () => inject('apiUrl')],
  ])('%s', async (_, url) => {
    const organisation = await old.createOrganisation()
    const key = await organisation.key()
    const problems: string[] = []
    for (const operation of kept()) {
      const event = await organisation.event()
      const ofEvent = 'event_id' in operation.input.shape && { event_id: event.id }
      const given = Object.entries({ ...ofEvent, ...(await old.examples[operation.name]?.(event)) })
      const { method, path, body, headers } = old.restRequestOf(
        operation.name,
        Object.fromEntries(given.filter(([name]) => !removed.has(name))),
      )
      const answer = await fetch(`${url()}/api/v1${path}`, {
        method,
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers },
        body: body === undefined ? null : JSON.stringify(body),
      })
      const json = await answer.json()
      const { valid, errorMessage } = validator.getValidator(shapeOf(operation, removed))(json)
      if (!answer.ok) problems.push(`${operation.name} ${answer.status} ${JSON.stringify(json)}`)
      else if (!valid) problems.push(`${operation.name} ${errorMessage}`)
    }
    expect(problems).toEqual([])
  })

  test('each argument that its API sends is one of the function of now, which needs no other', async () => {
    const functions = new Map((await functionsIn('api')).map((each) => [each.name, each]))
    const wrong = kept().flatMap(({ name, input }) => {
      const { arguments: taken = [], optional = [] } = functions.get(name) ?? {}
      const sent = Object.keys(input.shape).filter((argument) => !removed.has(argument))
      const unknown = sent.filter((argument) => !taken.includes(argument))
      const needed = taken.filter((argument) => !optional.includes(argument) && !sent.includes(argument))
      return [...unknown, ...needed].map((argument) => `${name} ${argument}`)
    })
    expect(wrong).toEqual([])
  })

  test('its tools are listed and called on the schema of now', async () => {
    const organisation = await old.createOrganisation()
    const event = await organisation.event()
    const mcp = await connectV1(await organisation.key(), oldUrl)
    expect(mcp.tools.length).toBeGreaterThan(20)
    expect(await mcp.call('list_events')).toMatchObject({ data: [{ name: 'Test event' }] })
    const guest = { event_id: event.id, ticket_type_id: event.ticketTypeId, name: 'Ada', email: 'ada@example.com' }
    expect(await mcp.call('register_attendee', guest)).toMatchObject({ data: { status: 'completed' } })
  })

  test('what it had under other names, and what is new, is in the changelog of integrators', async () => {
    const told = new Set(changes.flatMap(({ names }) => names))
    const now = namesIn(describeApi(operations))
    const untold = [...namesIn(old.describeApi(old.operations))].flatMap(([owner, names]) => {
      const current = now.get(owner)
      if (current === undefined) return removed.has(owner) ? [] : [`- ${owner}`]
      return [
        ...[...current.difference(names).difference(told)].map((name) => `+ ${owner} ${name}`),
        ...[...names.difference(current).difference(removed)].map((name) => `- ${owner} ${name}`),
      ]
    })
    expect(untold, 'Name each in docs/reference/changelog.md, those that are gone (-) below Removed.').toEqual([])
  })
})

function changelogIn(code: string): string {
  const file = join(code, 'docs/reference/changelog.md')
  return existsSync(file) ? readFileSync(file, 'utf8') : ''
}

type Version = typeof import('../../../src/operations/index.ts') &
  Pick<typeof import('../../../src/http/openapi/document.ts'), 'describeApi'> &
  typeof import('../../../scripts/support/rest-request.ts') &
  Pick<typeof import('../../support/operation-arguments.ts'), 'examples'> &
  Pick<typeof import('../../support/organisation.ts'), 'createOrganisation'>

/** What the code of a version brings to a test of its own. A file that it has elsewhere is that of now. */
async function versionIn(code: string): Promise<Version> {
  const files = [
    ...['src/operations/index.ts', 'src/http/openapi/document.ts', 'scripts/support/rest-request.ts'],
    ...['test/support/operation-arguments.ts', 'test/support/organisation.ts'],
  ]
  const from = (file: string) => import(/* @vite-ignore */ join(existsSync(join(code, file)) ? code : repository, file))
  return Object.assign({}, ...(await Promise.all(files.map(from))))
}

/** As behind a load balancer: another process, of its code, that delivers nothing. @returns where it listens. */
async function startApi(code: string, ends: (() => unknown)[]): Promise<string> {
  const apiKey = 'sb_publishable_of_the_test'
  // The database that all tests share stays one of no installation.
  const isNoAnnouncement = (path: string) => path !== '/rpc/announce_installation'
  const gateway = await startSupabaseGateway(inject('dataApiUrl'), apiKey, 0, isNoAnnouncement)
  ends.push(gateway.close)
  const port = await freePort()
  const child = spawnProgram(['scripts/dev-api.ts'], {
    folder: code,
    stdio: 'ignore',
    env: {
      PORT: `${port}`,
      LOG_LEVEL: 'fatal',
      DELIVERIES: 'false',
      SUPABASE_URL: gateway.url,
      SUPABASE_PUBLISHABLE_KEY: apiKey,
      SUPABASE_JWT_SECRET: inject('jwtSecret'),
    },
  })
  const ended = once(child, 'exit')
  ends.push(() => child.kill('SIGKILL') && ended)
  await untilHealthy(`http://127.0.0.1:${port}`, () => child.exitCode !== null)
  return `http://127.0.0.1:${port}`
}

/** Of an answer what the promise keeps: names and types. New fields and new values of an enum may come. */
function shapeOf({ output }: Operation, removed: Set<string>) {
  return z.toJSONSchema(output, {
    override({ jsonSchema }) {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
      delete jsonSchema.enum
      jsonSchema.required = (jsonSchema.required ?? []).filter((name) => !removed.has(name))
    },
  }) as never
}

type Document = ReturnType<typeof describeApi>
type Described = { operationId: string; parameters?: { name: string }[] }

/** The names of operations and notification types, and those in each query, body, object and error. */
function namesIn({ paths = {}, webhooks = {}, components = {} }: Document): Map<string, Set<string>> {
  const described = Object.values(paths).flatMap((methods) => Object.values(methods as Record<string, Described>))
  const schemas = Object.entries((components.schemas ?? {}) as Record<string, { properties?: object }>)
  return new Map([
    ['operation', new Set(described.map(({ operationId }) => operationId))],
    ['notification', new Set(Object.keys(webhooks))],
    ...described.map((each) => [each.operationId, new Set(each.parameters?.map(({ name }) => name))] as const),
    ...schemas.map(([owner, schema]) => {
      const enums = [...JSON.stringify(schema).matchAll(/"enum":(\[[^\]]*\])/g)]
      const values = enums.flatMap(([, list = '']) => JSON.parse(list) as string[])
      return [owner, new Set([...Object.keys(schema.properties ?? {}), ...values])] as const
    }),
  ])
}
