// `usher import`: brings a list of guests to an event. The list is read twice, to say what it is and then to send it, and each time row by row.
// Run again, it imports nobody twice: import_attendees knows each by external_id, or by e-mail address and name.

import { createInterface } from 'node:readline'
import { type Client, createClient, Refusal, Stopped } from '../client.ts'
import { CommandError } from '../command-error.ts'
import type { Terminal } from '../commands/terminal.ts'
import { countKnown, findColumns } from './columns.ts'
import { connect } from './connection.ts'
import { type Event, findEvent, findTicketType, type TicketType } from './event.ts'
import { type Guest, type Judged, judge, type Reading } from './guests.ts'
import { count, describeDoubts, describeGuests, describeSheet, describeShortages, guestsOf } from './preview.ts'
import { withProgress } from './progress.ts'
import { openRefusedFile } from './refused-file.ts'
import { type Outcome, send } from './send.ts'
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

type Surroundings = Pick<Terminal, 'environment' | 'stdin' | 'stderr' | 'print' | 'say'> & { stopping: AbortSignal }

type Work = {
  sheet: Sheet
  reading: Reading
  event: Event
  ticketTypes: TicketType[]
  defaultTicketType: TicketType | undefined
  client: Client
  options: ImportOptions
  around: ReturnType<typeof withProgress<Surroundings>>
}

const previewed = 5
const refusalsShown = 5

/** @returns whether every row was imported, or would be. @throws CommandError */
export async function importList(path: string, options: ImportOptions, surroundings: Surroundings): Promise<boolean> {
  const around = withProgress(surroundings)
  const { say, stopping } = around
  const sheet = await openSheet(path, options.delimiter, countKnown)
  const columns = findColumns(sheet.header, options.map ?? new Map(), options.metadata === true)
  requireSomebodyToAsk(options, around.stdin)
  const connection = await connect(options, around)
  try {
    const client = createClient(connection, say, stopping)
    await requireScopes(client, connection.url)
    const event = await findEvent(client, options.event)
    requireOpen(event)
    const ticketTypes = await client.list<TicketType>(`/events/${event.id}/ticket-types`)
    const defaultTicketType = chooseDefault(ticketTypes, options.ticketType, columns.fields.has('ticket_type'))
    say(describeSheet(sheet, columns))
    const reading: Reading = {
      columns,
      width: sheet.header.length,
      ticketTypes,
      externalIdPrefix: options.externalIdPrefix ?? '',
    }
    const work = { sheet, reading, event, ticketTypes, defaultTicketType, client, options, around }
    return await (options.dryRun ? tryOut(work) : importAll(work))
  } catch (error) {
    if (error instanceof Stopped) throw new CommandError(1, 'Stopped. No guest was imported.')
    if (!(error instanceof Refusal)) throw error
    throw new CommandError(error.status === 401 || error.status === 403 ? 2 : 1, error.message)
  } finally {
    await connection.close().catch((error: Error) => say(`The key of this import lasts six hours: ${error.message}`))
  }
}

/** Says what would become of each row, and changes nothing. */
async function tryOut(work: Work): Promise<boolean> {
  const { event, ticketTypes, defaultTicketType, options, around } = work
  const { print, say } = around
  const { leftOut } = await lookThrough(work)
  const counts = { new: 0, known: 0, refused: 0 }
  const refusals: { line: number; error: string }[] = []
  const places = new Map<string | undefined, number>()
  await sendAll(work, async (outcomes) => {
    for (const { row, guest, result, error = '' } of outcomes) {
      if (result === 'refused') {
        counts.refused += 1
        if (options.json) refusals.push({ line: row.line, error })
        else print(`line ${row.line}: ${printable(error)}`)
      } else if (result === 'created') {
        counts.new += 1
        const ticketTypeId = guest?.ticket_type_id ?? defaultTicketType?.id
        places.set(ticketTypeId, (places.get(ticketTypeId) ?? 0) + 1)
      } else counts.known += 1
    }
  })
  const shortages = describeShortages(event, ticketTypes, places)
  for (const shortage of shortages) say(shortage)
  if (options.json) printJson(around, { dry_run: true, event_id: event.id, ...counts, left_out: leftOut, refusals })
  else {
    print(
      `A dry run for ${event.name}: ${count(counts.new)} new, ${count(counts.known)} already there, ${count(counts.refused)} refused. Nothing was changed.`,
    )
  }
  return counts.refused === 0 && shortages.length === 0
}

async function importAll(work: Work): Promise<boolean> {
  const { sheet, event, options, around } = work
  const { print, say, stopping } = around
  const refusedFile = await openRefusedFile(sheet, options.refused)
  const { rows, guests, leftOut } = await lookThrough(work)
  // Where nobody is left to be imported, what remains is to write down why.
  const question = `Import ${guestsOf(guests)} into ${event.name}? [y/N] `
  if (!options.yes && guests > 0 && !(await agrees(question, around))) {
    say('Nobody was imported.')
    return false
  }
  stopping.addEventListener('abort', () => say('Stopping after the call in progress …'))
  const counts = { created: 0, updated: 0, unchanged: 0, refused: 0 }
  const done = () => Object.values(counts).reduce((a, b) => a + b, 0)
  const failure: unknown = await sendAll(work, async (outcomes) => {
    await refusedFile.add(outcomes.filter(({ result }) => result === 'refused'))
    for (const { result } of outcomes) counts[result] += 1
    around.tell(done(), rows)
  }).catch((error) => error)

  const isComplete = done() === rows
  const refusedPath = refusedFile.path()
  if (options.json) {
    const result = { ...counts, left_out: leftOut, refused_file: refusedPath, complete: isComplete }
    printJson(around, { event_id: event.id, ...result })
  } else print(describeCounts(event, counts, refusedPath))
  if (!isComplete) {
    say(
      `${count(rows - done())} of ${count(rows)} rows are left. Run the same command again to continue: no guest is imported twice.`,
    )
  }
  // 2 would say that nothing was sent.
  if (failure instanceof CommandError || failure instanceof Refusal) throw new CommandError(1, failure.message)
  if (failure !== undefined && !(failure instanceof Stopped)) throw failure
  return isComplete && counts.refused === 0
}

