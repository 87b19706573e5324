// Questions of an event, and the answers of its guests: over REST, and by rows in Studio.

import { expect, inject, test } from 'vitest'
import { studio } from '../support/database.ts'
import { once } from '../support/once.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'

const rows = async (sql: string, values: unknown[]) => (await studio.query(sql, values)).rows

const options = [
  { key: 'meat', label: 'Everything' },
  { key: 'vegan', label: 'Vegan' },
]

async function asking() {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const send = rest(await organisation.key())
  const ask = async (fields: Record<string, unknown>) => {
    const { status, body } = await send('POST', `/events/${event.id}/questions`, { label: 'Question', ...fields })
    expect(status, JSON.stringify(body)).toBe(201)
    return body.data
  }
  const register = (answers: unknown, fields = {}) =>
    send('POST', `/events/${event.id}/registrations`, {
      ticket_type_id: event.ticketTypeId,
      name: 'Mary Jackson',
      email: 'mary@example.com',
      answers,
      ...fields,
    })
  const registered = async (answers: unknown) => {
    const { status, body } = await register(answers)
    expect(status, JSON.stringify(body)).toBe(201)
    return body.data.attendees[0]
  }
  return { organisation, event, send, ask, register, registered }
}

const shared = once(async () => {
  const world = await asking()
  const types = ['text', 'long_text', 'number', 'yes_no', 'date', 'email', 'phone', 'country']
  for (const type of types) await world.ask({ key: type, type })
  for (const type of ['one_of', 'several_of']) await world.ask({ key: type, type, options })
  await world.send('PATCH', `/questions/${(await world.ask({ key: 'old' })).id}`, { status: 'archived' })
  const other = await world.event.ticketType({ name: 'Other' })
  await world.ask({ key: 'others', ticket_type_ids: [other] })
  return world
})

test('a question is created, listed in its order, changed and archived', async () => {
  const { event, send, ask } = await asking()
  const diet = await ask({ key: 'diet', type: 'one_of', options, required: true, position: 1 })
  expect(diet).toMatchObject({
    object: 'question',
    key: 'diet',
    options,
    required: true,
    ask: 'both',
    status: 'active',
  })
  const size = await ask({ key: 'size' })
  expect((await send('GET', `/events/${event.id}/questions`)).body).toMatchObject({
    data: [size, diet],
    has_more: false,
  })
  const changed = await send('PATCH', `/questions/${diet.id}`, {
    translations: { de: { label: 'Kost' } },
    status: 'archived',
  })
  expect(changed.body.data).toMatchObject({ translations: { de: { label: 'Kost' } }, status: 'archived', version: 2 })
})

test.each([
  ['key', { key: 'Diet!' }],
  ['label', { label: ' ' }],
  ['translations', { translations: { xx: { label: 'Diet' } } }],
  ['translations', { translations: { de: { text: 'Kost' } } }],
  ['options', { type: 'text', options }],
  ['options', { type: 'one_of' }],
  ['options', { type: 'one_of', options: [options[0], options[0]] }],
  ['delete_after_days', { sensitive: true }],
  ['delete_after_days', { delete_after_days: 3 }],
  ['ticket_type_ids', { ticket_type_ids: ['0190b5a0-0000-7000-8000-000000000000'] }],
])('a question with a wrong %s is refused', async (param, fields) => {
  const { event, send } = await shared()
  const { status, body } = await send('POST', `/events/${event.id}/questions`, { key: 'new', label: 'New', ...fields })
  expect([status, body.error.param]).toEqual([422, expect.stringContaining(param)])
})

test('a second question with the key is refused', async () => {
  const { event, send } = await shared()
  const { body } = await send('POST', `/events/${event.id}/questions`, { key: 'text', label: 'Again' })
  expect(body.error).toMatchObject({ code: 'already_exists', param: 'key' })
})

