// The client of docs/guides/typescript-client.md, with types from the document: what is right compiles and works, also on a network that
// breaks, and what is wrong does not compile.

import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import openapiTs, { astToString } from 'openapi-typescript'
import { beforeAll, expect, test } from 'vitest'
import { describeApi } from '../../../src/http/openapi/document.ts'
import { operations } from '../../../src/operations/index.ts'
import { fencesOf, savePrograms } from '../../docs/samples.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { rest } from '../../support/rest.ts'
import { behindTrouble, errorPage, lostAnswer, lostRequest } from '../../support/trouble.ts'

const folder = join(import.meta.dirname, 'clients')
const generated = join(folder, 'generated')

beforeAll(async () => {
  rmSync(generated, { recursive: true, force: true })
  mkdirSync(generated)
  const document = JSON.parse(JSON.stringify(describeApi(operations)))
  writeFileSync(join(generated, 'usher-api.ts'), astToString(await openapiTs(document)))
  savePrograms(fencesOf(readFileSync('docs/guides/typescript-client.md', 'utf8')), generated)
})

test('a story compiles, and a list of mistakes does not', async () => {
  const tsc = join(import.meta.dirname, '../../../node_modules/.bin/tsc')
  // More checkers would each check what the files share.
  const { stdout } = await promisify(execFile)(tsc, ['--project', folder, '--checkers', '1']).catch((failed) => failed)
  expect(stdout).toBe('')
})

test('it registers guests once and checks one in, while requests and answers get lost', async () => {
  // Not by its name: the types that it imports are generated.
  const { tell } = await import(join(folder, 'story.ts'))
  const organisation = await createOrganisation()
  const { id: eventId, ticketTypeId } = await organisation.event()
  const key = await organisation.key()
  const url = await behindTrouble(lostRequest, lostAnswer, errorPage)
  const told = await tell({ url, key, eventId, ticketTypeId })
  expect(told).toEqual({
    order: 'completed',
    group: 2,
    guests: ['Annie Easley', 'Melba Roy', 'Mary Jackson'],
    arrival: 'accepted',
    again: 'already_checked_in',
  })
  const { body } = await rest(key)('GET', `/attendees?event_id=${eventId}`)
  expect(body.data.length, 'none is registered twice').toBe(3)
})
