#!/usr/bin/env node
// The packed command: listen and trigger for any machine with Node 20. `npm pack` bundles it, so nothing here may import a server.

import { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { runCommand } from './command-error.ts'
import { addWebhookCommands } from './commands/webhooks.ts'

const { env: environment, stdin, stdout, stderr } = process
const usher = new Command('usher')
  .description('Receive the webhooks of an Usher on this machine.')
  .version(packageJson.version, '--version', 'print the version of Usher')
  .exitOverride()
addWebhookCommands(usher, {
  environment,
  stdin,
  print: (text) => void stdout.write(`${text}\n`),
  say: (text) => void stderr.write(`${text}\n`),
})
process.exitCode = await runCommand(usher, process.argv.slice(2), stderr)
