// What guests do by the links of their e-mails: the forms of tickets and of offers, in any order among what organisers do. Each answer, and
// the whole event after it, is held against a model that was worked out without the database.

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { guestUrl, press } from '../support/guest-page.ts'
import { offerUrl } from '../support/offers.ts'
import { createOrganiser } from '../support/organiser.ts'
import * as model from './guest-model.ts'
import { brokenRules } from './invariants.ts'
import { asAnswered } from './order-model.ts'
import { expectProperty, withTime } from './property.ts'

const usualRuns = 2

const answers = fc.record(
  {
    diet: fc.constantFrom('vegan', 'vegan', 'meat', 'meat', '', model.wrongAnswers.diet),
    allergy: fc.constantFrom('nuts', 'nuts', 'milk', 'milk', '', model.wrongAnswers.allergy),
  },
  { requiredKeys: [] },
)
const doings = `register register join join pay pay check_in answer_by_api question may answer answer answer correct
  pass_on pass_on give_back give_back give_back old_link take take take decline`
const step = fc.record({
  do: fc.constantFrom(...doings.split(/\s+/)),
  whom: fc.nat(99),
  type: fc.nat(1),
  answers,
  isGroup: fc.boolean(),
  isWrong: fc.nat(3).map((n) => n === 0),
  key: fc.constantFrom(...model.questionKeys),
  acts: fc.oneof(fc.constant([...model.guestActs]), fc.subarray([...model.guestActs])),
})
type Step = typeof step extends fc.Arbitrary<infer Value> ? Value : never

const day = fc.record({
  quantities: fc.tuple(fc.integer({ min: 2, max: 3 }), fc.integer({ min: 1, max: 2 })),
  steps: fc.array(step, { minLength: 24, maxLength: 40, size: 'max' }),
})

/** Both questions are asked, no place is free, and one waits for each type. */
const first: Partial<Step>[] = [
  ...model.questionKeys.map((key) => ({ do: 'question', key, isWrong: false })),
  ...[0, 0, 0, 1, 1].map((type) => ({ do: 'register', type, isGroup: type === 0, answers: {} })),
  ...[0, 1, 0].map((type) => ({ do: 'join', type })),
]

const questions = {
  diet: { type: 'one_of', required: true, options: ['vegan', 'meat'].map((key) => ({ key, label: key })) },
  allergy: { sensitive: true, delete_after_days: 7 },
}
type Order = { id: string; attendees: { id: string; ticket_code: string }[] }
type Attendee = { id: string; ticket_code: string; [field: string]: unknown }

const outcomeOf = ({ status }: { status: number }): model.Outcome | number =>
  status < 400 ? 'done' : (({ 404: 'dead', 409: 'closed', 422: 'invalid' } as const)[status] ?? status)

