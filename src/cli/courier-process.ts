// Keeps the courier of `usher start` running in a process of its own, so that composing e-mails delays no request. It is told by the
// channel to it what to do, and ends with the channel. Of secrets it gets a token of its role now and then, and what sends e-mails; of
// the environment, what Node and its libraries read.

import { fork } from 'node:child_process'
import { getCompileCacheDir } from 'node:module'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Observe } from '../courier/courier.ts'
import type { DataApiAddress } from '../gateway/database-probe.ts'
import type { Tokens } from '../gateway/tokens.ts'
import { type Supervised, supervise } from '../local/supervise.ts'
import { ending } from '../process/processes.ts'
import { untilAborted } from '../process/stop-signals.ts'
import type { Config } from './config.ts'
import type { DeliveryOptions } from './deliveries.ts'

export type Instructions = {
  options: DeliveryOptions
  address: DataApiAddress
  token: string
  logLevel: string
  logFormat: Config['logFormat']
  /** Whether to report each settled delivery. */
  observed: boolean
}

/** `refused`: a token in whose place it needs another. */
export type FromCourier = { observation: Parameters<Observe> } | { refused: string } | { started: true }
export type NextToken = { token: string }

// A token is good for a minute at least when it is sent.
const tokenMs = 30_000
// Longer than it takes to settle or abort what is in flight.
const stopMs = 5_000
const variables =
  /^(PATH|HOME|USERPROFILE|SYSTEMROOT|WINDIR|TMPDIR|TEMP|TMP|TZ|LANG|LC_\w+|TERM|COLORTERM|NO_COLOR|FORCE_COLOR|NODE_\w+|UV_\w+|SSL_CERT_\w+|OPENSSL_\w+|(HTTPS?|ALL|NO)_PROXY|LD_\w+|DYLD_\w+|MALLOC_\w+|RES_OPTIONS|LOCALDOMAIN)$/i
// They would stop it, run something else, or fill its environment from a file.
const flagsOfOthers =
  /^(--(inspect|debug|test|experimental-test|watch|env-file|eval|print|check|interactive)|-(e|p|pe|c|i)$)/

/** A word that is no flag is the value of the flag before it. */
function flagsFrom(execArgv: string[]): string[] {
  let isKept = true
  return execArgv.filter((word) => {
    if (word.startsWith('-')) isKept = !flagsOfOthers.test(word)
    return isKept
  })
}

/** @param ownPorts see QueueOptions. */
export async function superviseCourier(
  config: Config,
  address: DataApiAddress,
  tokens: Tokens,
  observe: Observe | undefined,
  ownPorts: number[],
  log: Logger,
): Promise<Supervised> {
  const { webhookTimeoutSeconds, webhooksToLoopback, mail, mailFrom, retentionDays, auditRetentionDays } = config
  const instructions: Omit<Instructions, 'token'> = {
    options: { webhookTimeoutSeconds, webhooksToLoopback, ownPorts, mail, mailFrom, retentionDays, auditRetentionDays },
    address,
    logLevel: log.level,
    logFormat: config.logFormat,
    observed: observe !== undefined,
  }
  // A start compiles nothing that was compiled before: half of its time.
  const compileCache = getCompileCacheDir()
  const env: NodeJS.ProcessEnv = {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => variables.test(name))),
    ...(compileCache !== undefined && { NODE_COMPILE_CACHE: compileCache }),
  }

  async function begin() {
    const token = await tokens.forCourier()
    const child = fork(join(import.meta.dirname, 'courier-main.ts'), {
      env,
      execArgv: ['--disable-warning=ExperimentalWarning', ...flagsFrom(process.execArgv)],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    })
    const ended = ending(child)
    const started = Promise.withResolvers<void>()
    const kill = () => void child.kill('SIGKILL')
    process.on('exit', kill)
    const send = (message: Instructions | NextToken) => child.connected && child.send(message, () => {})
    const sendNext = async (token: Promise<string>) => send({ token: await token })
    const timer = setInterval(() => void sendNext(tokens.forCourier()), tokenMs).unref()
    void ended.then(() => {
      process.off('exit', kill)
      clearInterval(timer)
    })
    child.on('message', (message: FromCourier) => {
      if ('observation' in message) observe?.(...message.observation)
      else if ('started' in message) started.resolve()
      else void sendNext(tokens.inPlaceOf(message.refused))
    })
    send({ ...instructions, token })
    return {
      ended,
      started: started.promise,
      async stop() {
        if (child.connected) child.disconnect()
        const timer = setTimeout(kill, stopMs)
        await ended
        clearTimeout(timer)
      },
    }
  }

  return supervise({
    name: 'The courier',
    first: await begin(),
    async restart(signal) {
      const courier = await begin()
      const how = await Promise.race([courier.ended, courier.started, untilAborted(signal)])
      // One that is starting when the signal aborts is stopped as one that runs.
      if (how !== undefined) throw new Error(how)
      return courier
    },
    report: (message) => log.warn(message),
  })
}
