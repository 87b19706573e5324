// docs/mcp.md and server.json against what reads them: configuration parses, keys have scopes that exist, names are the real ones.

import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as z from 'zod'
import packageJson from '../../package.json' with { type: 'json' }
import { prompts } from '../../src/http/mcp/prompts.ts'
import { operations } from '../../src/operations/index.ts'
import { scopes } from '../../src/operations/operation.ts'
import { recipes } from '../support/recipes.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const guide = read('docs/mcp.md')

test.each(recipes('json'))('the configuration %# is JSON that names the server and the key', (block) => {
  const server = Object.values(Object.values(z.looseObject({}).parse(JSON.parse(block))).at(-1) as object)[0]
  const text = JSON.stringify(server)
  expect(text).toContain('PUBLIC_URL/api/mcp')
  expect(text).toMatch(/Authorization.*(Bearer|USHER_AUTHORIZATION)/)
})

test('the configuration of Codex is TOML of a table and strings', () => {
  const [block = '', ...others] = recipes('toml')
  expect(others).toEqual([])
  const [table, ...lines] = block.trim().split('\n')
  expect(table).toBe('[mcp_servers.usher]')
  const entries = lines.map((line) => line.split(' = ')).map(([name, value = '']) => [name, JSON.parse(value)])
  expect(Object.fromEntries(entries)).toEqual({ url: 'PUBLIC_URL/api/mcp', bearer_token_env_var: 'USHER_KEY' })
})

test('each recipe has a key of its own, with some of the scopes', () => {
  const keys = [...guide.matchAll(/npx usher keys create --organisation demo --name "[^"]+" --scopes (\S+)/g)]
  expect(keys.length).toBeGreaterThanOrEqual(7)
  for (const [command, list = ''] of keys) {
    const chosen = list.split(',')
    expect(scopes, command).toEqual(expect.arrayContaining(chosen))
    expect(chosen.length, command).toBeLessThan(scopes.length)
  }
})

test('the guide lists every operation that a person confirms', () => {
  const [, section = ''] = guide.split('## What a person confirms')
  for (const { name } of operations.filter(({ confirmed }) => confirmed)) expect(section).toContain(`\`${name}\``)
})

test('the guide names every prompt with its scopes', () => {
  for (const prompt of prompts) {
    expect(guide.replaceAll(/\s+/g, ' ')).toContain(`\`${prompt.name}\` (${prompt.scopes.join(', ')})`)
  }
})

test('prompts name tools, arguments and values that exist', () => {
  const known =
    JSON.stringify(
      operations.map(({ name, scope, input, output }) => [
        name,
        scope,
        z.toJSONSchema(input, { io: 'input' }),
        z.toJSONSchema(output),
      ]),
    ) + read('docs/errors.md')
  for (const { steps } of prompts) {
    const named = steps({ name: 'x', event: 'x' }).match(/\b[a-z]+(_[a-z]+)+\b/g) ?? []
    expect(named.length).toBeGreaterThan(3)
    expect(named.filter((word) => !new RegExp(`\\b${word}\\b`).test(known) && word !== 'idempotency_key')).toEqual([])
  }
})

const Input = z.strictObject({
  description: z.string(),
  isRequired: z.boolean().optional(),
  isSecret: z.boolean().optional(),
  placeholder: z.string().optional(),
})
const variables = z.record(z.string(), Input)

test('server.json is what a registry takes', () => {
  const ServerJson = z.strictObject({
    $schema: z.literal('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'),
    name: z.string().regex(/^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/),
    title: z.string().max(100),
    description: z.string().min(1).max(100),
    version: z.literal(packageJson.version),
    remotes: z.tuple([
      z.strictObject({
        type: z.literal('streamable-http'),
        url: z.string().regex(/^https:\/\/\S+\/api\/mcp$/),
        variables,
        headers: z.tuple([Input.extend({ name: z.literal('Authorization'), value: z.string(), variables })]),
      }),
    ]),
  })
  const { remotes } = ServerJson.parse(JSON.parse(read('docs/reference/server.json')))
  const [
    {
      url,
      variables: inUrl,
      headers: [header],
    },
  ] = remotes
  const named = (text: string) => [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
  expect([named(url), named(header.value)]).toEqual([Object.keys(inUrl), Object.keys(header.variables)])
})