const good = {
  text: 'M',
  long_text: 'By train.\nOn Monday.',
  number: 2.5,
  yes_no: false,
  one_of: 'vegan',
  several_of: ['vegan', 'meat'],
  date: '2027-02-28',
  email: 'zoe@example.com',
  phone: '+49 40 123456',
  country: 'DE',
}

test('answers of each type are kept as they were sent', async () => {
  const { send, registered } = await shared()
  const { id, answers, unanswered } = await registered(good)
  expect([answers, unanswered]).toEqual([good, []])
  expect((await send('GET', `/attendees/${id}`)).body.data.answers).toEqual(good)
})

test.each([
  ['text', 'two\nlines'],
  ['text', 7],
  ['text', 'x'.repeat(501)],
  ['long_text', ''],
  ['number', '2'],
  ['yes_no', 'yes'],
  ['one_of', 'Vegan'],
  ['several_of', 'vegan'],
  ['several_of', []],
  ['several_of', ['vegan', 'vegan']],
  ['several_of', ['fish']],
  ['date', '2027-02-29'],
  ['email', 'zoe@'],
  ['phone', 'call me'],
  ['country', 'Germany'],
  ['old', 'x'],
  ['others', 'x'],
  ['nothing', 'x'],
])('an answer to %s that is %j is refused, and nobody registered', async (key, answer) => {
  const { event, register } = await shared()
  const before = await event.sold()
  const { status, body } = await register({ ...good, [key]: answer })
  expect([status, body.error.code, body.error.param]).toEqual([
    422,
    'validation_failed',
    expect.stringContaining(`answers.${key}`),
  ])
  expect(await event.sold()).toBe(before)
})

test('an answer of 100 kB is refused', async () => {
  const { register } = await shared()
  expect((await register({ long_text: 'x'.repeat(100_000) })).status).toBe(422)
})

test('all answers of a guest together are at most 50,000 characters', async () => {
  const { ask, register } = await asking()
  const keys = Array.from({ length: 11 }, (_, i) => `text_${i}`)
  for (const key of keys) await ask({ key, type: 'long_text' })
  const answers = (of: string[]) => Object.fromEntries(of.map((key) => [key, 'x'.repeat(4900)]))
  const { status, body } = await register(answers(keys))
  expect([status, body.error.param]).toEqual([422, expect.stringMatching(/^answers\.text_/)])
  expect((await register(answers(keys.slice(1)))).status).toBe(201)
})

test('answers are merged, taken back by null, and kept when the question changes', async () => {
  const { send, ask, registered } = await asking()
  const diet = await ask({ key: 'diet', type: 'one_of', options, required: true })
  await ask({ key: 'size' })
  const { id, unanswered } = await registered({ size: 'M' })
  expect(unanswered).toEqual(['diet'])
  const patch = async (answers: object) => (await send('PATCH', `/attendees/${id}`, { answers })).body.data
  expect(await patch({ diet: 'vegan' })).toMatchObject({ answers: { size: 'M', diet: 'vegan' }, unanswered: [] })
  await send('PATCH', `/questions/${diet.id}`, { options: [{ key: 'fish', label: 'Fish' }] })
  expect(await patch({ size: null })).toMatchObject({ answers: { diet: 'vegan' } })
})

