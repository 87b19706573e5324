// Why a command cannot do what it was asked to, as whole sentences for the terminal.

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
