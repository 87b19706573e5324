// The command `usher`. Data goes to standard output, everything else to standard error, so that output can be piped.
// Exit codes: 0 success, 1 failure, 2 wrong usage or configuration.

import { existsSync } from 'node:fs'
import { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { AdminError } from '../local/admin.ts'
import { StartError } from '../process/start-error.ts'
import { stopSignal } from '../process/stop-signals.ts'
import { runCommand } from './command-error.ts'
import { addImportCommand } from './commands/import.ts'
import { addDoorLinkCommand, addKeyCommands } from './commands/keys.ts'
import { addOrganisationCommands } from './commands/organisations.ts'
import { addServiceCommands } from './commands/service.ts'
import { openTerminal, type Surroundings } from './commands/terminal.ts'
import { addWebhookCommands } from './commands/webhooks.ts'
import { ConfigError } from './config.ts'

export function commandLine(surroundings: Surroundings): Command {
  const { stdout, stderr } = surroundings
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

  const terminal = openTerminal(surroundings)
  addServiceCommands(usher, terminal)
  addOrganisationCommands(usher, terminal)
  addKeyCommands(usher, terminal)
  addDoorLinkCommand(usher, terminal)
  addImportCommand(usher, terminal)
  addWebhookCommands(usher, terminal)
  return usher
}

/** Runs one command. @returns its exit code. */
export async function run(args: string[], surroundings: Surroundings): Promise<number> {
  const { stderr, exit } = surroundings
  try {
    return await runCommand(commandLine(surroundings), args, stderr)
  } catch (error) {
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
  const surroundings = { environment, stdin, stdout, stderr, exit, stopSignal }
  process.exitCode = await run(process.argv.slice(2), surroundings)
}
