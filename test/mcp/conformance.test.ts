// The official conformance suite against POST /api/mcp, in both generations of the protocol. Most of its scenarios call tools, prompts
// and resources of a reference server: of those, only the form of each message is tested here.

import { beforeAll, describe, expect, inject, test } from 'vitest'
import { type Check, type Revision, runScenarios } from '../support/conformance-suite.ts'
import { headerAddingProxy } from '../support/header-adding-proxy.ts'
import { bearing } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'

const ofBoth = ['tools-list', 'resources-list', 'prompts-list', 'dns-rebinding-protection']
const scenarios: [Revision, string[]][] = [
  ['2025-11-25', [...ofBoth, 'server-initialize', 'ping']],
  [
    '2026-07-28',
    [
      ...ofBoth,
      'server-stateless',
      'server-sse-multiple-streams',
      'sep-2164-resource-not-found',
      'caching',
      'http-header-validation',
      'input-required-result-unsupported-methods',
    ],
  ],
]

/** A tool of the reference server, and lists that do not change while Usher runs. */
const inapplicable = /does not list the diagnostic tool|did not declare (tools|prompts)\.listChanged capability/

/** The check beside most scenarios' own: that every message is what the revision's schema allows. */
const isOfTheWire = ({ id }: Check) => id.startsWith('wire-schema')

const unmet = (checks: Check[]) =>
  checks.filter(
    (check) => check.status !== 'SUCCESS' && check.status !== 'INFO' && !inapplicable.test(JSON.stringify(check)),
  )

describe.each(scenarios)('%s', (revision, names) => {
  let reports: Map<string, Check[]>

  beforeAll(async () => {
    // The suite cannot send an API key.
    const key = await (await createOrganisation()).key()
    const proxy = await headerAddingProxy(inject('apiUrl'), bearing(key).headers)
    reports = await runScenarios(`${proxy.url}/api/mcp`, revision).finally(proxy.close)
  })

  // The suite itself lets warnings and skipped checks pass.
  test.each(names)('%s', (name) => {
    const checks = reports.get(name) ?? []
    expect(unmet(checks)).toEqual([])
    expect(checks.filter((check) => !isOfTheWire(check) && check.status === 'SUCCESS')).not.toEqual([])
  })

  test('every message is what the schema allows, in the scenarios of the reference server as well', () => {
    const checks = [...reports.values()].flat().filter(isOfTheWire)
    expect(checks.length).toBeGreaterThan(20)
    expect(unmet(checks)).toEqual([])
  })
})
