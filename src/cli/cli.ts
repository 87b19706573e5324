// The command `usher`. Data goes to standard output, everything else to standard error, so that output can be piped.
// Exit codes: 0 success, 1 failure, 2 wrong usage or configuration.

import { existsSync } from 'node:fs'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import type pg from 'pg'
import type { Logger } from 'pino'
import packageJson from '../../package.json' with { type: 'json' }
import { prefixOf } from '../gateway/api-key.ts'
import {
  AdminError,
  type Confirmations,
  confirmationsOfKeys,
  createOrganisation,
  deleteOrganisation,
  issueDoorKey,
  issueKey,
  listKeys,
  listOrganisations,
  releaseDeliveries,
  revokeKey,
  rotateKey,
  updateOrganisation,
  withDatabase,
} from '../local/admin.ts'
import { findRunningStack } from '../local/stack.ts'
import { type Scope, scopes } from '../operations/operation.ts'
import { StartError } from '../process/start-error.ts'
import { stopSignal as stopSignalOfProcess, untilAborted } from '../process/stop-signals.ts'
import { CommandError } from './command-error.ts'
import { type Config, ConfigError, readConfig } from './config.ts'
import { fields as importedFields, readMap } from './import/columns.ts'
import type { ImportOptions } from './import/import-list.ts'

/** A command that has said already what failed. */
class Failed extends Error {}

type DoorLinkOptions = {
  organisation: string
  event: string
  point?: string
  expires?: number
  walkIns?: true
  json?: true
}

/** What a command reads and writes: the process, or a test's own. */
export type Surroundings = {
  environment: NodeJS.ProcessEnv
  stdin: NodeJS.ReadableStream & { isTTY?: boolean }
  stdout: { write(text: string): unknown }
  stderr: { write(text: string): unknown; isTTY?: boolean }
  /** Aborts when the process is asked to stop; before it is called, a signal ends the process. */
  stopSignal(force: () => void): AbortSignal
  /** Ends the process, whatever is still open. */
  exit(code: number): void
}

