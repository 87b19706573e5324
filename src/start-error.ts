// A failure to start that the person at the keyboard can act on. The command line prints the message alone, without a
// stack, so it must be whole sentences that name the way out and never carry a secret.

export class StartError extends Error {
  override readonly name = 'StartError'
}
