// Commands about organisations, which own events and API keys.

import { type Command, InvalidArgumentError } from 'commander'
import {
  createOrganisation,
  deleteOrganisation,
  emptyTestOrganisation,
  listOrganisations,
  updateOrganisation,
} from '../../local/admin.ts'
import { CommandError } from '../command-error.ts'
import type { Terminal } from './terminal.ts'

type Changes = {
  name?: string
  plan?: string
  replyToEmail?: string
  accentColour?: string
  logoUrl?: string
  paymentInstructions?: string
  sellerDetails?: string
  taxNote?: string
  confirmRefundsAbove?: string
  embedOrigins?: string
}

export function addOrganisationCommands(usher: Command, { print, printJson, onDatabase }: Terminal): void {
  const organisations = usher
    .command('organisations')
    .description('Create, list, change, empty and delete organisations, which own events and API keys')

  organisations
    .command('create')
    .description('Create an organisation')
    .requiredOption('--name <name>', 'name for people')
    .requiredOption('--slug <slug>', 'short name: lower-case letters, digits and hyphens')
    .option('--plan <plan>', 'starter, standard or enterprise: requests per minute of each key (default: standard)')
    .option('--test', 'make it a test organisation: e-mails are kept and never sent, keys begin usher_test_')
    .option('--json', 'print the organisation as JSON')
    .addHelpText('after', '\nExample:\n  $ usher organisations create --name "Acme Events" --slug acme')
    .action(async (options: { name: string; slug: string; plan?: string; test?: true; json?: true }) => {
      const organisation = await onDatabase((client) => createOrganisation(client, options))
      if (options.json) printJson(organisation)
      else {
        const kind = options.test ? 'test organisation' : 'organisation'
        print(`Created ${kind} ${organisation.slug} (${organisation.id}) on plan ${organisation.plan}.`)
      }
    })

  organisations
    .command('list')
    .description('List the organisations: slug, plan, number of valid keys, name')
    .option('--json', 'print an array as JSON')
    .action(async (options: { json?: true }) => {
      const rows = await onDatabase(listOrganisations)
      if (options.json) return printJson(rows)
      for (const { slug, plan, keys, name } of rows) print([slug, plan, keys, name].join('\t'))
    })

  organisations
    .command('update')
    .description('Change an organisation and the look of its e-mails and pages; an empty text clears a field')
    .requiredOption('--organisation <slug>', 'organisation to change')
    .option('--name <name>', 'name for people')
    .option('--plan <plan>', 'starter, standard or enterprise: requests per minute of each key')
    .option('--reply-to-email <address>', 'reply-to address of e-mails')
    .option('--accent-colour <colour>', 'colour of e-mails and pages, such as #26306b')
    .option('--logo-url <url>', 'https address of the logo on e-mails and pages')
    .option('--payment-instructions <text>', 'how to pay an invoice')
    .option('--seller-details <text>', 'seller on receipts: name, address, tax number')
    .option('--tax-note <text>', 'what receipts say about tax')
    .option(
      '--confirm-refunds-above <amount>',
      'refunds of an order above this need a confirmation over MCP, in minor units',
      parseAmount,
    )
    .option('--embed-origins <origins>', 'origins whose pages may frame registration pages, with commas between them')
    .option('--json', 'print the organisation as JSON')
    .addHelpText(
      'after',
      `
With --json and no changes it prints the organisation.

Example:
  $ usher organisations update --organisation acme --accent-colour '#8a1c3b' --logo-url https://acme.example/logo.png`,
    )
    .action(async (options: Changes & { organisation: string; json?: true }) => {
      const organisation = await onDatabase((client) =>
        updateOrganisation(client, options.organisation, {
          name: options.name,
          plan: options.plan,
          reply_to_email: options.replyToEmail,
          accent_colour: options.accentColour,
          logo_url: options.logoUrl,
          payment_instructions: options.paymentInstructions,
          seller_details: options.sellerDetails,
          tax_note: options.taxNote,
          confirm_refunds_above: options.confirmRefundsAbove,
          embed_origins: options.embedOrigins,
        }),
      )
      if (options.json) printJson(organisation)
      else print(`Changed organisation ${options.organisation}.`)
    })

  organisations
    .command('delete')
    .description('Delete an organisation with all of its data: guests, payments, audit trail; this cannot be undone')
    .requiredOption('--organisation <slug>', 'organisation to delete')
    .requiredOption('--confirm <slug>', 'its slug again')
    .option('--json', 'print the number of rows of each table as JSON')
    .addHelpText(
      'after',
      `
Refused while the organisation has a valid API key, an event that is neither over nor cancelled, or a queued e-mail. Export the data that
it keeps first. Backups still contain it.`,
    )
    .action(async (options: { organisation: string; confirm: string; json?: true }) => {
      const { organisation, confirm, json } = options
      if (confirm !== organisation) {
        throw new CommandError(2, `Nothing was deleted: repeat the slug with --confirm ${organisation}.`)
      }
      const deleted = await onDatabase((client) => deleteOrganisation(client, organisation))
      if (json) return printJson(deleted)
      print(`Deleted organisation ${organisation}. Rows by table: ${listed(deleted)}.`)
    })

  organisations
    .command('empty')
    .description(
      'Delete the events and guests of a test organisation; its settings, members, keys and webhook endpoints stay',
    )
    .requiredOption('--organisation <slug>', 'test organisation to empty')
    .option('--json', 'print the number of rows of each table as JSON')
    .action(async ({ organisation, json }: { organisation: string; json?: true }) => {
      const deleted = await onDatabase((client) => emptyTestOrganisation(client, organisation))
      if (json) printJson(deleted)
      else print(`Emptied organisation ${organisation}. Rows by table: ${listed(deleted) || 'none'}.`)
    })
}

const listed = (counts: Record<string, number>): string =>
  Object.entries(counts)
    .map(([table, rows]) => `${table} ${rows}`)
    .join(', ')

/** @returns the text: an empty one clears. */
function parseAmount(text: string): string {
  if (!/^\d{0,15}$/.test(text))
    throw new InvalidArgumentError('Give a whole number of minor units: 10000 is 100.00 EUR.')
  return text
}