function commandLine({ environment, stdin, stdout, stderr, stopSignal }: Surroundings): Command {
  const print = (text: string): void => void stdout.write(`${text}\n`)
  const say = (text: string): void => void stderr.write(`${text}\n`)
  const printJson = (value: unknown): void => print(JSON.stringify(value, null, 2))
  const printKey = (key: string, json: true | undefined): void =>
    json ? printJson({ key, prefix: prefixOf(key) }) : print(key)
  const onDatabase = async <T>(work: (client: pg.ClientBase) => Promise<T>): Promise<T> =>
    withDatabase(await databaseUrl(readConfig(environment)), work)

  const usher = new Command('usher')
    .description('Event management on Supabase: registrations, QR tickets, check-ins and webhooks, over REST and MCP.')
    .version(packageJson.version, '--version', 'print the version of Usher')
    .configureHelp({ showGlobalOptions: true })
    .addHelpText(
      'after',
      `
Configured by environment variables (.env is read too); .env.example explains each.

First steps:
  $ usher start                                              everything on this machine, with demo data
  $ usher organisations create --name "Acme" --slug acme     in another terminal, while it runs
  $ usher keys create --organisation acme --name CRM --scopes events:read,attendees:write`,
    )
    .configureOutput({ writeOut: (text) => void stdout.write(text), writeErr: (text) => void stderr.write(text) })
    .exitOverride()

  usher
    .command('start')
    .description('Start the API and the courier; without SUPABASE_URL also Postgres and PostgREST on this machine')
    .addHelpText(
      'after',
      `
Keeps its data in USHER_DATA_DIR (.usher) and listens on PORT (3000). Ready when GET /health answers 200.
With DELIVERIES=false it leaves webhooks and e-mails to usher courier.
Stop it with Ctrl-C or SIGTERM: requests in progress are finished first.`,
    )
    .action(async () => {
      const config = readConfig(environment)
      // Registered before anything else, so that no signal is missed.
      const stopping = stopSignal(stopAtOnce)
      // Loaded here: no other command needs a server.
      const [{ start }, { describeDemo }, log] = await Promise.all([
        import('./start.ts'),
        import('../local/demo.ts'),
        openLog(config),
      ])
      const running = await start(config, log, say, stopping)
      const { publicUrl } = running
      print(
        `Usher is ready at ${publicUrl}   REST ${publicUrl}/api/v1   MCP ${publicUrl}/api/mcp   Docs ${publicUrl}/docs`,
      )
      if (running.mailPreviewUrl !== undefined) {
        print(`E-mails are not sent; preview them at ${running.mailPreviewUrl}`)
      } else if (config.deliveries) warnOfUnsentMail(config)
      if (running.metricsUrl !== undefined) print(`Metrics at ${running.metricsUrl}/metrics`)
      if (running.demo) print(describeDemo(publicUrl, running.demo))
      else if (config.database.kind === 'embedded') {
        print('Another key: npx usher keys create --organisation demo --name "My key" --scopes all')
        print('One to sign in with: npx usher keys create --organisation demo --person "Jane Doe" --scopes all')
      }

      const failure = await Promise.race([running.failed, untilAborted(stopping).then(() => null)])
      say(failure ?? 'Stopping …')
      await running.stop()
      // Exits explicitly: while Node shuts down by itself, another signal would decide the exit code.
      process.exit(failure === null ? 0 : 1)
    })

  usher
    .command('courier')
    .description('Deliver webhooks and e-mails only; any number may run beside the API')
    .addHelpText(
      'after',
      `
usher start delivers as well, unless DELIVERIES=false. Without SUPABASE_URL it joins the Usher that runs on USHER_DATA_DIR.
Stop it with Ctrl-C or SIGTERM: deliveries in progress are finished first.`,
    )
    .action(async () => {
      const config = readConfig(environment)
      const stopping = stopSignal(stopAtOnce)
      const [{ runCourier }, log] = await Promise.all([import('./start.ts'), openLog(config)])
      const courier = await runCourier(config, log, say, stopping)
      print('The courier is ready.')
      if (config.database.kind === 'supabase') warnOfUnsentMail(config)
      if (courier.metricsUrl !== undefined) print(`Metrics at ${courier.metricsUrl}/metrics`)
      await untilAborted(stopping)
      say('Stopping …')
      await courier.stop()
      process.exit(0)
    })

  usher
    .command('doctor')
    .description('Check the configuration, the database and what is around it; say what mends each fault')
    .option(
      '--deep',
      'also recount everything that is derived: places, totals, payments, arrivals, notifications, erased people',
    )
    .option('--json', 'print an array of { check, status, message, fix } as JSON')
    .addHelpText(
      'after',
      `
It changes nothing and sends no e-mail. Ends with 1 if a check failed; a warning is none.
With DATABASE_URL it also compares migrations and grants. Without SUPABASE_URL it examines the Usher that runs on USHER_DATA_DIR.`,
    )
    .action(async (options: { deep?: true; json?: true }) => {
      const { describeFindings, examine } = await import('./doctor/doctor.ts')
      const findings = await examine(environment, options.deep)
      if (options.json) printJson(findings)
      else print(describeFindings(findings))
      if (findings.some(({ status }) => status === 'failed')) throw new Failed()
    })

  const organisations = usher
    .command('organisations')
    .description('Create, list, change and delete organisations, which own events and API keys')

  organisations
    .command('create')
    .description('Create an organisation')
    .requiredOption('--name <name>', 'name for people')
    .requiredOption('--slug <slug>', 'short name: lower-case letters, digits and hyphens')
    .option('--plan <plan>', 'starter, standard or enterprise: requests per minute of each key (default: standard)')
    .option('--json', 'print the organisation as JSON')
    .addHelpText('after', '\nExample:\n  $ usher organisations create --name "Acme Events" --slug acme')
    .action(async (options: { name: string; slug: string; plan?: string; json?: true }) => {
      const organisation = await onDatabase((client) => createOrganisation(client, options))
      if (options.json) printJson(organisation)
      else print(`Created organisation ${organisation.slug} (${organisation.id}) on plan ${organisation.plan}.`)
    })

  organisations
    .command('list')
    .description('List the organisations: slug, plan, number of keys that work, name')
    .option('--json', 'print an array as JSON')
    .action(async (options: { json?: true }) => {
      const rows = await onDatabase(listOrganisations)
      if (options.json) return printJson(rows)
      for (const { slug, plan, keys, name } of rows) print([slug, plan, keys, name].join('\t'))
    })

  organisations
    .command('update')
    .description('Change an organisation, and how its e-mails look; an empty text clears')
    .requiredOption('--organisation <slug>', 'organisation to change')
    .option('--name <name>', 'name for people')
    .option('--plan <plan>', 'starter, standard or enterprise: requests per minute of each key')
    .option('--reply-to-email <address>', 'where answers to e-mails go')
    .option('--accent-colour <colour>', 'colour of e-mails and ticket pages, such as #26306b')
    .option('--logo-url <url>', 'https address of the logo on e-mails and ticket pages')
    .option('--payment-instructions <text>', 'how to pay an invoice')
    .option(
      '--confirm-refunds-above <amount>',
      'over MCP, a person confirms what refunds an order by more than this, in minor units',
      parseAmount,
    )
    .option('--json', 'print the organisation as JSON')
    .addHelpText(
      'after',
      `
With --json and nothing to change it prints the organisation.

Example:
  $ usher organisations update --organisation acme --accent-colour '#8a1c3b' --logo-url https://acme.example/logo.png`,
    )
    .action(
      async (options: {
        organisation: string
        name?: string
        plan?: string
        replyToEmail?: string
        accentColour?: string
        logoUrl?: string
        paymentInstructions?: string
        confirmRefundsAbove?: string
        json?: true
      }) => {
        const {
          organisation: slug,
          name,
          plan,
          replyToEmail,
          accentColour,
          logoUrl,
          paymentInstructions,
          json,
        } = options
        const organisation = await onDatabase((client) =>
          updateOrganisation(client, slug, {
            name,
            plan,
            reply_to_email: replyToEmail,
            accent_colour: accentColour,
            logo_url: logoUrl,
            payment_instructions: paymentInstructions,
            confirm_refunds_above: options.confirmRefundsAbove,
          }),
        )
        if (json) printJson(organisation)
        else print(`Changed organisation ${slug}.`)
      },
    )

  organisations
    .command('delete')
    .description('Delete an organisation with everything of it: guests, payments, audit trail; it cannot be undone')
    .requiredOption('--organisation <slug>', 'organisation to delete')
    .requiredOption('--confirm <slug>', 'its slug again')
    .option('--json', 'print the number of rows of each table as JSON')
    .addHelpText(
      'after',
      `
Refused while one of its API keys works, an event of it is not over or cancelled, or an e-mail waits to be sent. Export first what it is
to keep. Backups have it still.`,
    )
    .action(async (options: { organisation: string; confirm: string; json?: true }) => {
      const { organisation, confirm, json } = options
      if (confirm !== organisation) {
        throw new CommandError(2, `Nothing was deleted: --confirm is to repeat the slug, ${organisation}.`)
      }
      const deleted = await onDatabase((client) => deleteOrganisation(client, organisation))
      if (json) return printJson(deleted)
      const counts = Object.entries(deleted).map(([table, rows]) => `${table} ${rows}`)
      print(`Deleted organisation ${organisation}. Rows by table: ${counts.join(', ')}.`)
    })

  const keys = usher.command('keys').description('Create, list, revoke and rotate API keys')

  keys
    .command('create')
    .description('Create an API key and print it; it cannot be shown again')
    .requiredOption('--organisation <slug>', 'organisation that owns the key')
    .option('--name <name>', 'what the key is for: a program calls with it')
    .addOption(
      new Option(
        '--person <name>',
        'whose key it is: they sign in with it on pages, allow assistants and confirm, up to its scopes',
      ).conflicts(['name', 'confirmations']),
    )
    .requiredOption('--scopes <scopes>', `all, or a list of: ${scopes.join(', ')}`, parseScopes)
    .option('--expires <duration>', 'refuse the key after this time, such as 90d or 12h', parseDuration)
    .addOption(
      new Option(
        '--confirmations <which>',
        'asked: over MCP, a person confirms what cannot be undone; none: for programs, at which nobody sits',
      )
        .choices(confirmationsOfKeys)
        .default('asked'),
    )
    .option('--json', 'print { key, prefix } as JSON')
    .addHelpText(
      'after',
      `
Examples:
  $ KEY=$(usher keys create --organisation acme --name "Door scanners" --scopes events:read,checkin:write)
  $ usher keys create --organisation acme --person "Jane Doe" --scopes all`,
    )
    .action(
      async (options: {
        organisation: string
        name?: string
        person?: string
        scopes: Scope[]
        confirmations: Confirmations
        expires?: number
        json?: true
      }) => {
        const { expires, person, name = person, ...others } = options
        if (name === undefined)
          throw new CommandError(2, 'Give --name for a program, or --person for somebody who signs in.')
        const rest = { ...others, name, kind: person === undefined ? 'key' : 'person' } as const
        const key = await onDatabase((client) =>
          issueKey(
            client,
            expires === undefined ? rest : { ...rest, expiresAt: new Date(Date.now() + expires * 1000) },
          ),
        )
        printKey(key, options.json)
      },
    )

  keys
    .command('list')
    .description('List the API keys of an organisation, without their secrets')
    .requiredOption('--organisation <slug>', 'organisation that owns the keys')
    .option('--json', 'print an array as JSON')
    .action(async (options: { organisation: string; json?: true }) => {
      const rows = await onDatabase((client) => listKeys(client, options.organisation))
      if (options.json) return printJson(rows)
      for (const row of rows) print([row.prefix, stateOf(row), row.scopes.join(','), row.name, row.kind].join('\t'))
    })

  keys
    .command('revoke')
    .description('Revoke a key, from its next request on')
    .argument('<key>', 'first characters of the key, as `usher keys list` prints them, or all of it')
    .option('--json', 'print the key, without its secret, as JSON')
    .action(async (key: string, options: { json?: true }) => {
      const { revokedBefore, ...row } = await onDatabase((client) => revokeKey(client, key))
      const named = `${row.prefix} (${row.name}) of ${row.organisation}`
      if (options.json) printJson(row)
      else print(revokedBefore ? `${named} was revoked before: ${row.revoked_at?.toISOString()}.` : `Revoked ${named}.`)
    })

  keys
    .command('rotate')
    .description(
      'Replace a key: print a new one with the same name, kind, scopes and expiry; the old one works until the overlap ends',
    )
    .argument('<key>', 'first characters of the key, as `usher keys list` prints them, or all of it')
    .addOption(
      new Option('--overlap <duration>', 'how long the old key still works, such as 24h, 7d or 0s')
        .default(86400, '24h')
        .argParser(parseDuration),
    )
    .option('--json', 'print { key, prefix } as JSON')
    .action(async (key: string, options: { overlap: number; json?: true }) => {
      printKey(await onDatabase((client) => rotateKey(client, key, options.overlap)), options.json)
    })

  usher
    .command('deliveries')
    .description('Release webhooks and e-mails that are held because the database is a copy, or was moved')
    .command('release')
    .description('Send webhooks and e-mails from this installation, also those pending when the database was copied')
    .addHelpText(
      'after',
      `
While the original is in use as well, both then send what was pending at the time of the copy.`,
    )
    .action(async () => print(await onDatabase(releaseDeliveries)))

  usher
    .command('door-link')
    .description('Create a key for the door of an event, and print the link that opens the door page with it')
    .requiredOption('--organisation <slug>', 'organisation that owns the event')
    .requiredOption('--event <event>', 'slug or id of the event')
    .option('--point <point>', 'check-in point that the page stands at, by name or id (default: staff choose it)')
    .option(
      '--expires <duration>',
      'refuse the key after this time, such as 12h (default: a day after the event)',
      parseDuration,
    )
    .option('--walk-ins', 'the link may also register people, and record what people pay')
    .option('--json', 'print { link, expires_at, prefix } as JSON')
    .addHelpText(
      'after',
      `
The key can check people in and read the list of the door (checkin:write), and nothing else; with --walk-ins it also has events:read,
attendees:write and orders:write: give that link to people who may take money. The QR code goes to standard error.
Whoever has the link can use it: take it back with usher keys revoke.`,
    )
    .action(async (options: DoorLinkOptions) => {
      const config = readConfig(environment)
      const { expires, ...rest } = options
      const { key, eventId, pointId, expiresAt, timezone } = await onDatabase((client) =>
        issueDoorKey(
          client,
          expires === undefined ? rest : { ...rest, expiresAt: new Date(Date.now() + expires * 1000) },
        ),
      )
      const origin = await addressOf(config)
      const link = `${origin.replace(/\/$/, '')}/door#event=${eventId}&key=${key}${pointId === null ? '' : `&point=${pointId}`}`
      const { default: qrcode } = await import('qrcode')
      if (options.json) printJson({ link, expires_at: expiresAt.toISOString(), prefix: prefixOf(key) })
      else print(link)
      say(await qrcode.toString(link, { type: 'utf8', errorCorrectionLevel: 'L' }))
      say(`Good until ${onClockOf(timezone, expiresAt)}. Take it back with: usher keys revoke ${prefixOf(key)}`)
      if (!link.startsWith('https:')) {
        say('Browsers give the camera to https pages only, except on this machine: set PUBLIC_URL.')
      }
    })

  usher
    .command('import')
    .description(
      'Register the guests of a CSV file for an event, or bring them up to date; again and again, nobody twice',
    )
    .argument('<file>', 'a list with the names of its columns in the first line')
    .requiredOption('--event <event>', 'slug, id, name or external_id of the event')
    .option('--ticket-type <name>', 'ticket type of rows that name none (default: the only one of the event)')
    .option('--dry-run', 'only say what would become of each row')
    .option('--yes', 'do not ask')
    .option(
      '--map <columns>',
      'what columns hold, such as "Ticket=ticket_type,Mail=email"; "Notes=" leaves one out',
      parseMap,
    )
    .option('--metadata', 'keep all other columns as metadata')
    .option('--external-id-prefix <text>', 'put before each external_id, which belongs to one event')
    .option('--send-email', 'e-mail new guests their tickets')
    .option('--delimiter <character>', 'between the cells: a character, or tab (default: detected)', parseDelimiter)
    .option('--refused <file>', 'where those who are refused are written (default: FILE.refused.csv)')
    .option('--url <url>', 'where Usher is (default: USHER_URL, or the one that runs on this machine)')
    .option('--key-file <file>', 'file with the API key, - for standard input (default: USHER_API_KEY)')
    .option('--organisation <slug>', 'owner of the event, where it is not told by a key')
    .option('--json', 'print the counts as JSON')
    .addHelpText(
      'after',
      `
A column is known by its name: name (or first and last name), email, company, ticket type, external_id, metadata.KEY; also in German,
French, Spanish and Dutch, and as pretix, Eventbrite and Tito call it. Rows of which a column of statuses says that they are cancelled or
declined are left out. A guest is known by external_id, or else by e-mail address and name. So after Ctrl-C, or when the network was away
for too long, run the same command again. Tickets are complimentary.

The key needs events:read and attendees:write. Where the database of Usher can be reached, as beside npm start, none is needed.
Ends with 0 if every row was imported, with 1 if not: who was refused stands in a file, with the reason, to be mended and imported.

Examples:
  $ usher import guests.csv --event data-days --dry-run
  $ usher import guests.csv --event data-days --ticket-type "Early bird" --url https://usher.example.com --key-file key.txt`,
    )
    .action(async (file: string, options: ImportOptions) => {
      const { importList } = await import('./import/import-list.ts')
      const stopping = stopSignal(stopAtOnce)
      if (!(await importList(file, options, { environment, stdin, stderr, print, say, stopping }))) throw new Failed()
    })

  usher
    .command('db-url')
    .description('Print the connection string of the role Studio uses (postgres), for any SQL client')
    .addHelpText('after', '\nExample:\n  $ psql "$(usher db-url)"')
    .action(async () => print(await databaseUrl(readConfig(environment))))

  return usher

  function warnOfUnsentMail({ mail }: Config): void {
    if (!('directory' in mail)) return
    say(`E-mails are not sent but written to ${mail.directory}: set POSTMARK_SERVER_TOKEN or SMTP_URL to send them.`)
  }

  /** Postgres and PostgREST are stopped by a handler of the exit event. */
  function stopAtOnce(): never {
    say('Stopping at once.')
    process.exit(1)
  }
}

