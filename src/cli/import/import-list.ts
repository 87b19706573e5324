// `usher import`: brings a list of guests to an event. The list is read twice, to say what it is and then to send it, and each time row by row.
// Run again, it imports nobody twice: import_attendees knows each by external_id, or by e-mail address and name.

import { createInterface } from 'node:readline/promises'
import { CommandError } from '../command-error.ts'
import { type Account, type Client, createClient, Refusal, Stopped } from './client.ts'
import { countKnown, findColumns } from './columns.ts'
import { connect } from './connection.ts'
import { type Event, findEvent, findTicketType, listTicketTypes, type TicketType } from './event.ts'
import { type Guest, type Judged, judge, type Reading } from './guests.ts'
import { count, describeDoubts, describeGuests, describeSheet, describeShortages, guestsOf } from './preview.ts'
import { withProgress } from './progress.ts'
import { openRefusedFile, type RefusedFile } from './refused-file.ts'
import { type Outcome, type Sending, send } from './send.ts'
import { openSheet, type Row, type Sheet } from './sheet.ts'
import { printable, shown } from './shown.ts'

export type ImportOptions = {
  event: string
  ticketType?: string
  map?: Map<string, string>
  metadata?: true
  externalIdPrefix?: string
  sendEmail?: true
  delimiter?: string
  refused?: string
  url?: string
  keyFile?: string
  organisation?: string
  dryRun?: true
  yes?: true
  json?: true
}

export type Surroundings = {
  environment: NodeJS.ProcessEnv
  stdin: NodeJS.ReadableStream & { isTTY?: boolean }
  stderr: { write(text: string): unknown; isTTY?: boolean }
  print: (text: string) => void
  say: (text: string) => void
  stopping: AbortSignal
}

const previewed = 5
const refusalsShown = 5

/** @returns whether every row was imported, or would be. @throws CommandError */
export async function importList(path: string, options: ImportOptions, surroundings: Surroundings): Promise<boolean> {
  const around = withProgress(surroundings)
  const { environment, stdin, say, stopping } = around
  const sheet = await openSheet(path, options.delimiter, countKnown)
  const columns = findColumns(sheet.header, options.map ?? new Map(), options.metadata === true)
  requireSomebodyToAsk(options, stdin)
  const connection = await connect(options, environment, stdin, say)
  try {
    const client = createClient({ ...connection, say, stopping })
    const account = await readAccount(client)
    const event = await findEvent(client, options.event)
    requireOpen(event)
    const ticketTypes = await listTicketTypes(client, event)
    const defaultTicketType = chooseDefault(ticketTypes, options.ticketType, columns.fields.has('ticket_type'))
    say(describeSheet(sheet, columns))
    const reading: Reading = {
      columns,
      width: sheet.header.length,
      ticketTypeOf: remember((name) => findTicketType(ticketTypes, name)),
      externalIdPrefix: options.externalIdPrefix ?? '',
    }
    const work = { sheet, reading, event, ticketTypes, defaultTicketType, client, account, options, around }
    if (options.dryRun) return await tryOut(work)
    return await importAll(work)
  } catch (error) {
    if (error instanceof Stopped) throw new CommandError(1, 'Stopped; nobody was imported.')
    throw error instanceof Refusal ? toCommandError(error) : error
  } finally {
    await connection.close().catch((error: Error) => say(`The key of this import lasts six hours: ${error.message}`))
  }
}

type Work = {
  sheet: Sheet
  reading: Reading
  event: Event
  ticketTypes: TicketType[]
  defaultTicketType: TicketType | undefined
  client: Client
  account: Account
  options: ImportOptions
  around: ReturnType<typeof withProgress<Surroundings>>
}

/** Says what would become of each row, and changes nothing. */
async function tryOut(work: Work): Promise<boolean> {
  const { event, ticketTypes, defaultTicketType, client, options, around } = work
  const { print, say } = around
  const { leftOut } = await lookThrough(work)
  const counts = { new: 0, known: 0, refused: 0 }
  const refusals: { line: number; error: string }[] = []
  const places = new Map<string | undefined, number>()
  const warnings = new Set<string>()
  const sending = { ...sendingOf(work), dryRun: true as const }
  for await (const outcomes of send(judgedRows(work), sending, client, (warning) => warnings.add(warning))) {
    for (const { row, guest, result, error } of outcomes) {
      if (result === 'refused') {
        const refusal = { line: row.line, error: error ?? '' }
        if (options.json) refusals.push(refusal)
        else print(`line ${refusal.line}: ${printable(refusal.error)}`)
      }
      if (result === 'created') {
        const ticketTypeId = guest?.ticket_type_id ?? defaultTicketType?.id
        places.set(ticketTypeId, (places.get(ticketTypeId) ?? 0) + 1)
      }
      counts[result === 'refused' ? result : result === 'created' ? 'new' : 'known'] += 1
    }
  }
  for (const warning of warnings) say(`Warning: ${warning}`)
  const shortages = describeShortages(event, ticketTypes, places)
  for (const shortage of shortages) say(shortage)
  if (options.json)
    print(JSON.stringify({ dry_run: true, event_id: event.id, ...counts, left_out: leftOut, refusals }, null, 2))
  else {
    print(
      `A dry run for ${event.name}: ${count(counts.new)} new, ${count(counts.known)} already there, ${count(counts.refused)} refused. Nothing was changed.`,
    )
  }
  return counts.refused === 0 && shortages.length === 0
}

