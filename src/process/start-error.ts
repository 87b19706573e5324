// A failure to start that the operator can fix. The command line prints only its message: whole sentences that say what to do,
// and never a secret.

export class StartError extends Error {
  override readonly name = 'StartError'
}

export const interrupted = (): StartError => new StartError('Interrupted. Everything started was stopped again.')
