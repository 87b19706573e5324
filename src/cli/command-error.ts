// Why a command cannot do what it was asked to, as whole sentences for the terminal, and its exit code: 0 success, 1 failure, 2 wrong usage.

import { type Command, CommanderError } from 'commander'

export class CommandError extends Error {
  /** 1: it failed. 2: an option, a file or the configuration is wrong, and nothing was begun. */
  readonly exitCode: 1 | 2

  constructor(exitCode: 1 | 2, message: string) {
    super(message)
    this.exitCode = exitCode
  }
}

/** A command that has said already what failed. */
export class Failed extends Error {}

/** Runs a command. @returns its exit code. @throws whatever is not for the person who gave it */
export async function runCommand(
  command: Command,
  args: string[],
  stderr: { write(text: string): unknown },
): Promise<number> {
  try {
    await command.parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    if (error instanceof Failed) return 1
    if (!(error instanceof CommandError)) throw error
    stderr.write(`${error.message}\n`)
    return error.exitCode
  }
}
