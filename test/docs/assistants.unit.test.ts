// docs/guides/assistants and server.json against what reads them: configurations parse, keys have scopes that exist, names are the real
// ones. samples.test.ts runs the programs.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import * as z from 'zod'
import packageJson from '../../package.json' with { type: 'json' }
import { prompts } from '../../src/http/mcp/prompts.ts'
import { errorCodes } from '../../src/operations/error-codes.ts'
import { operations } from '../../src/operations/index.ts'
import { scopes, toolsets } from '../../src/operations/operation.ts'

const repository = join(import.meta.dirname, '../..')
const read = (path: string) => readFileSync(join(repository, path), 'utf8')
const pages = globSync('docs/guides/assistants/*.md', { cwd: repository }).map(read)
const guide = read('docs/guides/assistants/README.md')

const blocks = (language: string): string[] =>
  pages.flatMap((page) =>
    [...page.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(([, block = '']) => block),
  )

test.each(blocks('json').filter((block) => block.includes('PUBLIC_URL')))(
  'the configuration %# names the server, with a key or to sign in',
  (block) => {
    expect(block).toMatch(
      /"PUBLIC_URL\/api\/mcp".*Authorization.*(Bearer|USHER_AUTHORIZATION)|"PUBLIC_URL\/api\/mcp\/connect"/s,
    )
  },
)

test('the configuration of Codex is TOML of a table and strings', () => {
  const [block = '', ...others] = blocks('toml')
  expect(others).toEqual([])
  const [table, ...lines] = block.trim().split('\n')
  expect(table).toBe('[mcp_servers.usher]')
  const entries = lines.map((line) => line.split(' = ')).map(([name, value = '']) => [name, JSON.parse(value)])
  expect(Object.fromEntries(entries)).toEqual({ url: 'PUBLIC_URL/api/mcp', bearer_token_env_var: 'USHER_KEY' })
})

test('the key of each client has some of the scopes', () => {
  const keys = [
    ...pages.join('').matchAll(/npx usher keys create --organisation demo --name "[^"]+" --scopes ([\w:,]+)/g),
  ]
  expect(keys.length).toBeGreaterThanOrEqual(7)
  for (const [command, list = ''] of keys) {
    const chosen = list.split(',')
    expect(scopes, command).toEqual(expect.arrayContaining(chosen))
    expect(chosen.length, command).toBeLessThan(scopes.length)
  }
})

test('the guide lists every operation that a person confirms', () => {
  const [, section = ''] = guide.split('## Confirm what cannot be undone')
  for (const { name } of operations.filter(({ confirmed }) => confirmed)) expect(section).toContain(`\`${name}\``)
})

test('the guide lists every toolset', () => {
  for (const name of ['default', 'all', ...Object.keys(toolsets)]) expect(guide).toContain(`\n| \`${name}\` | `)
})

test('the guide names every prompt with its scopes', () => {
  for (const { name, scopes } of prompts) expect(guide).toContain(`\`${name}\` (${scopes.join(', ')})`)
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
    ) + errorCodes.join(' ')
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
