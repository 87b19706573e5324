// Commands about API keys, and about the link that opens the door page with one.

import { type Command, InvalidArgumentError, Option } from 'commander'
import { prefixOf } from '../../gateway/api-key.ts'
import {
  type Confirmations,
  confirmationsOfKeys,
  issueDoorKey,
  issueKey,
  listKeys,
  revokeKey,
  rotateKey,
} from '../../local/admin.ts'
import { type Scope, scopes } from '../../operations/operation.ts'
import { CommandError } from '../command-error.ts'
import { type Config, readConfig } from '../config.ts'
import { findRunning, type Terminal } from './terminal.ts'

export function addKeyCommands(usher: Command, { print, printJson, onDatabase }: Terminal): void {
  const printKey = (key: string, json: true | undefined): void =>
    json ? printJson({ key, prefix: prefixOf(key) }) : print(key)
  const keys = usher.command('keys').description('Create, list, revoke and rotate API keys')

  keys
    .command('create')
    .description('Create an API key and print it; it cannot be shown again')
    .requiredOption('--organisation <slug>', 'organisation that owns the key')
    .option('--name <name>', 'purpose of a key for a program')
    .addOption(
      new Option(
        '--person <name>',
        'name of the person who signs in with it on pages, allows assistants and confirms, within its scopes',
      ).conflicts(['name', 'confirmations']),
    )
    .requiredOption('--scopes <scopes>', `all, or a list of: ${scopes.join(', ')}`, parseScopes)
    .option('--expires <duration>', 'refuse the key after this time, such as 90d or 12h', parseExpiry)
    .addOption(
      new Option(
        '--confirmations <which>',
        'asked: over MCP, a person confirms irreversible operations; none: for programs that run unattended',
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
        expires?: Date
        json?: true
      }) => {
        const { expires, person, name = person, json, ...others } = options
        if (name === undefined)
          throw new CommandError(2, 'Give --name for a program, or --person for a person who signs in.')
        const kind = person === undefined ? 'key' : 'person'
        const key = await onDatabase((client) => issueKey(client, { ...others, name, kind, expiresAt: expires }))
        printKey(key, json)
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
    .argument('<key>', 'the key, or its first characters as `usher keys list` prints them')
    .option('--json', 'print the key, without its secret, as JSON')
    .action(async (key: string, options: { json?: true }) => {
      const { revokedBefore, ...row } = await onDatabase((client) => revokeKey(client, key))
      const named = `${row.prefix} (${row.name}) of ${row.organisation}`
      if (options.json) printJson(row)
      else
        print(
          revokedBefore ? `${named} is already revoked, since ${row.revoked_at?.toISOString()}.` : `Revoked ${named}.`,
        )
    })

  keys
    .command('rotate')
    .description(
      'Replace a key: print a new one with the same name, kind, scopes and expiry; the old one works until the overlap ends',
    )
    .argument('<key>', 'the key, or its first characters as `usher keys list` prints them')
    .addOption(
      new Option('--overlap <duration>', 'how long the old key still works, such as 24h, 7d or 0s')
        .default(86400, '24h')
        .argParser(parseDuration),
    )
    .option('--json', 'print { key, prefix } as JSON')
    .action(async (key: string, options: { overlap: number; json?: true }) => {
      printKey(await onDatabase((client) => rotateKey(client, key, options.overlap)), options.json)
    })
}

type DoorLinkOptions = {
  organisation: string
  event: string
  point?: string
  expires?: Date
  walkIns?: true
  json?: true
}

export function addDoorLinkCommand(usher: Command, { environment, print, say, printJson, onDatabase }: Terminal): void {
  usher
    .command('door-link')
    .description('Create a key for the door of an event, and print the link that opens the door page with it')
    .requiredOption('--organisation <slug>', 'organisation that owns the event')
    .requiredOption('--event <event>', 'slug or id of the event')
    .option('--point <point>', 'check-in point of the page, by name or id (default: staff choose it)')
    .option(
      '--expires <duration>',
      'refuse the key after this time, such as 12h (default: a day after the event)',
      parseExpiry,
    )
    .option('--walk-ins', 'let the link also register walk-ins and record payments')
    .option('--json', 'print { link, expires_at, prefix } as JSON')
    .addHelpText(
      'after',
      `
The key can only check people in and read the door list (checkin:write). With --walk-ins it also has events:read, attendees:write and
orders:write: give that link only to people who may take money. The QR code goes to standard error.
Anyone with the link can use it. Revoke it with usher keys revoke.`,
    )
    .action(async (options: DoorLinkOptions) => {
      const config = readConfig(environment)
      const { key, eventId, pointId, expiresAt, timezone } = await onDatabase((client) =>
        issueDoorKey(client, { ...options, expiresAt: options.expires }),
      )
      const origin = await addressOf(config)
      const link = `${origin.replace(/\/$/, '')}/door#event=${eventId}&key=${key}${pointId === null ? '' : `&point=${pointId}`}`
      const { default: qrcode } = await import('qrcode')
      if (options.json) printJson({ link, expires_at: expiresAt.toISOString(), prefix: prefixOf(key) })
      else print(link)
      say(await qrcode.toString(link, { type: 'utf8', errorCorrectionLevel: 'L' }))
      say(`Valid until ${onClockOf(timezone, expiresAt)}. Revoke it with: usher keys revoke ${prefixOf(key)}`)
      if (!link.startsWith('https:')) {
        say('Browsers allow the camera only on https pages, except on this machine: set PUBLIC_URL.')
      }
    })
}

/** Where people find the API: as it is configured here, or as the server knows itself that runs here, on whatever port. */
async function addressOf(config: Config): Promise<string> {
  const { urlOf } = await import('../../http/listener.ts')
  const api = (await findRunning(config))?.record.api
  return config.publicUrl ?? (api && (api.publicUrl ?? urlOf(api))) ?? `http://127.0.0.1:${config.port}`
}

/** Such as "Fri, 27 Nov 2026, 10:00 CET" or "GMT+5:30". */
const onClockOf = (timeZone: string, at: Date): string =>
  at.toLocaleString('en-GB', {
    ...{ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' },
    ...{ hour: '2-digit', minute: '2-digit', timeZone, timeZoneName: 'short' },
  })

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

const parseExpiry = (text: string): Date => new Date(Date.now() + parseDuration(text) * 1000)

/** @returns seconds. */
function parseDuration(text: string): number {
  const match = /^(\d{1,6})([smhd])$/.exec(text)
  if (!match) throw new InvalidArgumentError('Give a number and a unit, such as 90d, 24h, 30m or 0s.')
  return Number(match[1]) * { s: 1, m: 60, h: 3600, d: 86400 }[match[2] as 's' | 'm' | 'h' | 'd']
}