/** An event beside its model. What is known of a ticket or an entry has its place in the model. */
async function open(quantities: number[]) {
  const { event, send } = await createOrganiser()
  const types = quantities.map((quantity, i) => ({ quantity, price: i * 4999 }))
  const typeIds = await Promise.all(types.map((type) => event.ticketType(type)))
  const modelled = model.newModel(types)
  const { tickets, entries } = modelled
  await send('PATCH', `/events/${event.id}`, { guests_may: modelled.mayDo })
  const known: { id: string; orderId: string; codes: string[] }[] = []
  const entryIds: string[] = []
  const questionIds = new Map<string, string>()
  const oldLinks: string[] = []
  let count = 0

  const learn = ({ id: orderId, attendees }: Order) =>
    known.push(...attendees.map(({ id, ticket_code }) => ({ id, orderId, codes: [ticket_code] })))
  const read = async (path: string) => (await send('GET', path)).body.data
  const byApi = async (...request: Parameters<typeof send>) => outcomeOf(await send(...request))

  /** @returns what it was answered, and what it must be; undefined where there is nobody whom it could be about. */
  async function carryOut({ do: act, whom, type, answers, isGroup, isWrong, key, acts }: Step) {
    const name = `Guest-${count++}`
    const email = `${name}@example.com`
    const given = Object.entries(answers)
    const asJson = Object.fromEntries(given.map(([key, value]) => [key, value || null]))
    switch (act) {
      case 'may':
        modelled.mayDo = acts
        return [await byApi('PATCH', `/events/${event.id}`, { guests_may: acts }), 'done']
      case 'question': {
        const id = questionIds.get(key)
        const status = id && isWrong ? 'archived' : 'active'
        const question = { key, label: key, ...questions[key] }
        const answered = id
          ? await send('PATCH', `/questions/${id}`, { status })
          : await send('POST', `/events/${event.id}/questions`, question)
        questionIds.set(key, answered.body.data.id)
        modelled.questions[key] = status
        return [outcomeOf(answered), 'done']
      }
      case 'register': {
        const names = [name, ...(isGroup ? ['Other'] : [])]
        const answered = await send('POST', `/events/${event.id}/registrations`, {
          ticket_type_id: typeIds[type],
          attendees: names.map((name) => ({ name, email: `${name}@example.com`, answers: asJson })),
          ...(type === 1 && { payment_method: 'invoice' }),
        })
        if (answered.status < 300) learn(answered.body.data)
        return [outcomeOf(answered), model.register(modelled, type, names, answers)]
      }
      case 'join': {
        const person = { ticket_type_id: typeIds[type], name, email }
        const answered = await send('POST', `/events/${event.id}/waiting-list`, person)
        if (answered.status < 300) entryIds.push(answered.body.data.id)
        return [outcomeOf(answered), model.join(modelled, type, name)]
      }
      case 'old_link': {
        const link = oldLinks[whom % oldLinks.length]
        return link === undefined ? link : [outcomeOf(await press(link, acts[0] ?? 'correct', { name, email })), 'dead']
      }
      case 'take':
      case 'decline': {
        const offers = entries.filter(({ status }) => status !== 'waiting')
        const entry = offers[whom % offers.length]
        if (entry === undefined) return
        const id = entryIds[entries.indexOf(entry)] as string
        const isTaken = model.settle(modelled, entry, act)
        const answered = await press(`${await offerUrl(id)}/${act === 'take' ? 'order' : act}`, '')
        const { order_id, attendee_id } = await read(`/waiting-list-entries/${id}`)
        if (isTaken) learn({ id: order_id, attendees: [await read(`/attendees/${attendee_id}`)] })
        return [outcomeOf(answered), 'done']
      }
    }
    const ticket = tickets[whom % tickets.length]
    if (ticket === undefined) return
    const { id, orderId, codes } = known[tickets.indexOf(ticket)] as (typeof known)[number]
    const url = await guestUrl(id)
    const byForm = async (fields = {}) => outcomeOf(await press(url, act, fields))
    switch (act) {
      case 'pay': {
        const amount = Number(model.payAll(ticket))
        return amount === 0 ? undefined : [await byApi('POST', `/orders/${orderId}/payments`, { amount }), 'done']
      }
      case 'check_in': {
        const scan = { event_id: event.id, code: codes.at(-1) }
        return [await byApi('POST', '/check-ins', scan), model.checkIn(ticket)]
      }
      case 'answer_by_api': {
        const answered = await byApi('PATCH', `/attendees/${id}`, { answers: asJson })
        return [answered, model.answerByApi(modelled, ticket, answers)]
      }
      case 'answer': {
        const fields = Object.fromEntries(given.map(([key, value]) => [`answer.${key}`, value]))
        return [await byForm({ asked: Object.keys(answers), ...fields }), model.answer(modelled, ticket, answers)]
      }
      case 'correct': {
        const other = isWrong ? '' : name
        return [await byForm({ name: other, company: 'Engines' }), model.correct(modelled, ticket, other)]
      }
      case 'give_back':
        return [await byForm(), model.giveBack(modelled, ticket)]
      case 'pass_on': {
        const to = isWrong ? 'nobody@none.invalid' : email
        const must = model.passOn(modelled, ticket, name, to)
        if (must === 'done') oldLinks.push(url)
        return [await byForm({ name, email: to }), must]
      }
    }
  }

  async function expectAsModelled(): Promise<void> {
    const attendees: Attendee[] = await read(`/attendees?event_id=${event.id}&limit=100`)
    const orders: Order[] = await read(`/orders?event_id=${event.id}&limit=100`)
    expect(attendees).toHaveLength(tickets.length)
    for (const [i, ticket] of tickets.entries()) {
      const { id, orderId, codes } = known[i] as (typeof known)[number]
      const found = attendees.find((attendee) => attendee.id === id)
      for (const [field, value] of Object.entries(model.shown(modelled, ticket)))
        expect(found).toHaveProperty(field, value)
      expect(found?.checked_in_at !== null).toBe(ticket.isUsed)
      // The code changed as often as the ticket was passed on.
      if (found && !codes.includes(found.ticket_code)) codes.push(found.ticket_code)
      expect([codes.length, codes.at(-1)]).toEqual([ticket.passed + 1, found?.ticket_code])
      expect(orders.find(({ id }) => id === orderId)).toMatchObject(asAnswered(ticket.order))
    }
    const listed: { id: string; status: string }[] = await read(`/events/${event.id}/waiting-list?limit=100`)
    const statuses = entryIds.map((id) => listed.find((entry) => entry.id === id)?.status)
    expect(statuses).toEqual(entries.map(({ status }) => status))
    expect(await brokenRules(event.id)).toEqual([])
  }
  return { carryOut, expectAsModelled }
}

test('the forms of guests do what a model says, and the event is as it says', withTime(usualRuns), () =>
  expectProperty(
    usualRuns,
    fc.asyncProperty(day, async ({ quantities, steps }) => {
      const { carryOut, expectAsModelled } = await open(quantities)
      for (const step of [...first.map((one) => ({ ...(steps[0] as Step), ...one })), ...steps]) {
        const [was, must] = (await carryOut(step)) ?? []
        expect(was, JSON.stringify(step)).toBe(must)
        await expectAsModelled()
      }
    }),
  ),
)