test('a sensitive answer is in reads of attendees alone, and deleted after the event', async () => {
  const { organisation, event, send, ask, registered } = await asking()
  await ask({ key: 'allergies', sensitive: true, delete_after_days: 3 })
  await ask({ key: 'size' })
  const { id, answers } = await registered({ allergies: 'secret nuts', size: 'M' })
  expect(answers).toEqual({ size: 'M' })
  await send('PATCH', `/attendees/${id}`, { answers: { allergies: 'secret gluten' }, company: 'Acme' })
  const read = async () => (await send('GET', `/attendees/${id}`)).body.data.answers
  expect(await read()).toEqual({ size: 'M', allergies: 'secret gluten' })
  const found = await rows(
    `select 'notifications' from public.notifications where organisation_id = $1 and data::text ~ 'secret'
     union all select 'audit' from public.audit_entries where organisation_id = $1 and changes::text ~ 'secret'
     union all select 'idempotency' from private.idempotency_records i where i::text ~ 'secret (nuts|gluten)'`,
    [organisation.id],
  )
  expect(found).toEqual([])
  await studio.query(
    "update public.events set starts_at = now() - interval '9 days', ends_at = now() - interval '4 days' where id = $1",
    [event.id],
  )
  await studio.query('select private.delete_sensitive_answers(10)')
  expect(await read()).toEqual({ size: 'M' })
})

test('a wrong answer to a sensitive question that was answered is refused by the name that was sent', async () => {
  const { send, ask, registered } = await asking()
  await ask({ key: 'diet', type: 'one_of', options, sensitive: true, delete_after_days: 3 })
  const { id } = await registered({ diet: 'vegan' })
  const { status, body } = await send('PATCH', `/attendees/${id}`, { answers: { diet: 'fish' } })
  expect([status, body.error.param]).toEqual([422, 'answers.diet'])
})

test('a question with answers is not deleted in Studio, and answers there are an object', async () => {
  const { ask, registered } = await asking()
  const question = await ask({ key: 'allergies', sensitive: true, delete_after_days: 3 })
  const remove = () => studio.query('delete from public.questions where id = $1', [question.id])
  const { id } = await registered({ allergies: 'nuts' })
  await expect(remove()).rejects.toThrow('The question has answers.')
  for (const answers of ['[1]', '"x"'])
    await expect(studio.query('update public.attendees set answers = $2 where id = $1', [id, answers])).rejects.toThrow(
      'Answers must be an object by the keys of the questions.',
    )
  await studio.query("update public.attendees set sensitive_answers = '{}' where id = $1", [id])
  expect((await remove()).rowCount).toBe(1)
})

test('an import and a row of the view answer as a registration does', async () => {
  const { organisation, event, send, ask } = await asking()
  await ask({ key: 'size' })
  const guest = { name: 'Ann', email: 'ann@example.com', ticket_type_id: event.ticketTypeId }
  const bring = async (answers: unknown) =>
    (await send('POST', `/events/${event.id}/attendees/import`, { attendees: [{ ...guest, answers }] })).body.data
      .results[0]
  expect(await bring({ size: 'M' })).toMatchObject({ result: 'created' })
  expect(await bring({ size: 'M' })).toMatchObject({ result: 'unchanged' })
  expect(await bring({ size: 'L' })).toMatchObject({ result: 'updated' })
  expect(await bring({ seize: 'L' })).toMatchObject({ result: 'refused', error: { param: 'answers.seize' } })
  await studio.query(
    "insert into public.registrations (event_id, ticket_type_id, name, email, answers) values ($1, $2, 'Bo', 'bo@example.com', $3)",
    [event.id, event.ticketTypeId, { size: 'S' }],
  )
  expect(
    await rows('select answers from public.attendees where organisation_id = $1 order by id', [organisation.id]),
  ).toEqual([{ answers: { size: 'L' } }, { answers: { size: 'S' } }])
})

test('a plan adds questions, and a copy of the event has them', async () => {
  const { event, send, ask } = await asking()
  await ask({ key: 'size', required: true })
  const plan = async (body: object) => {
    const { body: planned } = await send('POST', '/event-plans', body)
    const { status, body: applied } = await send('POST', '/event-plans', { plan_id: planned.data.plan_id })
    expect(status, JSON.stringify(planned)).toBe(200)
    return applied.data
  }
  await plan({ event: event.id, questions: [{ key: 'diet', type: 'one_of', label: 'Diet', options }] })
  const copy = await plan({ copy_of: event.id, move: 'P1Y' })
  const { body } = await send('GET', `/events/${copy.event.id}/questions`)
  expect(body.data.map(({ key }: { key: string }) => key)).toEqual(['size', 'diet'])
})

