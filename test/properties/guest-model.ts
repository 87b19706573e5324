// What a small event must be like after each act of its guests, worked out without the database: who has a place, who waits, and what each
// ticket says. Every act changes the model, and says what it must be answered.

import { asAnswered, cancelTicket, due, newOrderModel, type OrderModel, pay } from './order-model.ts'

export const guestActs = ['correct', 'answer', 'give_back', 'pass_on'] as const
type Act = (typeof guestActs)[number]

/** A required choice, and a sensitive text. */
export const questionKeys = ['diet', 'allergy'] as const
type Key = (typeof questionKeys)[number]
export type Answers = Partial<Record<Key, string>>
export const wrongAnswers: Record<Key, string> = { diet: 'fish', allergy: 'x'.repeat(501) }

/** closed: nothing can be done now. dead: the link leads nowhere. */
export type Outcome = 'done' | 'invalid' | 'closed' | 'dead'

export type Ticket = {
  type: number
  name: string
  email: string
  company: string | null
  answers: Answers
  isUsed: boolean
  order: OrderModel
  line: number
  /** How often it was passed on: each time its code and its links end. */
  passed: number
}
export type Entry = { type: number; name: string; status: 'waiting' | 'offered' | 'accepted' | 'cancelled' }

export type Model = {
  types: { quantity: number; price: number }[]
  mayDo: readonly Act[]
  questions: Partial<Record<Key, 'active' | 'archived'>>
  tickets: Ticket[]
  entries: Entry[]
}

export const newModel = (types: Model['types']): Model => ({
  types,
  mayDo: [...guestActs],
  questions: {},
  tickets: [],
  entries: [],
})

const statusOf = ({ order, line }: Ticket): string => asAnswered(order).attendees[line]?.status ?? ''

const stands = (ticket: Ticket) => statusOf(ticket) !== 'cancelled'

function free({ types, tickets, entries }: Model, type: number): number {
  const taken = tickets.filter((ticket) => ticket.type === type && stands(ticket)).length
  const offered = entries.filter((entry) => entry.type === type && entry.status === 'offered').length
  return (types[type]?.quantity ?? 0) - taken - offered
}

/** To whoever waits longest. */
function offer(model: Model, type: number): void {
  const next = model.entries.find((entry) => entry.type === type && entry.status === 'waiting')
  if (next && free(model, type) > 0) next.status = 'offered'
}

const may = (model: Model, ticket: Ticket, act: Act) =>
  stands(ticket) && model.mayDo.includes(act) && !(ticket.isUsed && (act === 'give_back' || act === 'pass_on'))

/** Empty: the answer is taken back. */
function write(answers: Answers, given: Answers): void {
  Object.assign(answers, given)
  for (const key of questionKeys) if (answers[key] === '') delete answers[key]
}

const isWrong = ({ questions }: Model, had: Answers, given: Answers) =>
  questionKeys.some(
    (key) => given[key] && given[key] !== had[key] && (questions[key] !== 'active' || given[key] === wrongAnswers[key]),
  )

/** The fields of the answer that guests change, or lose. */
export function shown({ questions }: Model, ticket: Ticket) {
  const { name, email, company, answers } = ticket
  const isAsked = stands(ticket) && questions.diet === 'active' && !('diet' in answers)
  return { name, email, company, answers, status: statusOf(ticket), unanswered: isAsked ? ['diet'] : [] }
}

/** By the API, which takes an order whose answers are missing. */
export function register(model: Model, type: number, names: string[], given: Answers): Outcome {
  if (isWrong(model, {}, given)) return 'invalid'
  if (free(model, type) < names.length) return 'closed'
  const order = newOrderModel(names.map(() => ({ price: BigInt(model.types[type]?.price ?? 0), discount: 0n })))
  for (const [line, name] of names.entries()) {
    const answers = {}
    write(answers, given)
    const email = `${name}@example.com`
    model.tickets.push({ type, name, email, company: null, answers, isUsed: false, order, line, passed: 0 })
  }
  return 'done'
}

export function join(model: Model, type: number, name: string): Outcome {
  if (free(model, type) > 0) return 'closed'
  model.entries.push({ type, name, status: 'waiting' })
  return 'done'
}

export function payAll({ order }: Ticket): bigint {
  const amount = due(order)
  if (amount > 0n) pay(order, amount)
  return amount
}

export function checkIn(ticket: Ticket): Outcome {
  if (statusOf(ticket) !== 'active' || ticket.isUsed) return 'closed'
  ticket.isUsed = true
  return 'done'
}

export function answerByApi(model: Model, ticket: Ticket, given: Answers): Outcome {
  if (isWrong(model, ticket.answers, given)) return 'invalid'
  write(ticket.answers, given)
  return 'done'
}

export function answer(model: Model, ticket: Ticket, given: Answers): Outcome {
  const isAsked = (key: Key) => model.questions[key] === 'active' && (stands(ticket) || key in ticket.answers)
  const isOpen = (key: Key) =>
    isAsked(key) && stands(ticket) && (!(key in ticket.answers) || may(model, ticket, 'answer'))
  // A sensitive answer is not shown: what is left empty stays.
  const isKept = (key: Key) => key === 'allergy' && given[key] === '' && isAsked(key) && key in ticket.answers
  const written = Object.fromEntries(
    questionKeys.filter((key) => key in given && !isKept(key)).map((key) => [key, given[key]]),
  )
  if (questionKeys.some((key) => key in written && !isOpen(key))) return 'closed'
  if (isOpen('diet') && ('diet' in written ? written.diet === '' : !ticket.answers.diet)) return 'invalid'
  return answerByApi(model, ticket, written)
}

export function correct(model: Model, ticket: Ticket, name: string): Outcome {
  if (!may(model, ticket, 'correct')) return 'closed'
  if (name === '') return 'invalid'
  Object.assign(ticket, { name, company: 'Engines' })
  return 'done'
}

export function passOn(model: Model, ticket: Ticket, name: string, email: string): Outcome {
  if (!may(model, ticket, 'pass_on')) return 'closed'
  if (email.endsWith('.invalid')) return 'invalid'
  Object.assign(ticket, { name, email, company: null, answers: {}, passed: ticket.passed + 1 })
  return 'done'
}

export function giveBack(model: Model, ticket: Ticket): Outcome {
  if (!stands(ticket)) return 'done'
  if (!may(model, ticket, 'give_back')) return 'closed'
  cancelTicket(ticket.order, ticket.line)
  offer(model, ticket.type)
  return 'done'
}

/** @returns whether the held place became a ticket. */
export function settle(model: Model, entry: Entry, act: 'take' | 'decline'): boolean {
  if (entry.status !== 'offered') return false
  entry.status = act === 'take' ? 'accepted' : 'cancelled'
  if (act === 'take') return register(model, entry.type, [entry.name], {}) === 'done'
  offer(model, entry.type)
  return false
}