async function importAll(work: Work): Promise<boolean> {
  const { sheet, event, options, around } = work
  const refusedFile = await openRefusedFile(sheet, options.refused)
  const survey = await lookThrough(work)
  // Where nobody is left to be imported, what remains is to write down why.
  const question = `Import ${guestsOf(survey.guests)} into ${event.name}? [y/N] `
  if (!options.yes && survey.guests > 0 && !(await agrees(question, around))) {
    around.say('Nobody was imported.')
    return false
  }
  const { counts, failure } = await sendAll(work, survey.rows, refusedFile)
  const isComplete = failure === undefined && sum(counts) === survey.rows
  const refusedPath = refusedFile.path()
  if (options.json) {
    around.print(
      JSON.stringify(
        { event_id: event.id, ...counts, left_out: survey.leftOut, refused_file: refusedPath, complete: isComplete },
        null,
        2,
      ),
    )
  } else around.print(describeCounts(event, counts, refusedPath))
  if (!isComplete) {
    around.say(
      `${count(survey.rows - sum(counts))} of ${count(survey.rows)} rows are left. Run the same command again to go on: whoever is there already is not imported twice.`,
    )
  }
  if (failure !== undefined && !(failure instanceof Stopped)) throw afterSending(failure)
  return isComplete && counts.refused === 0
}

const sendingOf = ({ event, defaultTicketType, options }: Work): Sending => ({
  eventId: event.id,
  ticketTypeId: defaultTicketType?.id,
  sendEmail: options.sendEmail === true,
})

const judgedRows = ({ sheet, reading, around }: Work, leftOut = new Map<string, number>()): AsyncGenerator<Judged> =>
  judge(untilStopped(sheet.rows(), around.stopping), reading, leftOut)

/** Reads the list once to its end, and shows what it is: first those by whose letters a wrong encoding shows. */
async function lookThrough(work: Work): Promise<{ rows: number; guests: number; leftOut: number }> {
  const { sheet, event, ticketTypes, defaultTicketType, options, around } = work
  const [beyondAscii, ascii, refused]: [Guest[], Guest[], { row: Row; error: string }[]] = [[], [], []]
  const reasons = new Map<string, number>()
  let [rows, guests] = [0, 0]
  for await (const one of judgedRows(work, reasons)) {
    rows += 1
    if ('guest' in one) {
      guests += 1
      const alike = /\P{ASCII}/u.test(JSON.stringify(one.guest)) ? beyondAscii : ascii
      if (alike.length < previewed) alike.push(one.guest)
    } else if (refused.length < refusalsShown) refused.push(one)
  }
  const leftOut = sum(Object.fromEntries(reasons))
  if (leftOut > 0) {
    const why = [...reasons].map(([reason, number]) => `${count(number)} ${shown(reason)}`).join(', ')
    around.say(`Rows of those who do not come are left out: ${why}.`)
  }
  requireRows(sheet, rows)
  const some = [...beyondAscii, ...ascii].slice(0, previewed)
  if (some.length > 0) around.say(describeGuests(some, ticketTypes, defaultTicketType))
  if (!options.dryRun) {
    for (const { row, error } of refused) around.say(`line ${row.line}: ${printable(error)}`)
    const more = rows - guests - refused.length
    if (more > 0) around.say(`… and ${count(more)} more rows that are refused; --dry-run lists them.`)
  }
  for (const doubt of describeDoubts(event, options.sendEmail === true)) around.say(doubt)
  return { rows, guests, leftOut }
}

/** What became of each row that an answer came for; `failure` is why there are no more. */
async function sendAll(work: Work, rows: number, refusedFile: RefusedFile) {
  const { client, around } = work
  const counts = { created: 0, updated: 0, unchanged: 0, refused: 0 }
  const sending = sendingOf(work)
  const warnings = new Set<string>()
  const { stopping } = around
  stopping.addEventListener('abort', () => around.say('Stopping after the call in progress …'))
  let failure: unknown
  try {
    for await (const outcomes of send(judgedRows(work), sending, client, (warning) => warnings.add(warning))) {
      await refusedFile.add(outcomes.filter(({ result }) => result === 'refused'))
      for (const { result } of outcomes) counts[result] += 1
      around.tell(sum(counts), rows)
      if (stopping.aborted) break
    }
  } catch (error) {
    failure = error
  }
  for (const warning of warnings) around.say(`Warning: ${warning}`)
  return { counts, failure }
}

