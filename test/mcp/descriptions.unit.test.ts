// A linter of what a model reads before it calls anything: the descriptions of tools and arguments, and the instructions.

import { expect, test } from 'vitest'
import * as z from 'zod'
import type { Caller } from '../../src/gateway/caller.ts'
import { fieldsOf } from '../../src/http/mcp/lean.ts'
import { getPrompt, prompts } from '../../src/http/mcp/prompts.ts'
import { isListed, waysTo, withWays } from '../../src/http/mcp/selection.ts'
import { instructions } from '../../src/http/mcp/server.ts'
import { argumentsOf, toTools } from '../../src/http/mcp/tools.ts'
import { errorCodes } from '../../src/operations/error-codes.ts'
import { operations as all } from '../../src/operations/index.ts'
import {
  errorsOf,
  isList,
  isRead,
  type Operation,
  type Scope,
  scopes,
  toolsets,
} from '../../src/operations/operation.ts'
import { notificationTypes } from '../../src/operations/webhook-endpoints.ts'
import { countTokens } from '../support/tokens.ts'

const operations = all.filter(({ mcp }) => mcp !== false)
const tools = toTools(operations)
const names = new Set(operations.map(({ name }) => name))

/** Every text of a schema, with the path at which it stands. */
function textsIn(schema: unknown, path: string): [string, string][] {
  if (typeof schema !== 'object' || schema === null) return []
  return Object.entries(schema).flatMap(([name, value]): [string, string][] =>
    name === 'description' && typeof value === 'string' ? [[path, value]] : textsIn(value, `${path}.${name}`),
  )
}
const texts = tools.flatMap(({ name, description = '', inputSchema }): [string, string][] => [
  [name, description],
  ...textsIn(inputSchema, name),
])

test.each(tools.map(({ name, description = '' }) => [name, description]))('%s: %s', (name, description) => {
  const { scope } = operations.find((operation) => operation.name === name) as Operation
  expect(description).toMatch(scope === null ? / Needs no scope: any valid key\.$/ : new RegExp(` Needs ${scope}\\.$`))
  // A verb or a noun, and no more than is read at a glance.
  expect(description).toMatch(/^[A-Z][a-z-]+ /)
  expect(description.length).toBeGreaterThan(40)
  expect(countTokens(description)).toBeLessThanOrEqual(130)
})

test.each(texts)('%s: %s is made of sentences', (_path, text) => {
  expect(text).toMatch(/^\S.*[.]$/)
  expect(text).not.toMatch(/\s\s|\n| ,|\.\./)
  expect(countTokens(text)).toBeLessThanOrEqual(130)
  // What is told once, in the instructions, and what REST has as a header.
  expect(text).not.toMatch(/RFC 3339|next_cursor as cursor|Idempotency-Key|If-Match|header/)
})

test('a tool that a description, prompt, refusal or warning names is listed, or the way to it is said', () => {
  const says = (text = '') => {
    const words = new Set(text.match(/\b[a-z]+(_[a-z]+)+\b/g))
    return operations.filter(({ name }) => words.has(name))
  }
  for (const name of ['default', ...Object.keys(toolsets)]) {
    for (const readOnly of [false, true]) {
      for (const chosen of [scopes, ...scopes.map((scope) => [scope])] as Scope[][]) {
        const caller = { has: (scope: Scope | null) => scope === null || chosen.includes(scope) } as Caller
        const selection = { toolsets: [name], readOnly }
        const ways = waysTo(operations, caller, selection)
        const listed = operations.filter((tool) => caller.has(tool.scope) && isListed(tool, selection))
        const said = [
          ...toTools(listed, ways).map((tool) => JSON.stringify(tool)),
          ...prompts.map((prompt) => JSON.stringify(getPrompt(prompt.name, { event: 'x', name: 'x' }, ways))),
          ...operations.map((tool) => withWays({ message: 'No.', hint: `Call ${tool.name}.` }, ways).hint),
          ...operations.map((tool) => withWays<{ message: string }>({ message: `Use ${tool.name}.` }, ways).message),
        ]
        for (const text of said) {
          for (const tool of says(text)) {
            const way = `${tool.name} (is not listed, but can be called|needs a (key with|connection without))`
            if (!listed.includes(tool)) expect(text).toMatch(new RegExp(way))
          }
        }
      }
    }
  }
})

/** Every name of a field, an argument or a value that a tool may speak of. */
const namesInJson = (schema: unknown): string[] => JSON.stringify(schema).match(/[a-z]+(_[a-z0-9]+)+/g) ?? []

test('words with an underscore are names of tools, arguments, fields, values or error codes', () => {
  const known = new Set<string>([...names, ...errorCodes, ...namesInJson(notificationTypes), ...Object.keys(toolsets)])
  for (const operation of operations) {
    for (const name of namesInJson(z.toJSONSchema(operation.output))) known.add(name)
    for (const name of namesInJson(z.toJSONSchema(argumentsOf(operation), { io: 'input' }))) known.add(name)
  }
  for (const name of tools.flatMap(({ inputSchema }) => Object.keys(inputSchema.properties ?? {}))) known.add(name)
  // What only answers over MCP have, and how a client connects.
  for (const name of ['total_text', 'read_only']) known.add(name)
  for (const [path, text] of [['instructions', instructions], ...texts] as const) {
    for (const [word] of text.matchAll(/\b[a-z]+(_[a-z]+)+\b/g)) expect(known, `${path} names ${word}`).toContain(word)
  }
})

test('an error that a description speaks of is one that the operation answers', () => {
  for (const operation of operations) {
    for (const [, code = ''] of operation.description.matchAll(/\b[Oo]n ([a-z]+(?:_[a-z]+)+)\b/g)) {
      const own = [...errorsOf(operation), 'missing_scope'] as string[]
      expect(own, operation.name).toContain(code)
    }
  }
})

test('what an operation answers over MCP is made of fields that it has', () => {
  for (const operation of operations) {
    const schema = JSON.stringify(z.toJSONSchema(operation.output))
    for (const path of [
      ...(operation.lean ?? []),
      operation.leanItems?.list ?? '*',
      operation.leanItems?.path ?? '*',
    ]) {
      const [first = '', ...rest] = path.split('.')
      if (path === '*') continue
      if (path !== operation.leanItems?.path) expect(fieldsOf(operation), operation.name).toContain(first)
      for (const name of rest) expect(schema, `${operation.name} ${path}`).toContain(`"${name}":{`)
    }
  }
})

test('a list says which of its fields it answers: whole objects are asked for', () => {
  for (const operation of operations.filter(isList)) expect(operation.lean, operation.name).toBeDefined()
})

test('a write that may not be taken back says to ask first', () => {
  const final = operations.filter(
    (operation) => !isRead(operation) && /permanently|for good|final/i.test(operation.description),
  )
  expect(final.length).toBeGreaterThan(5)
  for (const { name, description } of final) {
    expect(description, name).toMatch(/confirm|dry_run|can pause it instead/i)
  }
})

test('the instructions say where keys are made, which no tool does', () => {
  expect(instructions).toMatch(/npx usher keys create --name … .*--person …/)
})

test('the instructions fit beside the list', () => {
  expect(countTokens(instructions)).toBeLessThanOrEqual(750)
})
