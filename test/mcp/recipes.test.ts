// The programs of docs/mcp.md, run as they stand but for the address and the key.

import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, inject, test } from 'vitest'
import { createOrganisation } from '../support/organisation.ts'
import { recipes } from '../support/recipes.ts'

const run = promisify(execFile)
const programs = recipes('js')

test('there is a program for each generation of the SDK', () => {
  expect(programs.map((program) => /@modelcontextprotocol\/\w+/.exec(program)?.[0])).toEqual([
    '@modelcontextprotocol/client',
    '@modelcontextprotocol/sdk',
  ])
})

test.each(programs)('program %# lists the published events', async (program) => {
  const organisation = await createOrganisation()
  await organisation.event()
  const key = await organisation.key('events:read', 'checkin:write')
  const filledIn = program.replaceAll('PUBLIC_URL', inject('apiUrl')).replaceAll('KEY', key)
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', filledIn])
  expect(stdout).toBe("[ 'Test event' ]\n")
})
