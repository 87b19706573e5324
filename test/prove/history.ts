// What clients were answered, held against what is there in the end. Pure: a history and a state in, problems out.
//
// A write carries a key that its effect keeps (an external id, a reference), so each effect is found by the call that asked for it.

/** One attempt at a call. Attempts with one key are the same call, sent again. */
export type Attempt = {
  key: string
  operation: string
  start: number
  end: number
  /** unknown: no answer, or one that does not say whether it was done. */
  outcome: 'ok' | 'refused' | 'unknown'
  /** HTTP status and code of a refusal, or why there was no answer. */
  why?: string
  /** Of an effect that was answered: which. */
  id?: string
  /** Sent without an idempotency key. */
  isUnkeyed?: boolean
  /** What it does keeps no key. */
  isTraceless?: boolean
  /** Money received, less money given back, that the call moves, and of which order. */
  money?: { orderId: string; amount: number }
  /** Of an order: what the page said that it costs. */
  total?: number
}

/** Something that a call did, as it is found afterwards. */
export type Effect = { key: string; id: string; notifications: number; auditEntries: number; total?: number }

/** The moments at which the mail service took an e-mail, and how often it was tried. */
export type Mail = { id: string; at: number[]; attempts: number }

export type State = {
  effects: Effect[]
  /** How often the network sent the request of a key once more than it came. */
  copies: Record<string, number>
  limits: { name: string; taken: number; limit: number }[]
  /** Of each order what it has, less what was given back. */
  money: { orderId: string; kept: number }[]
  /** Notifications that the receiver was to get and did not. */
  undelivered: string[]
  /** E-mails that guests were to get and did not. */
  unsent: string[]
  /** E-mails of a test organisation that reached the mail service. */
  leaked: string[]
  mails: Mail[]
  /** When the courier, or a connection of it, was not to be relied on. */
  courierCuts: { from: number; until: number }[]
  /** What was answered to a key that may not have it. */
  trespasses: { about: string; detail: string }[]
  /** Rows that break an invariant (src/local/invariants). */
  disagreements: { check: string; id: string; stored: string; expected: string }[]
}

export const rules = [
  'lost write',
  'double write',
  'refused write was done',
  'write of nobody',
  'answers differ',
  'undocumented answer',
  'not notified',
  'not in the audit trail',
  'over a limit',
  'money does not add up',
  'webhook lost',
  'e-mail lost',
  'e-mail sent twice',
  'test e-mail sent',
  'trespass',
  'invariant',
] as const
export type Problem<Rule extends string = (typeof rules)[number]> = { rule: Rule; about: string; detail: string }

// What a client may be answered that sends nothing wrong, with a good key: besides a success a rule of the domain, or that it can come again.
// A page whose link has ended meanwhile is not found.
const documented =
  /^(503 (temporarily_unavailable|outcome_unknown|out_of_time)|408 request_timeout|409 |422 of a forged form|(404|429|503) of a )/
// A call that was sent a moment before the fault may be settled a moment after it.
const settlingMs = 5_000