test('attendees are found by an answer and by what they have not answered, counted, exported and shown at the door', async () => {
  const { organisation, event, send, ask, registered } = await asking()
  const diet = await ask({ key: 'diet', type: 'one_of', options, required: true, at_door: true })
  await ask({ key: 'talks', type: 'several_of', options, at_door: true })
  await ask({ key: 'hotel', type: 'yes_no', position: 9 })
  const nobody = await registered({})
  const vegan = await registered({ diet: 'vegan', talks: ['meat', 'vegan'], hotel: false })
  const found = async (query: string) =>
    (await send('GET', `/attendees?event_id=${event.id}&${query}`)).body.data.map(({ id }: { id: string }) => id)
  expect(await found('answer=diet:vegan')).toEqual([vegan.id])
  expect(await found('answer=talks:meat')).toEqual([vegan.id])
  expect(await found('answer=diet:meat')).toEqual([])
  expect(await found('answer=hotel:no')).toEqual([vegan.id])
  expect(await found('answer=hotel:maybe')).toEqual([])
  expect(await found('unanswered=true')).toEqual([nobody.id])
  // Older than the page is long.
  await registered({ diet: 'meat' })
  expect(await found('limit=1&unanswered=true')).toEqual([nobody.id])
  await studio.query("update public.attendees set answers = '{}' where id = $1", [vegan.id])
  const page = await send('GET', `/attendees?event_id=${event.id}&unanswered=true&limit=1`)
  expect(page.body).toMatchObject({ data: [{ id: vegan.id }], has_more: true })
  expect(await found(`unanswered=true&cursor=${page.body.next_cursor}`)).toEqual([nobody.id])
  await studio.query('update public.attendees set answers = $2 where id = $1', [vegan.id, vegan.answers])
  expect((await send('GET', '/attendees?unanswered=true')).body.error).toMatchObject({ param: 'unanswered' })
  expect((await send('GET', `/attendees?event_id=${event.id}&answer=nothing:x`)).body.error).toMatchObject({
    code: 'validation_failed',
    param: 'answer',
  })

  expect((await send('GET', `/events/${event.id}/summary`)).body.data.questions).toMatchObject([
    {
      key: 'diet',
      answered: 2,
      options: [
        { key: 'meat', answered: 1 },
        { key: 'vegan', answered: 1 },
      ],
    },
    {
      key: 'talks',
      answered: 1,
      options: [
        { key: 'meat', answered: 1 },
        { key: 'vegan', answered: 1 },
      ],
    },
    { key: 'hotel', answered: 1, options: null },
  ])
  const file = await fetch(
    `${inject('apiUrl')}/api/v1/exports/attendees?event_id=${event.id}&fields=name,answers.diet`,
    {
      headers: { Authorization: `Bearer ${await organisation.key()}` },
    },
  )
  expect(await file.text()).toContain('Mary Jackson,vegan')
  const shown = {
    diet: { label: 'Question', answer: 'Vegan' },
    talks: { label: 'Question', answer: 'Everything, Vegan' },
  }
  const { body } = await send('POST', '/check-ins', { event_id: event.id, code: vegan.ticket_code })
  expect(body.data.attendee.answers).toEqual(shown)
  // In the language of the event, as far as it is translated.
  const translations = { en: { label: 'Diet', options: { vegan: 'Plants' } }, de: { label: 'Essen' } }
  await send('PATCH', `/questions/${diet.id}`, { translations })
  shown.diet = { label: 'Diet', answer: 'Plants' }
  const { body: list } = await send('GET', `/events/${event.id}/door-list`)
  expect(
    list.data.tickets.find(({ attendee_id }: { attendee_id: string }) => attendee_id === vegan.id).answers,
  ).toEqual(shown)
})
