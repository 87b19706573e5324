// The command that imports guests: its options. What it does is in import/import-list.ts.

import { type Command, InvalidArgumentError } from 'commander'
import { Failed } from '../command-error.ts'
import { fields, readMap } from '../import/columns.ts'
import type { ImportOptions } from '../import/import-list.ts'
import type { Terminal } from './terminal.ts'

export function addImportCommand(usher: Command, terminal: Terminal): void {
  usher
    .command('import')
    .description('Register or update the guests of a CSV file; repeat it safely, since no guest is registered twice')
    .argument('<file>', 'a list with the names of its columns in the first line')
    .requiredOption('--event <event>', 'slug, id, name or external_id of the event')
    .option('--ticket-type <name>', 'ticket type of rows without one (default: the only one of the event)')
    .option('--dry-run', 'report the result of each row without importing')
    .option('--yes', 'do not ask')
    .option(
      '--map <columns>',
      'field of each column, such as "Ticket=ticket_type,Mail=email"; "Notes=" leaves one out',
      parseMap,
    )
    .option('--metadata', 'keep all other columns as metadata')
    .option('--external-id-prefix <text>', 'prefix of each external_id, which is unique to one event')
    .option('--send-email', 'e-mail new guests their tickets')
    .option('--delimiter <character>', 'cell separator: a character, or tab (default: detected)', parseDelimiter)
    .option('--refused <file>', 'file for refused rows (default: FILE.refused.csv)')
    .option('--url <url>', 'address of Usher (default: USHER_URL, or the Usher on this machine)')
    .option('--key-file <file>', 'file with the API key, - for standard input (default: USHER_KEY)')
    .option('--organisation <slug>', 'owner of the event, if no key is given')
    .option('--json', 'print the counts as JSON')
    .addHelpText(
      'after',
      `
Columns are matched by name: name (or first and last name), email, company, ticket type, external_id, metadata.KEY; also in German,
French, Spanish and Dutch, and with the names that pretix, Eventbrite and Tito use. Rows with a cancelled or declined status are skipped.
Guests are matched by external_id, otherwise by e-mail address and name, so you can run the same command again after Ctrl-C or a network
failure. Tickets are complimentary.

The key needs events:read and attendees:write. Beside npm start, on the same machine, no key is needed.
Exits with 0 if every row was imported, otherwise with 1: refused rows are in a file, with the reason, to correct and import.

Examples:
  $ usher import guests.csv --event data-days --dry-run
  $ usher import guests.csv --event data-days --ticket-type "Early bird" --url https://usher.example.com --key-file key.txt`,
    )
    .action(async (file: string, options: ImportOptions) => {
      const { importList } = await import('../import/import-list.ts')
      const stopping = terminal.handleStopSignals()
      if (!(await importList(file, options, { ...terminal, stopping }))) throw new Failed()
    })
}

function parseMap(text: string, told?: Map<string, string>): Map<string, string> {
  const map = readMap(text, told)
  if (map !== null) return map
  throw new InvalidArgumentError(
    `Give COLUMN=FIELD, where a field is ${fields.join(', ')}, status or metadata.KEY, or nothing.`,
  )
}

function parseDelimiter(text: string): string {
  const character = text === 'tab' || text === '\\t' ? '\t' : text
  if (/^[^\r\n"]$/.test(character)) return character
  throw new InvalidArgumentError('Give one character, such as , or ; or the word tab.')
}
