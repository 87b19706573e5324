// A client generated from the document: what is right compiles and works, what is wrong does not compile.

import { execFile } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import openapiTs, { astToString } from 'openapi-typescript'
import { beforeAll, expect, inject, test } from 'vitest'
import { describeApi } from '../../../src/http/openapi/document.ts'
import { operations } from '../../../src/operations/index.ts'
import { createOrganisation } from '../../support/organisation.ts'

const folder = join(import.meta.dirname, 'clients')
const generated = join(folder, 'generated')

beforeAll(async () => {
  rmSync(generated, { recursive: true, force: true })
  mkdirSync(generated)
  const document = JSON.parse(JSON.stringify(describeApi(operations)))
  writeFileSync(join(generated, 'openapi-typescript.ts'), astToString(await openapiTs(document)))
})

test('a story compiles, and a list of mistakes does not', async () => {
  const tsc = join(import.meta.dirname, '../../../node_modules/.bin/tsc')
  // More checkers would each check what the files share.
  const { stdout } = await promisify(execFile)(tsc, ['--project', folder, '--checkers', '1']).catch((failed) => failed)
  expect(stdout).toBe('')
})

test('it registers guests and checks one in', async () => {
  // Not by its name: the types that it imports are generated.
  const { tell } = await import(join(folder, 'openapi-fetch.ts'))
  const organisation = await createOrganisation()
  const { id: eventId, ticketTypeId } = await organisation.event()
  const told = await tell({ apiUrl: inject('apiUrl'), key: await organisation.key(), eventId, ticketTypeId })
  expect(told).toEqual({ events: 1, order: 'completed', group: 1, arrival: 'accepted', again: 'already_checked_in' })
})
