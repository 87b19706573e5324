// The command that imports guests: its options. What it does is in import/import-list.ts.

import { type Command, InvalidArgumentError } from 'commander'
import { Failed } from '../command-error.ts'
import { fields, readMap } from '../import/columns.ts'
import type { ImportOptions } from '../import/import-list.ts'
import type { Terminal } from './terminal.ts'

export function addImportCommand(usher: Command, terminal: Terminal): void {
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
