// Commands for whoever writes a receiver: listen and trigger. They speak HTTP alone, so they run anywhere: the packed command has just these.

import { Argument, type Command, InvalidArgumentError } from 'commander'
import type { Given, Surroundings } from '../given.ts'
import { printable } from '../import/shown.ts'
import { type ListenOptions, listen } from '../listen/listen.ts'
import { recipes } from '../trigger/recipes.ts'
import { trigger } from '../trigger/trigger.ts'

const types = Object.keys(recipes) as (keyof typeof recipes)[]

export function addWebhookCommands(usher: Command, { print, say, ...rest }: Surroundings): void {
  // Lines hold what an API answers, and the terminal obeys what it is sent.
  const around: Surroundings = { ...rest, print: (text) => print(printable(text)), say: (text) => say(printable(text)) }
  usher
    .command('listen')
    .description('Forward the notifications of an organisation to a receiver on this machine, signed as webhooks are')
    .option('--forward-to <url>', 'address of your receiver, such as http://localhost:4242/hooks')
    .option('--types <types>', 'forward only these, with commas between them', parseTypes)
    .option('--replay <id>', 'forward the notification with this id, and end')
    .option('--from-now', 'leave out what has happened since the last time')
    .option('--print-secret', 'print the signing secret, and end')
    .option('--url <url>', 'address of Usher (default: USHER_URL)')
    .option('--key-file <file>', 'file with the API key, - for standard input (default: USHER_KEY)')
    .addHelpText(
      'after',
      `
The key needs events:write, and for each type the scope that reads its object.
It begins at the time of its first start and goes on where it stopped, in the order of the log. Prints time, type, id, status and duration.
Any answer but 2xx within 15 s is sent again, after 1, 2, 4 … 30 s, and later ones wait.
Keeps its position and the signing secret in XDG_STATE_HOME/usher (~/.local/state/usher), by address and key.

Example:
  $ usher listen --forward-to http://localhost:4242/hooks --types order.completed,order.cancelled`,
    )
    .action((options: ListenOptions) => listen(options, around))

  usher
    .command('trigger')
    .description('Make what a type of notification tells of happen, in a test organisation')
    .addArgument(new Argument('<type>', 'type of notification').choices(types))
    .option('--url <url>', 'address of Usher (default: USHER_URL)')
    .option('--key-file <file>', 'file with the API key, - for standard input (default: USHER_KEY)')
    .addHelpText(
      'after',
      `
The key needs every scope. Each run makes an event of its own, and prints each call. Live organisations are refused.

Example:
  $ usher trigger order.completed`,
    )
    .action((type: keyof typeof recipes, given: Given) => trigger(type, given, around))
}

function parseTypes(text: string): string[] {
  const chosen = text.split(',')
  if (chosen.every((type) => (types as string[]).includes(type))) return chosen
  throw new InvalidArgumentError(`Types are ${types.join(', ')}.`)
}
