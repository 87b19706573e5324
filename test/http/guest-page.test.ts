// The page at /g/TOKEN: what the holder of a ticket may do there, what it makes of bad forms, and what else then happens.

import { randomBytes } from 'node:crypto'
import { pino } from 'pino'
import { expect, inject, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { answer, guestUrl, open, pendingEmail, press } from '../support/guest-page.ts'
import { once } from '../support/once.ts'
import { createOrganisation } from '../support/organisation.ts'
import { ownApp } from '../support/own-app.ts'
import { problemOf, rest } from '../support/rest.ts'

const acts = ['correct', 'answer', 'give_back', 'pass_on']
const options = [
  { key: 'meat', label: 'Everything' },
  { key: 'vegan', label: 'Vegan' },
]
const hours = (n: number) => new Date(Date.now() + n * 3_600_000).toISOString()
const rows = async (sql: string, values: unknown[]) => (await studio.query(sql, values)).rows

type Options = { may?: string[]; until?: string; locale?: string; price?: number }

async function arrange({ may = acts, until, locale = 'en', price = 0 }: Options = {}) {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const send = rest(await organisation.key())
  const fields = { guests_may: may, guests_may_until: until ?? null, locale }
  expect((await send('PATCH', `/events/${event.id}`, fields)).body.data).toMatchObject({ guests_may: may, locale })
  const ask = async (fields: Record<string, unknown>) => {
    const { status, body } = await send('POST', `/events/${event.id}/questions`, { label: 'Question', ...fields })
    expect(status, JSON.stringify(body)).toBe(201)
  }
  const ticketType = price > 0 ? await event.ticketType({ price }) : event.ticketTypeId
  const register = async (guest: Record<string, unknown> = {}) => {
    const { status, body } = await send('POST', `/events/${event.id}/registrations`, {
      ticket_type_id: ticketType,
      ...{ name: 'Ada Lovelace', email: 'ada@example.com', ...guest },
      ...(price > 0 && { payment_method: 'invoice' }),
    })
    expect(status, JSON.stringify(body)).toBe(201)
    const { id, ticket_url } = body.data.attendees[0]
    return { id: id as string, ticket_url: ticket_url as string, order: body.data, url: await guestUrl(id) }
  }
  const attendee = async (id: string) => (await send('GET', `/attendees/${id}`)).body.data
  const told = async (id: string) =>
    rows(
      `select n.type, n.data from public.notifications n where n.organisation_id = $1 and n.data ->> 'id' = $2 order by n.id`,
      [organisation.id, id],
    )
  return { organisation, event, send, ask, register, attendee, told }
}

const world = once(arrange)

test('the holder corrects name and company, twice or not, and the trail says that it was a guest', async () => {
  const { register, attendee, told, send, organisation } = await world()
  const { id, url } = await register()
  const before = await attendee(id)
  for (let i = 0; i < 2; i++) {
    const { status, location } = await press(url, 'correct', { name: ' Augusta Ada ', company: 'Engines' })
    expect([status, location]).toEqual([303, `${url.slice(-64)}?saved`])
  }
  expect(await attendee(id)).toMatchObject({ name: 'Augusta Ada', company: 'Engines', version: before.version + 1 })
  expect((await told(id)).map(({ type }) => type)).toEqual(['attendee.updated'])
  const { data } = (await send('GET', `/audit-entries?object_type=attendee&object_id=${id}`)).body
  expect(data).toMatchObject([
    { actor: 'guest', source: 'page', changes: { name: { from: 'Ada Lovelace', to: 'Augusta Ada' } } },
  ])
  expect((await open(`${url}?saved`)).text).toContain('Your changes have been saved.')

  const wrong = await press(url, 'correct', { name: '  ', company: '"><b>x' })
  expect(wrong.status).toBe(422)
  expect(wrong.text).toMatch(/aria-invalid="true"[\s\S]*Please fill this in/)
  expect(wrong.text).toContain('value="&quot;&gt;&lt;b&gt;x"')
  expect((await press(url, 'correct', { name: 'A', company: 'x'.repeat(201) })).text).toContain('id="company-error"')
  const seen = await rows('select data from public.notifications where organisation_id = $1', [organisation.id])
  expect(JSON.stringify([seen, await attendee(id), data])).not.toContain(url.slice(-32))
})

test('every type of answer is written as the API has it, shown again, and refused beside its question', async () => {
  const { ask, register, attendee } = await arrange()
  for (const type of ['text', 'long_text', 'number', 'yes_no', 'date', 'email', 'phone', 'country'])
    await ask({ key: type, type })
  await ask({ key: 'one_of', type: 'one_of', options })
  await ask({ key: 'several_of', type: 'several_of', options })
  const { id, url } = await register()
  const form = {
    ...{ text: 'a', long_text: 'a\r\nb', number: '1.5', yes_no: 'false', date: '2027-05-01', email: 'b@example.com' },
    ...{ phone: '+49 40 123456', country: 'DE', one_of: 'vegan', several_of: ['meat', 'vegan'] },
  }
  expect((await answer(url, form)).status).toBe(303)
  expect((await attendee(id)).answers).toEqual({ ...form, long_text: 'a\nb', number: 1.5, yes_no: false })
  const { text } = await open(url)
  for (const shown of ['value="1.5"', 'value="false" checked', 'value="DE" selected', 'value="meat" checked'])
    expect(text).toContain(shown)

  const bad = {
    ...{ text: 'x'.repeat(100_000), long_text: 'x'.repeat(5001), number: 'many', yes_no: '?', date: '2027-02-30' },
    ...{ email: 'nobody', phone: 'none', country: 'Germany', one_of: 'fish', several_of: ['meat', 'meat'] },
  }
  for (const [key, value] of Object.entries(bad)) {
    const refused = await answer(url, { ...form, [key]: value })
    expect([key, refused.status]).toEqual([key, 422])
    expect(refused.text).toContain(`id="answer.${key}-error"`)
  }
  expect((await answer(url, { text: 'x'.repeat(300_000) })).status).toBe(413)
  // A box that is not ticked is not sent: the answer is taken back.
  expect((await press(url, 'answer', { asked: 'several_of' })).status).toBe(303)
  expect((await attendee(id)).answers).not.toHaveProperty('several_of')
})

test('what the organiser asks is answered whatever guests may do, and changed only where they may', async () => {
  const { ask, register, attendee, send, event } = await arrange({ may: [], locale: 'de' })
  await ask({
    key: 'diet',
    type: 'one_of',
    options,
    required: true,
    ask: 'registration',
    translations: { de: { label: '<i>Essen</i>', options: { vegan: 'Vegan, bitte' } }, en: { label: 'Food' } },
  })
  await ask({ key: 'later', ask: 'ticket_page' })
  await ask({ key: 'early', ask: 'registration' })
  const { id, url } = await register()
  expect((await pendingEmail(id)).attendee.guest).toEqual({ url, acts: [], open: 2 })
  const { text } = await open(url)
  expect(text).toMatch(/lang="de"[\s\S]*&lt;i&gt;Essen&lt;\/i&gt;[\s\S]*Everything[\s\S]*Vegan, bitte/)
  expect(text).not.toContain('answer.early')
  const english = await (await fetch(url, { headers: { 'Accept-Language': 'en' } })).text()
  expect(english).toMatch(
    /<html lang="en"[\s\S]*<span lang="en" dir="auto">Food<[\s\S]*<span lang="de" dir="auto">Everything</,
  )

  const missing = await answer(url, { diet: [], later: 'x' })
  expect([missing.status, missing.text]).toEqual([
    422,
    expect.stringMatching(/Bitte füllen Sie dieses Feld aus[\s\S]*value="x"/),
  ])
  for (const key of ['early', 'nobody', '__proto__'])
    expect([key, (await answer(url, { diet: 'meat', [key]: 'x' })).status]).toEqual([key, 409])
  expect((await answer(url, { diet: 'meat' })).status).toBe(303)
  expect((await answer(url, { diet: 'vegan' })).status).toBe(409)
  expect(await attendee(id)).toMatchObject({ answers: { diet: 'meat' }, unanswered: [] })
  expect((await open(url)).text).toContain('Everything')
  await send('PATCH', `/events/${event.id}`, { guests_may: ['answer'] })
  expect((await answer(url, { diet: 'vegan' })).status).toBe(303)
  expect((await pendingEmail(id)).attendee.guest).toEqual({ url, acts: ['answer'], open: 1 })
  expect((await attendee(id)).answers).toEqual({ diet: 'vegan' })
})

test('a sensitive answer is written, and never shown or told', async () => {
  const { ask, register, attendee, told, send } = await arrange()
  await ask({ key: 'allergy', required: true, sensitive: true, delete_after_days: 7 })
  const { id, url } = await register()
  expect((await answer(url, { allergy: 'peanuts' })).status).toBe(303)
  const { text } = await open(url)
  expect(text).toContain('You have answered this question.')
  expect(text).not.toContain('peanuts')
  expect((await answer(url, { allergy: '' })).status).toBe(303)
  expect((await attendee(id)).answers).toEqual({ allergy: 'peanuts' })
  const audit = (await send('GET', `/audit-entries?object_id=${id}&object_type=attendee`)).body.data
  expect(JSON.stringify([audit, await told(id)])).not.toContain('peanuts')
})

test('a mistake keeps what was typed, a sensitive answer that is given again and a question that closed meanwhile too', async () => {
  const { ask, register, event, send } = await arrange({ may: [] })
  for (const key of ['kept', 'typed', 'closing']) await ask({ key })
  await ask({ key: 'allergies', type: 'number', sensitive: true, delete_after_days: 7 })
  const { url } = await register({ answers: { kept: 'as it was', allergies: 3 } })
  const { data } = (await send('GET', `/events/${event.id}/questions`)).body
  const { id } = data.find(({ key }: { key: string }) => key === 'closing')
  await send('PATCH', `/questions/${id}`, { status: 'archived' })
  const closed = await answer(url, { kept: 'changed', typed: 'a long text', closing: 'x' })
  expect([closed.status, closed.text]).toEqual([
    409,
    expect.stringMatching(/value="as it was"[\s\S]*value="a long text"/),
  ])
  await send('PATCH', `/events/${event.id}`, { guests_may: ['answer'] })
  const wrong = await answer(url, { typed: 'a long text', allergies: 'many' })
  expect([wrong.status, wrong.text]).toEqual([
    422,
    expect.stringMatching(/value="a long text"[\s\S]*id="answer.allergies-error">Please check this entry\./),
  ])
})

test('giving back says what is refunded, cancels as cancel_attendee does, and twice is once', async () => {
  const { register, attendee, told, send } = await arrange({ price: 4900 })
  const { id, url, order } = await register()
  await send('POST', `/orders/${order.id}/payments`, { amount: 4900, method: 'bank_transfer' })
  const before = await attendee(id)
  for (const method of ['GET', 'HEAD']) await fetch(`${url}?act=give_back`, { method })
  expect((await open(`${url}?act=give_back`)).text).toContain('€49.00 will be refunded.')
  expect(await attendee(id)).toEqual(before)
  for (let i = 0; i < 2; i++) expect((await press(url, 'give_back')).status).toBe(303)
  expect((await attendee(id)).status).toBe('cancelled')
  expect((await told(id)).filter(({ type }) => type === 'attendee.cancelled')).toHaveLength(1)
  expect((await send('GET', `/orders/${order.id}`)).body.data).toMatchObject({
    status: 'cancelled',
    amount_refundable: 4900,
  })
  const kinds = await rows('select kind from public.emails where attendee_id = $1 or order_id = $2 order by id', [
    id,
    order.id,
  ])
  expect(kinds.map(({ kind }) => kind)).toEqual([
    'order_confirmation',
    'ticket',
    'payment_received',
    'ticket_cancelled',
  ])
  expect((await open(url)).text).toContain('This ticket has been cancelled')
})

test('a ticket that is passed on is another for its new holder, and nothing for the former', async () => {
  const { ask, register, attendee, told, send, event } = await arrange()
  await ask({ key: 'diet' })
  await ask({ key: 'allergy', sensitive: true, delete_after_days: 7 })
  const own = { company: 'E', external_id: 'x', metadata: { vip: true }, answers: { diet: 'vegan', allergy: 'nuts' } }
  const { id, url, ticket_url } = await register(own)
  const { ticket_code } = await attendee(id)
  expect((await press(url, 'pass_on', { name: 'Grace', email: 'nobody' })).text).toContain('id="email-error"')
  expect((await press(url, 'pass_on', { name: 'Grace', email: 'grace@example.invalid' })).status).toBe(422)
  const { status, text } = await press(url, 'pass_on', { name: 'Grace Hopper', email: 'grace@example.com' })
  expect([status, text]).toEqual([200, expect.stringContaining('has been passed on to somebody else')])

  const now = await attendee(id)
  expect(now).toMatchObject({ id, name: 'Grace Hopper', email: 'grace@example.com', status: 'active' })
  expect(now).toMatchObject({ company: null, external_id: null, metadata: {}, answers: {} })
  expect(now.ticket_code).not.toBe(ticket_code)
  for (const old of [url, ticket_url]) expect((await open(old)).status).toBe(404)
  expect((await press(url, 'pass_on', { name: 'Eve', email: 'eve@example.com' })).status).toBe(404)
  const scan = await send('POST', '/check-ins', { event_id: event.id, code: ticket_code })
  expect(problemOf(scan)).toEqual([404, 'not_found', 'code'])
  expect((await told(id)).map(({ type }) => type)).toEqual(['attendee.updated'])

  const guest = { url: await guestUrl(id), open: 2 }
  expect((await pendingEmail(id)).attendee).toMatchObject({ email: 'grace@example.com', guest })
  const former = await pendingEmail(id, 'ticket_passed_on')
  expect(former.attendee).toMatchObject({ email: 'ada@example.com', ticket_url: null, guest: null })
  expect(JSON.stringify(former)).not.toMatch(/grace/i)
  const found = await send('GET', '/people?email=ada@example.com')
  expect(JSON.stringify(found.body)).toContain('"passed_on":1')
  await send('POST', '/people/erase', { email: 'ada@example.com', everyone: true })
  const sent = "select sent_to from public.emails where attendee_id = $1 and kind = 'ticket_passed_on'"
  expect(await rows(sent, [id])).toEqual([{ sent_to: null }])
  const trail = await rows('select changes from public.audit_entries where object_id = $1', [id])
  expect(JSON.stringify(trail)).not.toMatch(/lovelace|ada@|nuts|vegan/i)
})

test('nothing is done after the deadline, for a cancelled event, or with a ticket that was used', async () => {
  const forms = { correct: 'id="correct"', give_back: '?act=give_back', pass_on: '?act=pass_on', answer: 'id="answer"' }
  const worlds = {
    late: await arrange({ until: hours(-1) }),
    used: await arrange(),
    begun: await arrange(),
    over: await arrange(),
    plain: await arrange({ may: [] }),
  }
  const { used, begun, over } = worlds
  const expected = { late: [], used: ['correct', 'answer'], begun: ['correct', 'answer'], over: [], plain: ['answer'] }
  for (const { ask } of Object.values(worlds)) await ask({ key: 'diet' })
  const guests = Object.fromEntries(
    await Promise.all(Object.entries(worlds).map(async ([name, { register }]) => [name, await register()])),
  )
  await used.send('POST', '/check-ins', { event_id: used.event.id, attendee_id: guests.used.id })
  await begun.send('PATCH', `/events/${begun.event.id}`, { starts_at: hours(-1) })
  await over.send('POST', `/events/${over.event.id}/cancel`)
  for (const [name, allowed] of Object.entries(expected)) {
    const { url, id } = guests[name]
    const { text } = await open(url)
    expect([name, acts.filter((act) => text.includes(forms[act as keyof typeof forms]))]).toEqual([
      name,
      expect.arrayContaining(allowed),
    ])
    for (const act of acts.filter((act) => !(allowed as string[]).includes(act))) {
      expect([name, act, text.includes(forms[act as keyof typeof forms])]).toEqual([name, act, false])
      const { status } = await press(url, act, {
        name: 'Eve',
        email: 'eve@example.com',
        asked: 'diet',
        'answer.diet': 'x',
      })
      // A ticket that is cancelled is given back.
      expect([name, act, status]).toEqual([name, act, name === 'over' && act === 'give_back' ? 303 : 409])
    }
    expect(await row('select name, answers from public.attendees where id = $1', [id])).toEqual({
      name: 'Ada Lovelace',
      answers: {},
    })
  }
})

test.each(['give_back', 'pass_on'])('of %s and a scan at the same moment one wins', async (act) => {
  const { register, attendee, send, event } = await world()
  for (let i = 0; i < 5; i++) {
    const { id, url } = await register()
    const { ticket_code: code } = await attendee(id)
    const [acted, scan] = await Promise.all([
      press(url, act, { name: 'Grace', email: 'grace@example.com' }),
      send('POST', '/check-ins', { event_id: event.id, code }),
    ])
    const now = await attendee(id)
    expect([acted.status < 400, now.checked_in_at !== null]).toEqual([scan.status !== 200, scan.status === 200])
  }
})

test('the link is one ticket’s, in its e-mails alone; reading changes nothing, and another site sends no form', async () => {
  const { register, attendee, send, event } = await world()
  const [ada, bob] = [await register(), await register({ name: 'Bob', email: 'bob@example.com' })]
  const before = await attendee(ada.id)
  for (const method of ['HEAD', 'GET']) expect((await fetch(ada.url, { method })).status).toBe(200)
  const headers = { 'Sec-Fetch-Site': 'cross-site' }
  const body = () => new URLSearchParams({ act: 'correct', name: 'Eve' })
  expect((await fetch(ada.url, { method: 'POST', headers, body: body() })).status).toBe(404)
  const base = inject('apiUrl')
  const mixed = `${base}/g/${bob.url.slice(-64, -32)}${ada.url.slice(-32)}`
  for (const url of [
    mixed,
    `${base}/g/${ada.ticket_url.slice(-32)}`,
    `${base}/g/${'0'.repeat(64)}`,
    `${base}/g`,
    `${ada.url}/x`,
  ])
    for (const method of ['GET', 'POST'])
      expect([url, (await fetch(url, { method, ...(method === 'POST' && { body: body() }) })).status]).toEqual([
        url,
        404,
      ])
  expect((await fetch(ada.url, { method: 'PUT' })).headers.get('Allow')).toBe('GET, HEAD, POST')
  for (const act of ['', 'delete', 'toString']) expect((await press(ada.url, act, { name: 'Eve' })).status).toBe(404)
  expect(await attendee(ada.id)).toEqual(before)

  await send('PATCH', `/events/${event.id}`, { name: `Moved ${ada.id}`, notify: 'mailed' })
  const { holders } = await pendingEmail<{ holders: object[] }>(bob.id, 'event_changed')
  expect(holders).toMatchObject([{ guest: { url: bob.url, acts, open: 0 } }])
  await send('PATCH', `/attendees/${ada.id}`, { reissue_ticket: true })
  expect((await open(ada.url)).status).toBe(404)
  const { headers: sent } = await fetch(bob.url)
  expect(Object.fromEntries(sent)).toMatchObject({
    'cache-control': 'private, no-store',
    'referrer-policy': 'no-referrer',
    'content-security-policy': expect.stringContaining("form-action 'self'"),
  })
})

test('guesses are slowed down, and the secret is in no log', async () => {
  const lines: string[] = []
  const log = pino({ level: 'trace' }, { write: (line: string) => void lines.push(line) })
  const app = await ownApp({ log })
  const { register } = await world()
  const { id } = await register()
  const url = await guestUrl(id, app.url)
  await press(url, 'correct', { name: 'Ada' })
  await expect.poll(() => lines.join('')).toContain('"path":"/g/{token}","status":303')
  const statuses = await Promise.all(
    Array.from({ length: 200 }, async () => (await open(`${app.url}/g/${randomBytes(32).toString('hex')}`)).status),
  )
  expect(new Set(statuses)).toEqual(new Set([404, 429]))
  expect((await open(url)).status).toBe(200)
  expect(lines.join('')).not.toContain(url.slice(-64))
})

test('an event names each act once, in Studio too, and a copy lets its guests do the same', async () => {
  const { send, event } = await arrange({ until: hours(20) })
  const twice = await send('PATCH', `/events/${event.id}`, { guests_may: ['answer', 'answer'] })
  expect(problemOf(twice)).toEqual([422, 'validation_failed', 'guests_may'])
  await expect(
    row("update public.events set guests_may = '{answer,null}' where id = $1 returning id", [event.id]),
  ).rejects.toThrow('once')
  const plan = await send('POST', '/event-plans', {
    copy_of: event.id,
    move: 'P7D',
    changes: { guests_may: ['answer'] },
  })
  const { body } = await send('POST', '/event-plans', { plan_id: plan.body.data.plan_id })
  const { data } = (await send('GET', `/events/${body.data.event.id}`)).body
  const was = (await send('GET', `/events/${event.id}`)).body.data
  expect(data.guests_may).toEqual(['answer'])
  const distances = ['guests_may_until', 'ends_at'].map((field) => Date.parse(data[field]) - Date.parse(was[field]))
  expect(new Set(distances)).toEqual(new Set([7 * 24 * 3_600_000]))
})
