// Calls operations with right arguments and whatever is not a valid key: each has to be refused for that and nothing else, in the same words,
// and to change nothing.

import { operations } from '../../../src/operations/index.ts'
import { type Operation, scopes } from '../../../src/operations/operation.ts'
import { examples } from '../../support/operation-arguments.ts'
import { createOrganisation, type TestEvent } from '../../support/organisation.ts'
import { fingerprint } from '../../support/rows-of.ts'
import { type Answer, type Arguments, ask, comparable, interfacesOf, refusalOf } from './ask.ts'
import { type Credential, credentialsOf, type Interface, withoutScope } from './credentials.ts'

export type Attempt = { operation: Operation; through: Interface; credential: Credential }

/** @param elsewhereUrl see `credentialsOf`. */
export async function createLockout(apiUrl: string, elsewhereUrl: string, chosen: readonly Operation[] = operations) {
  const organisation = await createOrganisation()
  const all = await credentialsOf(organisation.id, apiUrl, elsewhereUrl)
  const lacking = new Map(
    await Promise.all(
      scopes.map(async (scope) => [scope, await withoutScope(organisation.id, scope, apiUrl)] as const),
    ),
  )
  const attempts = chosen.flatMap((operation) =>
    [...all, ...((operation.scope && lacking.get(operation.scope)) ?? [])].flatMap((credential) =>
      interfacesOf(operation)
        .filter((through) => credential.to.includes(through))
        .map((through): Attempt => ({ operation, through, credential })),
    ),
  )

  return {
    attempts,
    /** @returns what is wrong. */
    async tryAll(): Promise<string[]> {
      const problems: string[] = []
      for (const [name, group] of Map.groupBy(attempts, ({ operation }) => operation.name)) {
        const example = examples[name] as (event: TestEvent) => Arguments | Promise<Arguments>
        const args = await example(await organisation.event())
        const before = await fingerprint(organisation.id)
        const said = new Map<string, string>()
        for (const attempt of group) {
          const { through, credential } = attempt
          const answer = await ask(through, apiUrl, credential.key, name, args)
          const what = `${name} over ${through} with ${credential.what}`
          problems.push(...judge(attempt, answer).map((problem) => `${what}: ${problem}`))
          // Whoever tries keys is not told which of them come near.
          const [alike, text] = [
            `${through} ${credential.code} ${credential.hint ?? ''}`,
            comparable(answer, credential.key ?? 'no key was sent'),
          ]
          if ((said.get(alike) ?? text) !== text)
            problems.push(
              `${what}: differs from another refusal with ${credential.code}: ${text}\n---\n${said.get(alike)}`,
            )
          said.set(alike, text)
        }
        const after = await fingerprint(organisation.id)
        const changed = Object.keys(after).filter((table) => after[table] !== before[table])
        if (changed.length > 0) problems.push(`${name} changed rows in ${changed}`)
      }
      return problems
    },
  }
}

function judge({ through, credential }: Attempt, answer: Answer): string[] {
  const { status, code, challenge, key } = credential
  const problems: string[] = []
  const refusal = refusalOf(answer)
  // Over MCP a scope is asked for by the tool.
  const expected = through === 'mcp' && code === 'missing_scope' ? 200 : status
  if (answer.status !== expected || refusal?.code !== code) {
    problems.push(`${answer.status} ${refusal?.code}, and not ${expected} ${code}: ${answer.text.slice(0, 200)}`)
  }
  if (challenge !== undefined && !challenge.test(answer.headers['www-authenticate'] ?? '')) {
    problems.push(`WWW-Authenticate is ${answer.headers['www-authenticate']}`)
  }
  if (credential.hint !== undefined && !answer.text.includes(credential.hint)) problems.push('lacks its hint')
  if (key !== undefined && answer.text.includes(key)) problems.push('repeats what was sent')
  return problems
}
