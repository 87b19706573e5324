// What of the official conformance suite says nothing about Usher, and why. The suite is made for SDKs: most of its
// scenarios call tools, prompts and resources that a server made for it would have. Usher has its operations as tools, and a few
// prompts and guides. Each entry says what the suite reports in consequence, so an entry whose reason has gone is noticed.

import type { Revision } from '../support/conformance-suite.ts'

type Inapplicable = {
  because: string
  reported: RegExp
  /** Where the scenario applies in the other revision. */
  only?: Revision
  scenarios: string[]
}

const inapplicable: Inapplicable[] = [
  {
    because: "it calls a tool of the suite's own reference server",
    reported: /Unknown tool|Tool 'json_schema_2020_12_tool' not found/,
    scenarios: [
      'tools-call-simple-text',
      'tools-call-image',
      'tools-call-audio',
      'tools-call-embedded-resource',
      'tools-call-mixed-content',
      'tools-call-error',
      'tools-call-with-progress',
      'json-schema-2020-12',
    ],
  },
  {
    because: 'it calls a tool that asks the client for something, and no tool of Usher asks back',
    reported: /Unknown tool|InputRequiredResult/,
    scenarios: [
      'tools-call-sampling',
      'tools-call-elicitation',
      'elicitation-sep1034-defaults',
      'elicitation-sep1330-enums',
      'input-required-result-basic-elicitation',
      'input-required-result-basic-sampling',
      'input-required-result-basic-list-roots',
      'input-required-result-request-state',
      'input-required-result-multiple-input-requests',
      'input-required-result-multi-round',
      'input-required-result-missing-input-response',
      'input-required-result-result-type',
      'input-required-result-tampered-state',
      'input-required-result-capability-check',
      'input-required-result-ignore-extra-params',
      // This one passes, as it would with any error: the tool it means to test is unknown.
      'input-required-result-validate-input',
    ],
  },
  {
    because: "it reads a resource of the suite's own reference server",
    reported: /Resource not found/,
    scenarios: ['resources-read-text', 'resources-read-binary', 'resources-templates-read'],
  },
  {
    because: 'the guides are the same for as long as the server runs',
    reported: /Method not found/,
    scenarios: ['resources-subscribe', 'resources-unsubscribe'],
  },
  {
    because: "it gets a prompt of the suite's own reference server",
    reported: /Unknown prompt/,
    scenarios: [
      'prompts-get-simple',
      'prompts-get-with-args',
      'prompts-get-embedded-resource',
      'prompts-get-with-image',
      'input-required-result-non-tool-request',
    ],
  },
  {
    because: 'the arguments of prompts are names and free text, of which Usher completes nothing',
    reported: /Method not found/,
    scenarios: ['completion-complete'],
  },
  {
    because: 'Usher sends no log messages to clients',
    reported: /Method not found/,
    scenarios: ['logging-set-level', 'tools-call-with-logging'],
  },
  {
    because: 'Usher keeps no sessions, which this revision leaves to the server',
    reported: /did not (return an MCP-Session-Id|provide session ID)/,
    only: '2025-11-25',
    scenarios: ['server-session-lifecycle', 'server-sse-polling', 'server-sse-multiple-streams'],
  },
  {
    because: 'no tool of Usher takes an argument from a header of its own (x-mcp-header)',
    reported: /no tool with x-mcp-header annotations/,
    scenarios: ['http-custom-header-server-validation'],
  },
]

/** The scenarios of a revision that do not apply, with the reason of each. */
export function inapplicableIn(revision: Revision): Map<string, Inapplicable> {
  return new Map(
    inapplicable
      .filter(({ only }) => only === undefined || only === revision)
      .flatMap((reason) => reason.scenarios.map((scenario) => [scenario, reason])),
  )
}

/** Checks that do not apply, in scenarios that do. */
export const inapplicableChecks: Array<{ scenario: string; because: string; reported: RegExp; checks: string[] }> = [
  {
    scenario: 'server-stateless',
    because: "it calls a tool of the suite's own reference server",
    reported: /Not testable: server does not list the diagnostic tool/,
    checks: [
      'sep-2575-server-rejects-undeclared-capability',
      'sep-2575-missing-capability-http-400',
      'sep-2575-http-server-no-independent-requests-on-stream',
      'sep-2575-server-no-log-without-loglevel',
    ],
  },
  {
    scenario: 'server-stateless',
    because: 'tools and prompts of a key change only with its scopes',
    reported: /did not declare (tools|prompts)\.listChanged capability/,
    checks: [
      'sep-2575-server-sends-prompts-list-changed-on-subscription',
      'sep-2575-server-sends-tools-list-changed-on-subscription',
    ],
  },
]

/** Scenarios of extensions, which no revision demands. Usher declares none, so these are not run. */
export const extensionScenarios = [
  // io.modelcontextprotocol/tasks: every tool answers at once.
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-status-notifications',
  'tasks-required-task-error',
  'tasks-mrtr-composition',
  // Skills (SEP-2640): read as resources; the guides are no skills.
  'sep-2640-skills-directory',
  'sep-2640-skills-enumeration',
  'sep-2640-skills-manifest',
]