/** Reads the list once to its end, and shows what it is: first those by whose letters a wrong encoding shows. */
async function lookThrough(work: Work): Promise<{ rows: number; guests: number; leftOut: number }> {
  const { sheet, event, ticketTypes, defaultTicketType, options, around } = work
  const { say } = around
  const [beyondAscii, ascii, refused]: [Guest[], Guest[], { row: Row; error: string }[]] = [[], [], []]
  const reasons = new Map<string, number>()
  let [rows, guests] = [0, 0]
  for await (const one of judgedRows(work, reasons)) {
    if (around.stopping.aborted) throw new Stopped()
    rows += 1
    if ('guest' in one) {
      guests += 1
      const alike = /\P{ASCII}/u.test(JSON.stringify(one.guest)) ? beyondAscii : ascii
      if (alike.length < previewed) alike.push(one.guest)
    } else if (refused.length < refusalsShown) refused.push(one)
  }
  if (reasons.size > 0) {
    const why = [...reasons].map(([reason, number]) => `${count(number)} ${shown(reason)}`).join(', ')
    say(`Rows of cancelled guests are skipped: ${why}.`)
  }
  if (rows === 0) throw new CommandError(2, `${sheet.path} has a header and no guests.`)
  const some = [...beyondAscii, ...ascii].slice(0, previewed)
  if (some.length > 0) say(describeGuests(some, ticketTypes, defaultTicketType))
  if (!options.dryRun) {
    for (const { row, error } of refused) say(`line ${row.line}: ${printable(error)}`)
    const more = rows - guests - refused.length
    if (more > 0) say(`… and ${count(more)} more refused rows. List them with --dry-run.`)
  }
  for (const doubt of describeDoubts(event, options.sendEmail === true)) say(doubt)
  return { rows, guests, leftOut: [...reasons.values()].reduce((a, b) => a + b, 0) }
}

const judgedRows = ({ sheet, reading }: Work, leftOut = new Map<string, number>()): AsyncGenerator<Judged> =>
  judge(sheet.rows(), reading, leftOut)

/** Tells what became of each row that an answer came for, and at the end what the answers warn of. */
async function sendAll(work: Work, tell: (outcomes: Outcome[]) => Promise<void>): Promise<void> {
  const { event, defaultTicketType, client, options, around } = work
  const warnings = new Set<string>()
  const sending = {
    eventId: event.id,
    ticketTypeId: defaultTicketType?.id,
    sendEmail: options.sendEmail === true,
    dryRun: options.dryRun,
  }
  try {
    for await (const outcomes of send(judgedRows(work), sending, client, warnings)) await tell(outcomes)
  } finally {
    for (const warning of warnings) around.say(`Warning: ${warning}`)
  }
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

const printJson = ({ print }: Surroundings, value: unknown): void => print(JSON.stringify(value, null, 2))

/** A script that forgot --yes is told so, and does not import what nobody looked at. */
function requireSomebodyToAsk({ yes, dryRun, keyFile }: ImportOptions, stdin: Surroundings['stdin']): void {
  if (yes || dryRun || (stdin.isTTY && keyFile !== '-')) return
  throw new CommandError(
    2,
    'Standard input is not a terminal, so there is no prompt. Add --yes, or --dry-run to try it.',
  )
}

/** Ctrl-C and Ctrl-D are a no. */
async function agrees(question: string, { stdin, stderr, stopping }: Surroundings): Promise<boolean> {
  stderr.write(printable(question))
  for await (const answer of createInterface({ input: stdin, signal: stopping }))
    return /^(y|yes)$/i.test(answer.trim())
  return false
}

async function requireScopes({ call }: Client, url: string): Promise<void> {
  const { data } = await call<{ data?: { scopes?: string[] } }>('GET', '/me')
  if (data?.scopes === undefined) throw new CommandError(2, `The server at ${url} is not Usher.`)
  const lacks = ['events:read', 'attendees:write'].filter((scope) => !data.scopes?.includes(scope))
  if (lacks.length === 0) return
  throw new CommandError(
    2,
    `The key lacks the scope ${lacks.join(' and ')}. An import needs events:read and attendees:write.`,
  )
}

function requireOpen({ name, status, slug }: Event): void {
  if (status === 'draft')
    throw new CommandError(1, `${name} is a draft and takes no guests yet. Publish ${slug} first.`)
  if (status === 'cancelled') throw new CommandError(1, `${name} is cancelled and takes no guests.`)
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
    `No column contains a ticket type of the event. ${choice}. Choose one for all with --ticket-type.`,
  )
}