export function checkHistory(history: Attempt[], state: State): Problem[] {
  const problems: Problem[] = []
  const add: Add = (rule, about, detail) => problems.push({ rule, about, detail })
  const calls = Map.groupBy(history, ({ key }) => key)
  const effects = Map.groupBy(state.effects, ({ key }) => key)

  for (const [key, attempts] of calls) {
    const found = effects.get(key) ?? []
    const done = attempts.filter(({ outcome }) => outcome === 'ok')
    const about = `${attempts[0]?.operation} ${key}`
    const told = attempts.map(({ outcome, why }) => [outcome, why].filter(Boolean).join(' ')).join(', ')
    const isTraceless = attempts.some((attempt) => attempt.isTraceless)
    if (done.length > 0 && found.length === 0 && !isTraceless)
      add('lost write', about, `answered ${told}, and it is not there`)
    // Where no idempotency key says that they are one, the network may make two of one.
    const most = attempts.every(({ isUnkeyed }) => isUnkeyed) ? 1 + (state.copies[key] ?? 0) : 1
    if (found.length > most) add('double write', about, `${found.length} times there, answered ${told}`)
    // A refusal is not kept: what the network sends once more may find a place that has become free.
    const isCopied = (state.copies[key] ?? 0) > 0
    if (found.length > 0 && !isCopied && attempts.every(({ outcome }) => outcome === 'refused')) {
      add('refused write was done', about, `answered ${told}, and it is there`)
    }
    for (const { why = '' } of attempts) {
      if (/^\d{3} /.test(why) && !documented.test(why)) add('undocumented answer', about, why)
    }
    for (const { id, total } of done) {
      if (total !== undefined && found.length === 1 && found[0]?.total !== total)
        add('money does not add up', about, `shown ${total}, but the order costs ${found[0]?.total}`)
      if (id !== undefined && found.length === 1 && found[0]?.id !== id)
        add('answers differ', about, `answered ${id}, but ${found[0]?.id} is there`)
    }
  }
  for (const [key, found] of effects) {
    if (!calls.has(key)) add('write of nobody', key, `${found[0]?.id} is there, and nobody asked for it`)
  }
  for (const { key, id, notifications, auditEntries } of state.effects) {
    if (notifications !== 1) add('not notified', key, `${id} has ${notifications} notifications`)
    if (auditEntries !== 1) add('not in the audit trail', key, `${id} has ${auditEntries} entries`)
  }
  for (const { name, taken, limit } of state.limits) {
    if (taken > limit) add('over a limit', name, `${taken} of ${limit}`)
  }
  checkMoney(calls, state, add)
  for (const id of state.undelivered) add('webhook lost', id, 'never received')
  for (const id of state.unsent) add('e-mail lost', id, 'never sent')
  for (const id of state.leaked) add('test e-mail sent', id, 'is of a test organisation')
  checkMails(state, add)
  for (const { about, detail } of state.trespasses) add('trespass', about, detail)
  for (const { check, id, stored, expected } of state.disagreements)
    add('invariant', check, `${id}: ${stored}, not ${expected}`)
  return problems
}

type Add = (rule: Problem['rule'], about: string, detail: string) => void

/** An e-mail comes again only where the courier could not say, or not be told, that the mail service has it. */
function checkMails({ mails, courierCuts }: State, add: Add): void {
  for (const { id, at, attempts } of mails) {
    const times = at.toSorted((a, b) => a - b)
    if (times.length > attempts) add('e-mail sent twice', id, `${times.length} times in ${attempts} attempts`)
    for (const [i, second] of times.slice(1).entries()) {
      const first = times[i] ?? 0
      const isCut = courierCuts.some(({ from, until }) => from <= second && until >= first - settlingMs)
      if (!isCut) add('e-mail sent twice', id, `at ${first} and ${second} ms, without a fault`)
    }
  }
}

/** What an order has is what was acknowledged of it, and of each call without an answer all or nothing: so between two sums. */
function checkMoney(calls: Map<string, Attempt[]>, { money }: State, add: Add): void {
  const bounds = new Map<string, { least: number; most: number }>()
  for (const attempts of calls.values()) {
    const moved = attempts.find((attempt) => attempt.money)?.money
    const isDone = attempts.some(({ outcome }) => outcome === 'ok')
    if (moved === undefined || (!isDone && attempts.every(({ outcome }) => outcome === 'refused'))) continue
    const bound = bounds.get(moved.orderId) ?? { least: 0, most: 0 }
    if (isDone || moved.amount < 0) bound.least += moved.amount
    if (isDone || moved.amount > 0) bound.most += moved.amount
    bounds.set(moved.orderId, bound)
  }
  for (const { orderId, kept } of money) {
    const { least, most } = bounds.get(orderId) ?? { least: 0, most: 0 }
    if (kept < least || kept > most) {
      add('money does not add up', orderId, `has ${kept}, answered ${least === most ? least : `${least} to ${most}`}`)
    }
  }
}
