// The signals that stop a server, for the whole life of its process. The first asks for a clean stop. More of them do not shorten
// it: npm passes on a Ctrl-C that the terminal has already sent. Only one that comes five seconds later ends the process at once.

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

// Later than npm, a shell or a supervisor repeats a signal; a person who waited this long means it.
const deafMilliseconds = 5_000
// A stop that takes longer is forced, so that everything has ended within ten seconds.
const longestMilliseconds = 8_000

/**
 * Called once, before anything is started. The returned signal aborts at the first signal, and is never reset.
 * @param force ends the process at once; what ends its children runs on its `exit` event.
 */
export function stopSignal(force: () => void): AbortSignal {
  const asked = new AbortController()
  let since: number | undefined
  for (const name of signals) {
    process.on(name, () => {
      if (since === undefined) {
        since = performance.now()
        setTimeout(force, longestMilliseconds).unref()
        asked.abort()
      } else if (performance.now() - since > deafMilliseconds) force()
    })
  }
  return asked.signal
}