async function openLog({ logLevel, logFormat }: Config): Promise<Logger> {
  const { createLog, openLogStream } = await import('../process/log.ts')
  return createLog(logLevel, await openLogStream(logFormat))
}

/** Where people find the API: as it is configured here, or as the server knows itself that runs here, on whatever port. */
async function addressOf({ publicUrl, database, port }: Config): Promise<string> {
  const { urlOf } = await import('../http/listener.ts')
  const running = database.kind === 'embedded' ? await findRunningStack(database.dataDir) : null
  const api = running?.record.api
  return publicUrl ?? (api && (api.publicUrl ?? urlOf(api))) ?? `http://127.0.0.1:${port}`
}

/** Such as "Fri, 27 Nov 2026, 10:00 CET" or "GMT+5:30". */
const onClockOf = (timeZone: string, at: Date): string =>
  at.toLocaleString('en-GB', {
    ...{ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' },
    ...{ hour: '2-digit', minute: '2-digit', timeZone, timeZoneName: 'short' },
  })

async function databaseUrl(config: Config): Promise<string> {
  if (config.databaseUrl !== undefined) return config.databaseUrl
  if (config.database.kind === 'supabase') {
    throw new ConfigError('DATABASE_URL must be set beside SUPABASE_URL: the connection string of the role postgres.')
  }
  const running = await findRunningStack(config.database.dataDir)
  if (running === null) {
    throw new StartError(
      `No Usher runs on ${config.database.dataDir}. Start it with: npm start (USHER_DATA_DIR names another folder, DATABASE_URL another database.)`,
    )
  }
  return running.databaseUrl
}

function stateOf({ revoked_at, expires_at }: { revoked_at: Date | null; expires_at: Date | null }): string {
  if (revoked_at !== null) return `revoked ${revoked_at.toISOString()}`
  if (expires_at === null) return 'active'
  return expires_at.getTime() <= Date.now() ? 'expired' : `until ${expires_at.toISOString()}`
}

function parseScopes(text: string): Scope[] {
  if (text === 'all') return [...scopes]
  const chosen = text.split(',').map((scope) => scope.trim())
  const wrong = chosen.filter((scope) => !scopes.includes(scope as Scope))
  if (wrong.length > 0)
    throw new InvalidArgumentError(`Unknown: ${wrong.join(', ')}. Allowed: all, ${scopes.join(', ')}.`)
  return [...new Set(chosen as Scope[])]
}

/** @returns the text: an empty one clears. */
function parseAmount(text: string): string {
  if (!/^\d{0,15}$/.test(text))
    throw new InvalidArgumentError('Give a whole number of minor units: 10000 is 100.00 EUR.')
  return text
}

function parseMap(text: string, told?: Map<string, string>): Map<string, string> {
  const map = readMap(text, told)
  if (map !== null) return map
  throw new InvalidArgumentError(
    `Give COLUMN=FIELD, where a field is ${importedFields.join(', ')}, status or metadata.KEY, or nothing.`,
  )
}

function parseDelimiter(text: string): string {
  const character = text === 'tab' || text === '\\t' ? '\t' : text
  if (/^[^\r\n"]$/.test(character)) return character
  throw new InvalidArgumentError('Give one character, such as , or ; or the word tab.')
}

/** @returns seconds. */
function parseDuration(text: string): number {
  const match = /^(\d{1,6})([smhd])$/.exec(text)
  if (!match) throw new InvalidArgumentError('Give a number and a unit, such as 90d, 24h, 30m or 0s.')
  return Number(match[1]) * { s: 1, m: 60, h: 3600, d: 86400 }[match[2] as 's' | 'm' | 'h' | 'd']
}

/** Runs one command. @returns its exit code. */
export async function run(args: string[], surroundings: Surroundings): Promise<number> {
  const { stderr, exit } = surroundings
  try {
    await commandLine(surroundings).parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (error instanceof Failed) return 1
    if (error instanceof CommandError) {
      stderr.write(`${error.message}\n`)
      return error.exitCode
    }
    if (!(error instanceof ConfigError || error instanceof StartError || error instanceof AdminError)) throw error
    stderr.write(`${error.message}\n`)
    if (error instanceof ConfigError) return 2
    exit(1)
    return 1
  }
}

/** The command line of this process. */
export async function main(): Promise<void> {
  // Writing to a closed terminal or pipe must not end the process in the middle of a stop.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  if (existsSync('.env')) process.loadEnvFile('.env')
  const { env: environment, stdin, stdout, stderr, exit } = process
  const surroundings = { environment, stdin, stdout, stderr, exit, stopSignal: stopSignalOfProcess }
  process.exitCode = await run(process.argv.slice(2), surroundings)
}
