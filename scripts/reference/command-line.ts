// docs/reference/command-line.md: the --help of every command.

import type { Command } from 'commander'
import { commandLine } from '../../src/cli/cli.ts'
import { page } from './markdown.ts'

export function commandLinePage(): string {
  let printed = ''
  const usher = commandLine({
    environment: {},
    stdin: process.stdin,
    stdout: { write: (text) => (printed += text) },
    stderr: process.stderr,
    stopSignal: () => new AbortController().signal,
    exit: () => {},
  })
  const helpOf = (command: Command, name: string): string[] => {
    printed = ''
    command.configureHelp({ ...command.configureHelp(), helpWidth: 100 }).outputHelp()
    const help = `## ${name}\n\n\`\`\`text\n${printed.trim()}\n\`\`\``
    return [help, ...command.commands.flatMap((each) => helpOf(each, `${name} ${each.name()}`))]
  }
  return page(
    '# Command line',
    'Run the commands with `npx usher` in a checkout, or in a container with `node bin/usher.js`. `listen` and `trigger` also come as [a package](../guides/webhooks-on-your-machine.md) for any machine.',
    ...helpOf(usher, 'usher'),
  )
}
