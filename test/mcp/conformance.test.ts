// The official conformance suite against POST /api/mcp, in both generations of the protocol. Which scenarios there are, it
// says itself: a new one in an update is run, and fails here or passes. What does not apply is listed beside this file.

import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest'
import { type Check, listScenarios, type Revision, runScenarios } from '../support/conformance-suite.ts'
import { headerAddingProxy } from '../support/header-adding-proxy.ts'
import { bearing, clients, post, toolCall } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'
import { extensionScenarios, inapplicableChecks, inapplicableIn } from './inapplicable-scenarios.ts'

const revisions: Revision[] = ['2025-11-25', '2026-07-28']
const scenarios = await listScenarios()
const scenariosIn = (revision: string) =>
  scenarios.filter(({ belongsTo }) => belongsTo.includes(revision)).map(({ name }) => name)

/** The check beside most scenarios' own: that every message is what the revision's schema allows. */
const isOfTheWire = ({ id }: Check) => id.startsWith('wire-schema')

/** The suite cannot send an API key. */
async function keyAddingProxy() {
  const organisation = await createOrganisation()
  return headerAddingProxy(inject('apiUrl'), bearing(await organisation.key()).headers)
}

describe.each(revisions)('%s', (revision) => {
  const inapplicable = inapplicableIn(revision)
  const inSuite = scenariosIn(revision)
  let reports: Map<string, Check[]>

  beforeAll(async () => {
    const proxy = await keyAddingProxy()
    reports = await runScenarios(`${proxy.url}/api/mcp`, revision).finally(proxy.close)
  })

  test.each(inSuite.filter((name) => !inapplicable.has(name)))('%s', (scenario) => {
    const checks = reports.get(scenario) ?? []
    const excused = inapplicableChecks.filter((entry) => entry.scenario === scenario)

    // The suite itself lets warnings and skipped checks pass. Here they want a reason as well.
    const unmet = checks.filter(({ status }) => status !== 'SUCCESS' && status !== 'INFO')
    expect(Object.fromEntries(unmet.map((check) => [check.id, saidBy(check)]))).toEqual(
      Object.fromEntries(
        excused.flatMap((entry) => entry.checks.map((check) => [check, expect.stringMatching(entry.reported)])),
      ),
    )
    expect(checks.filter((check) => !isOfTheWire(check) && check.status === 'SUCCESS')).not.toEqual([])
  })

  test.each(
    inSuite.flatMap((scenario): Array<[string, string, RegExp]> => {
      const entry = inapplicable.get(scenario)
      return entry ? [[scenario, entry.because, entry.reported]] : []
    }),
  )('%s does not apply: %s', (scenario, _because, reported) => {
    const checks = reports.get(scenario) ?? []
    expect(checks.map(saidBy).join('\n')).toMatch(reported)
    // What Usher does not have, it says it has not in messages that conform.
    expect(checks.filter((check) => isOfTheWire(check) && check.status !== 'SUCCESS')).toEqual([])
  })
})

test('every scenario of the suite is run, or is one of the extensions listed', () => {
  const run = new Set(revisions.flatMap(scenariosIn))
  const notRun = scenarios.map(({ name }) => name).filter((name) => !run.has(name))
  expect(notRun.toSorted()).toEqual(extensionScenarios.toSorted())
  expect(notRun.toSorted()).toEqual(scenariosIn('extension').toSorted())
})

test('nothing is listed that the suite no longer has', () => {
  const listed = [
    ...revisions.flatMap((revision) => [...inapplicableIn(revision).keys()]),
    ...inapplicableChecks.map(({ scenario }) => scenario),
  ]
  expect(revisions.flatMap(scenariosIn)).toEqual(expect.arrayContaining(listed))
})

// The suite forges both headers in one request, so it would not notice if one of them were put right on the way.
test.each([
  [{}, 200],
  [{ Host: 'evil.example' }, 403],
  [{ Origin: 'https://evil.example' }, 403],
])('the proxy adds the key and hides nothing from the server: %j is answered %i', async (forged, expected) => {
  const proxy = await keyAddingProxy()
  onTestFinished(proxy.close)
  const headers = { 'Content-Type': 'application/json', ...forged }
  const { status } = await post(toolCall('get_api_key'), headers, { apiUrl: proxy.url })
  expect(status).toBe(expected)
})

test.each(clients)(
  '$client speaking $revision is offered tools, prompts and resources, and no extension',
  async ({ connect }) => {
    const organisation = await createOrganisation()
    const { capabilities } = await connect(await organisation.key())
    expect(capabilities).toEqual({ tools: {}, prompts: {}, resources: {} })
  },
)

function saidBy({ errorMessage, details }: Check): string {
  return [errorMessage, JSON.stringify(details)].join(' ')
}
