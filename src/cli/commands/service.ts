// Commands that run the service or look at it: start, courier, doctor, deliveries, db-url.

import type { Command } from 'commander'
import type { Logger } from 'pino'
import { releaseDeliveries } from '../../local/admin.ts'
import { untilAborted } from '../../process/stop-signals.ts'
import { Failed } from '../command-error.ts'
import { type Config, readConfig } from '../config.ts'
import { databaseUrl, type Terminal } from './terminal.ts'

export function addServiceCommands(usher: Command, terminal: Terminal): void {
  const { environment, print, say, printJson, onDatabase, handleStopSignals } = terminal
  usher
    .command('start')
    .description('Start the API and the courier; without SUPABASE_URL also Postgres and PostgREST on this machine')
    .addHelpText(
      'after',
      `
Keeps its data in USHER_DATA_DIR (.usher) and listens on PORT (3000). Ready when GET /health answers 200.
With DELIVERIES=false it leaves webhooks and e-mails to usher courier.
Stop it with Ctrl-C or SIGTERM: requests in progress are finished first.`,
    )
    .action(async () => {
      const config = readConfig(environment)
      // Registered before anything else, so that no signal is missed.
      const stopping = handleStopSignals()
      // Loaded here: no other command needs a server.
      const [{ start }, { describeDemo }, log] = await Promise.all([
        import('../start.ts'),
        import('../../local/demo.ts'),
        openLog(config),
      ])
      const running = await start(config, log, say, stopping)
      const { publicUrl } = running
      print(
        `Usher is ready at ${publicUrl}   REST ${publicUrl}/api/v1   MCP ${publicUrl}/api/mcp   Docs ${publicUrl}/docs`,
      )
      if (running.mailPreviewUrl !== undefined) {
        print(`E-mails are not sent; preview them at ${running.mailPreviewUrl}`)
      } else if (config.deliveries) warnOfUnsentMail(config)
      if (running.metricsUrl !== undefined) print(`Metrics at ${running.metricsUrl}/metrics`)
      if (running.demo) print(describeDemo(publicUrl, running.demo))
      else if (config.database.kind === 'embedded') {
        print('Another key: npx usher keys create --organisation demo --name "My key" --scopes all')
        print('One to sign in with: npx usher keys create --organisation demo --person "Jane Doe" --scopes all')
      }

      const failure = await Promise.race([running.failed, untilAborted(stopping).then(() => null)])
      say(failure ?? 'Stopping …')
      await running.stop()
      // Exits explicitly: while Node shuts down by itself, another signal would decide the exit code.
      process.exit(failure === null ? 0 : 1)
    })

  usher
    .command('courier')
    .description('Deliver webhooks and e-mails only; any number may run beside the API')
    .addHelpText(
      'after',
      `
usher start delivers as well, unless DELIVERIES=false. Without SUPABASE_URL it joins the Usher that runs on USHER_DATA_DIR.
Stop it with Ctrl-C or SIGTERM: deliveries in progress are finished first.`,
    )
    .action(async () => {
      const config = readConfig(environment)
      const stopping = handleStopSignals()
      const [{ runCourier }, log] = await Promise.all([import('../start.ts'), openLog(config)])
      const courier = await runCourier(config, log, say, stopping)
      print('The courier is ready.')
      if (config.database.kind === 'supabase') warnOfUnsentMail(config)
      if (courier.metricsUrl !== undefined) print(`Metrics at ${courier.metricsUrl}/metrics`)
      await untilAborted(stopping)
      say('Stopping …')
      await courier.stop()
      process.exit(0)
    })

  usher
    .command('doctor')
    .description('Check the configuration, the database and the services around it, with a fix for each fault')
    .option('--deep', 'also recount all derived data: places, totals, payments, arrivals, notifications, erased people')
    .option('--json', 'print an array of { check, status, message, fix } as JSON')
    .addHelpText(
      'after',
      `
It changes nothing and sends no e-mail. Exits with 1 if a check failed; a warning is no failure.
With DATABASE_URL it also compares migrations and grants. Without SUPABASE_URL it examines the Usher that runs on USHER_DATA_DIR.`,
    )
    .action(async (options: { deep?: true; json?: true }) => {
      const { describeFindings, examine } = await import('../doctor/doctor.ts')
      const findings = await examine(environment, options.deep)
      if (options.json) printJson(findings)
      else print(describeFindings(findings))
      if (findings.some(({ status }) => status === 'failed')) throw new Failed()
    })

  usher
    .command('deliveries')
    .description('Release webhooks and e-mails that are held because the database was copied or moved')
    .command('release')
    .description(
      'Send webhooks and e-mails from this installation, including those pending when the database was copied',
    )
    .addHelpText(
      'after',
      `
If the original is in use as well, both send the deliveries that were pending at the time of the copy.`,
    )
    .action(async () => print(await onDatabase(releaseDeliveries)))

  usher
    .command('db-url')
    .description('Print the connection string of the role Studio uses (postgres), for any SQL client')
    .addHelpText('after', '\nExample:\n  $ psql "$(usher db-url)"')
    .action(async () => print(await databaseUrl(readConfig(environment))))

  function warnOfUnsentMail({ mail }: Config): void {
    if (!('directory' in mail)) return
    say(`E-mails are not sent but written to ${mail.directory}: set POSTMARK_SERVER_TOKEN or SMTP_URL to send them.`)
  }
}

async function openLog({ logLevel, logFormat }: Config): Promise<Logger> {
  const { createLog, openLogStream } = await import('../../process/log.ts')
  return createLog(logLevel, await openLogStream(logFormat))
}
