// Checks a project through its Data API alone, as the API and the courier call it. Every call is for a key that cannot exist, so nothing
// is read or changed.

import { heldMessage, releaseFix } from '../../courier/installation.ts'
import {
  applyMigrations,
  callOnce,
  createProbe,
  type DataApiAddress,
  type DataApiAnswer,
  probed,
  reasonOf,
} from '../../gateway/database-probe.ts'
import { createTokens, type SigningKey, type Tokens } from '../../gateway/tokens.ts'
import { operations } from '../../operations/index.ts'
import { isRead, type Operation, roleOf } from '../../operations/operation.ts'
import { type Finding, failed, ok, timeLimit, warning } from './finding.ts'

const nobody = '00000000-0000-0000-0000-000000000000'
const noKey = { api_key_id: nobody, family_id: nobody, organisation_id: nobody }
// PostgREST accepts tokens that are this far off.
const leewaySeconds = 30
const noticedSeconds = 5
// Pending deliveries are claimed within a second; the edge function may be called every ten minutes only.
const lateSeconds = 900

const fine: Record<(typeof probed)[number], string> = {
  data_api: 'The Data API answers.',
  project_key: 'The project accepts its key.',
  clock: 'The clocks of the project and of this machine agree.',
  token: 'The project accepts the tokens that Usher signs.',
  schemas: 'The project exposes the schema api.',
  migrations: 'The database has every function that this Usher calls.',
}

/** @param installation the names that the API and the courier announce. */
export async function checkDataApi(
  address: DataApiAddress,
  signingKey: SigningKey,
  installation: string[],
): Promise<Finding[]> {
  const tokens = await createTokens(signingKey, undefined, installation)
  const result = await createProbe(address, tokens)(timeLimit())
  if (result.kind === 'away') {
    const fix = 'Check SUPABASE_URL and the network. Resume a paused project in its dashboard.'
    return [failed('data_api', `The Data API cannot be reached (${result.reason}).`, fix)]
  }
  if (result.kind === 'misconfigured') {
    // A clock that is not complained about may still be wrong.
    const passed = probed.slice(0, probed.indexOf(result.check)).filter((check) => check !== 'clock')
    return [...passed.map((check) => ok(check, fine[check])), failed(result.check, result.message, result.fix)]
  }
  const passed = probed
    .filter((check) => check !== 'migrations')
    .map((check) => (check === 'clock' ? checkClock(result.date) : ok(check, fine[check])))
  try {
    return [...passed, ...(await checkCalls(address, tokens))]
  } catch (error) {
    const fix = 'Run this again: the connection broke.'
    return [...passed, failed('data_api', `The Data API no longer answers (${reasonOf(error)}).`, fix)]
  }
}

function checkClock(theirs: Date | undefined): Finding {
  if (theirs === undefined) return ok('clock', 'The project accepts tokens with the current time.')
  const seconds = Math.round(Math.abs(Date.now() - theirs.getTime()) / 1000)
  if (seconds < noticedSeconds) return ok('clock', fine.clock)
  const message = `The clock of this machine is ${seconds} s off. From ${leewaySeconds} s on, tokens are refused.`
  return warning('clock', message, 'Correct the clock of this machine.')
}

async function checkCalls(address: DataApiAddress, tokens: Tokens): Promise<Finding[]> {
  const call = (fn: string, args: Record<string, unknown>, token: string) =>
    callOnce(address, fn, args, token, timeLimit())
  const asRole = async (role: string) => call('get_api_key', {}, await tokens.forPrincipal(noKey, role, 'api'))
  const roles = [...new Set(operations.map(roleOf))]
  const answers = await Promise.all(roles.map(async (role) => ({ role, answer: await asRole(role) })))
  const depth = await call('outbox_depth', {}, await tokens.forCourier())

  const lacking = answers.filter(({ answer }) => isRoleRefused(answer)).map(({ role }) => role)
  if (isRoleRefused(depth)) lacking.push('courier')
  const findings = [checkRoles(lacking)]
  if (lacking.length > 0) return findings

  const unchecked = answers.filter(({ answer }) => answer.code !== 'PT401')
  findings.push(checkPreRequest(unchecked.length === 0))
  // Without the hook these calls would be executed.
  if (unchecked.length > 0) return findings
  const missing = await missingFunctions(async (operation) =>
    call(operation.name, argumentsOf(operation), await tokens.forPrincipal(noKey, roleOf(operation), 'api')),
  )
  if (depth.code === 'PGRST202') missing.push('outbox_depth')
  if (missing.length > 0) {
    findings.push(
      failed('migrations', `The database lacks functions, or has older ones: ${missing.join(', ')}.`, applyMigrations),
    )
  } else {
    findings.push(ok('migrations', fine.migrations), ...checkDeliveries(depth.body))
  }
  return findings
}