function describeCounts(
  { name }: Event,
  { created, updated, unchanged, refused }: Record<Outcome['result'], number>,
  refusedPath: string | null,
): string {
  const there = [`${count(created)} new`, `${count(updated)} changed`, `${count(unchanged)} already there`].join(', ')
  const imported = `${guestsOf(created + updated + unchanged)} in ${name}: ${there}.`
  if (refusedPath === null) return imported
  return `${imported}\n${count(refused)} refused, see ${refusedPath}: mend them there, and import that file.`
}

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((a, b) => a + b, 0)

async function* untilStopped(rows: AsyncIterable<Row>, stopping: AbortSignal): AsyncGenerator<Row> {
  for await (const row of rows) {
    if (stopping.aborted) throw new Stopped()
    yield row
  }
}

function requireRows({ path }: Sheet, rows: number): void {
  if (rows === 0) throw new CommandError(2, `${path} has a header, and no guests below it.`)
}

/** A script that forgot --yes is told so, and does not import what nobody looked at. */
function requireSomebodyToAsk({ yes, dryRun, keyFile }: ImportOptions, stdin: Surroundings['stdin']): void {
  if (yes || dryRun || (stdin.isTTY && keyFile !== '-')) return
  throw new CommandError(2, 'Standard input is no terminal, so nobody can be asked. Add --yes, or --dry-run to try it.')
}

async function agrees(question: string, { stdin, stderr }: Surroundings): Promise<boolean> {
  const terminal = createInterface({ input: stdin, output: stderr as NodeJS.WritableStream })
  try {
    const answer = await new Promise<string>((resolve) => {
      // Ctrl-D, and Ctrl-C. A last line that ends the input counts before its end.
      terminal.once('close', () => setImmediate(resolve, ''))
      terminal.once('SIGINT', () => terminal.close())
      terminal.question(printable(question)).then(resolve, () => resolve(''))
    })
    return /^(y|yes)$/i.test(answer.trim())
  } finally {
    terminal.close()
  }
}

async function readAccount({ call, url }: Client): Promise<Account> {
  const { data } = await call<{ data?: Partial<Account> }>('GET', '/me')
  if (data?.scopes === undefined || data.organisation === undefined) {
    throw new CommandError(2, `At ${url} no Usher answers.`)
  }
  const lacks = (['events:read', 'attendees:write'] as const).filter((scope) => !data.scopes?.includes(scope))
  if (lacks.length > 0) {
    throw new CommandError(
      2,
      `The key lacks the scope ${lacks.join(' and ')}. An import needs events:read and attendees:write.`,
    )
  }
  return data as Account
}

function requireOpen({ name, status, slug }: Event): void {
  if (status === 'draft') throw new CommandError(1, `${name} is a draft, and takes nobody yet. Publish ${slug} first.`)
  if (status === 'cancelled') throw new CommandError(1, `${name} is cancelled, and takes nobody.`)
}

/** Of rows that name none: the one that is asked for, or the only one there is. */
function chooseDefault(
  ticketTypes: TicketType[],
  asked: string | undefined,
  isInList: boolean,
): TicketType | undefined {
  if (asked !== undefined) {
    const found = findTicketType(ticketTypes, asked)
    if ('error' in found) throw new CommandError(2, found.error)
    return found
  }
  const active = ticketTypes.filter(({ status }) => status === 'active')
  if (active.length === 1) return active[0]
  if (isInList) return undefined
  const choice = active.length === 0 ? 'It has none' : `It has: ${active.map(({ name }) => name).join(', ')}`
  throw new CommandError(
    2,
    `No column names a ticket type of the event. ${choice}. Choose one for all with --ticket-type.`,
  )
}

function remember<T>(find: (name: string) => T): (name: string) => T {
  const found = new Map<string, T>()
  return (name) => {
    const known = found.get(name) ?? find(name)
    // A list may name something else in every row.
    if (found.size < 1_000) found.set(name, known)
    return known
  }
}

/** 2 says that nothing was sent. */
function afterSending(failure: unknown): unknown {
  const error = failure instanceof Refusal ? toCommandError(failure) : failure
  return error instanceof CommandError ? new CommandError(1, error.message) : error
}

const toCommandError = ({ status, message, hint }: Refusal): CommandError =>
  new CommandError(status === 401 || status === 403 ? 2 : 1, [message, hint].filter(Boolean).join(' '))
