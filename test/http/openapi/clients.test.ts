// Clients generated from the document: what is right compiles and works, what is wrong does not compile.

import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createClient } from '@hey-api/openapi-ts'
import openapiTs, { astToString } from 'openapi-typescript'
import { beforeAll, expect, inject, test } from 'vitest'
import { describeApi } from '../../../src/http/openapi/document.ts'
import { operations } from '../../../src/operations/index.ts'
import { createOrganisation } from '../../support/organisation.ts'
import type { Story } from './clients/story.ts'

const folder = join(import.meta.dirname, 'clients')
const generated = join(folder, 'generated')

beforeAll(async () => {
  rmSync(generated, { recursive: true, force: true })
  const document = JSON.parse(JSON.stringify(describeApi(operations)))
  await createClient({
    input: document,
    output: { path: join(generated, 'hey-api'), module: { extension: '.ts' } },
    plugins: ['@hey-api/typescript', '@hey-api/sdk', '@hey-api/client-fetch'],
    logs: { level: 'silent' },
  })
  writeFileSync(join(generated, 'openapi-typescript.ts'), astToString(await openapiTs(document)))
})

test('a story compiles with each, and a list of mistakes does not', async () => {
  const tsc = join(import.meta.dirname, '../../../node_modules/.bin/tsc')
  // More checkers would each check what the files share.
  const { stdout } = await promisify(execFile)(tsc, ['--project', folder, '--checkers', '1']).catch((failed) => failed)
  expect(stdout).toBe('')
})

test.each(['openapi-fetch', 'hey-api'])('%s registers guests and checks one in', async (name) => {
  const { tell } = (await import(`./clients/${name}.ts`)) as { tell: Story }
  const organisation = await createOrganisation()
  const { id: eventId, ticketTypeId } = await organisation.event()
  const told = await tell({ apiUrl: inject('apiUrl'), key: await organisation.key(), eventId, ticketTypeId })
  expect(told).toEqual({ events: 1, order: 'completed', group: 1, arrival: 'accepted', again: 'already_checked_in' })
})