/** The role does not exist, or authenticator may not become it. */
const isRoleRefused = ({ code, message }: DataApiAnswer): boolean =>
  code === '22023' || (code === '42501' && /\brole\b/.test(message))

function checkRoles(lacking: string[]): Finding {
  if (lacking.length === 0) return ok('roles', 'The Data API can switch to every role of Usher.')
  return failed(
    'roles',
    `The Data API cannot switch to ${lacking.join(', ')}.`,
    `Run as postgres: grant ${lacking.join(', ')} to authenticator; if a role does not exist, first: npx supabase db push --remote`,
  )
}

function checkPreRequest(isSet: boolean): Finding {
  if (isSet) return ok('pre_request', 'Each request checks its API key first (private.check_request).')
  return failed(
    'pre_request',
    'The Data API does not run private.check_request first: a revoked key would keep working for a minute.',
    "Run as postgres: alter role authenticator set pgrst.db_pre_request = 'private.check_request'; notify pgrst, 'reload config'; or, if the project has its own function there, begin it with: perform private.check_request();",
  )
}

/** PostgREST looks for the function, with exactly these arguments, before the hook refuses the key. */
async function missingFunctions(call: (operation: Operation) => Promise<DataApiAnswer>): Promise<string[]> {
  const missing: string[] = []
  for (let i = 0; i < operations.length; i += 8) {
    const some = operations.slice(i, i + 8)
    const answers = await Promise.all(some.map(call))
    missing.push(...some.filter((_, at) => answers[at]?.code === 'PGRST202').map(({ name }) => name))
  }
  return missing
}

function argumentsOf(operation: Operation): Record<string, null> {
  const names = Object.keys(operation.input.shape)
  if (!isRead(operation)) names.push('idempotency_key', 'request_fingerprint')
  return Object.fromEntries(names.map((name) => [name, null]))
}

type Depth = { kind: string; late_seconds: number; failing: number; last_error: string | null; held: boolean }

function checkDeliveries(depth: unknown): Finding[] {
  const kinds = Array.isArray(depth) ? (depth as Depth[]) : []
  if (kinds.some(({ held }) => held)) return [failed('deliveries', heldMessage, `${releaseFix}.`)]
  return [checkLate(kinds), checkEmails(kinds.find(({ kind }) => kind === 'ticket_emails'))]
}

function checkLate(kinds: Depth[]): Finding {
  const late = kinds.filter(({ late_seconds }) => late_seconds > lateSeconds)
  if (late.length === 0) return ok('deliveries', 'No webhook or e-mail is overdue.')
  const described = late.map(({ kind, late_seconds }) => `${kind} for ${Math.round(late_seconds / 60)} minutes`)
  return warning(
    'deliveries',
    `Due deliveries are waiting for a courier: ${described.join(', ')}.`,
    'Run `npx usher courier`, unset DELIVERIES=false, or schedule the edge function.',
  )
}

/** What is tried again is never overdue, and what a mail service refuses after the login shows nowhere else. */
function checkEmails(depth: Depth | undefined): Finding {
  if (!depth?.failing) return ok('emails', 'No failed e-mail is waiting to be retried.')
  const number = depth.failing === 1 ? '1 e-mail has failed and is' : `${depth.failing} e-mails have failed and are`
  // Whoever mends it needs the words, and the domain, but not who the guest is.
  const error = (depth.last_error ?? '').replaceAll(/[^\s<>"'(),;:=]+@/g, '…@')
  return warning(
    'emails',
    `${number} being retried. Last error: ${error}`,
    'Fix the error, then send them at once: see "No mail leaves" in docs/operate/courier.md.',
  )
}
