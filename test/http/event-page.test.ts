// The page at /e/ORGANISATION/EVENT: who sees it, what its form does, and what it makes of bad ones. What Postgres refuses its key is in
// database/60-attendees/page-key.test.ts.

import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, inject, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { hiddenField, open, post, registerOn, waitOn } from '../support/event-page.ts'
import { createOrganisation, type TicketTypeOptions } from '../support/organisation.ts'
import { appOfThisFile, ownApp } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'

const { url: app } = await appOfThisFile({ trustProxy: true })
const ada = { name: 'Ada Lovelace', email: 'ada@example.com' }

async function arrange({
  page = 'public',
  capacity,
  ...type
}: TicketTypeOptions & { page?: string; capacity?: number } = {}) {
  const organisation = await createOrganisation()
  const event = await organisation.event(capacity === undefined ? type : { ...type, capacity })
  if (type.price)
    await studio.query('update public.ticket_types set price = $2 where event_id = $1', [event.id, type.price])
  await studio.query('update public.events set registration_page = $2 where id = $1', [event.id, page])
  const { slug } = await row<{ slug: string }>('select slug from public.events where id = $1', [event.id])
  const send = rest(await organisation.key())
  const ask = (fields: object) =>
    send('POST', `/events/${event.id}/questions`, { label: 'Question', required: true, ...fields })
  const orders = async () => (await send('GET', `/orders?event_id=${event.id}`)).body.data
  const change = (sql: string, ...values: unknown[]) =>
    studio.query(`update public.events set ${sql} where id = $1`, [event.id, ...values])
  return {
    organisation,
    event,
    send,
    ask,
    orders,
    change,
    url: `${app}/e/${organisation.slug}/${slug}`,
    path: `/e/${organisation.slug}/${slug}`,
  }
}

const mistakes = (text: string) =>
  [...text.matchAll(/class="mistake" id="([^"]*)-error"/g)].map(([, name]) => name?.replace(/g\.[0-9a-f-]{36}\./, 'g'))
const statusOf = (text: string) => /role="status">([^<]*)</.exec(text)?.[1]
const changed = 'The total has changed. Please check it, then send the form again.'
const later = () => sleep(1_050)

test('A page is found where the event has one, and search engines are told whether to list it', async () => {
  const { event, send, change, url, path } = await arrange({ page: 'off' })
  expect((await open(url)).status).toBe(404)
  expect((await send('GET', `/events/${event.id}`)).body.data).toMatchObject({
    registration_page: 'off',
    registration_url: null,
  })

  const { body } = await send('PATCH', `/events/${event.id}`, { registration_page: 'by_link' })
  expect(body.data.registration_url).toBe(`${inject('apiUrl')}${path}`)
  const byLink = await open(url)
  expect(byLink.status).toBe(200)
  expect([byLink.headers.get('X-Robots-Tag'), byLink.text.includes('content="noindex"')]).toEqual(['noindex', true])
  expect(byLink.text).not.toContain('application/ld+json')
  expect((await open(`${url}?code=/* data */`)).text).toContain('value="/* data */"')

  await studio.query('update public.ticket_types set description = $2 where event_id = $1', [event.id, 'a\u202eb'])
  await change(`registration_page = 'public', online_url = 'https://join.example', name = $2`, '</script><b>Gala</b>')
  await later()
  const listed = await open(url)
  expect([listed.headers.get('X-Robots-Tag'), listed.text.includes('noindex')]).toEqual([null, false])
  const [, data = ''] = /<script type="application\/ld\+json">([\s\S]*?)<\/script>/.exec(listed.text) ?? []
  expect(JSON.parse(data)).toMatchObject({
    ...{ '@type': 'Event', name: '</script><b>Gala</b>', eventStatus: 'https://schema.org/EventScheduled', url },
    offers: [{ name: 'General', price: 0, priceCurrency: 'EUR', availability: 'https://schema.org/InStock' }],
  })
  expect(listed.text).not.toMatch(/<b>Gala|\u202e/)
  expect(listed.headers.get('Set-Cookie')).toBeNull()
  // Only who has a ticket is told where to join.
  expect([listed.text, (await open(`${url}/event.ics`)).text].join()).not.toContain('join.example')
  expect(Buffer.byteLength(listed.text)).toBeLessThan(60_000)

  expect((await open(`${url}/`)).status).toBe(404)
  expect((await open(`${app}/e/nobody/nothing`)).status).toBe(404)
  expect((await open(`${url}/event.ics`)).text).toContain(`UID:${event.id}`)
})

test('A draft has no page, and a page says of its event why nobody registers', async () => {
  const { event, change, url, orders } = await arrange()
  const form = {
    act: 'register',
    total: '0',
    key: 'k',
    [`t.${event.ticketTypeId}`]: '1',
    [`g.${event.ticketTypeId}.0.name`]: 'Ada',
    [`g.${event.ticketTypeId}.0.email`]: ada.email,
  }
  const said = async () => {
    await later()
    const { status, text } = await open(url)
    const sent = await post(url, form)
    return [status, statusOf(text), /<button/.test(text), sent.status, statusOf(sent.text)]
  }
  await change(`status = 'draft'`)
  expect(await said()).toEqual([404, undefined, false, 404, undefined])
  await change(`status = 'published'`)
  await change(`status = 'completed'`)
  const closed = 'Registration is closed.'
  expect(await said()).toEqual([200, closed, false, 409, closed])
  await change(`status = 'published'`)
  await change(`starts_at = now() - interval '2 hours', ends_at = now() - interval '1 hour'`)
  const over = 'This event is over.'
  expect(await said()).toEqual([200, over, false, 409, over])
  await change(`ends_at = now() + interval '1 hour'`)
  await change(`status = 'cancelled'`)
  const cancelled = 'This event has been cancelled.'
  expect(await said()).toEqual([200, cancelled, false, 409, cancelled])
  expect(await orders()).toEqual([])
})

test('A guest registers without a script, once however often the form is sent, and the ticket goes by e-mail alone', async () => {
  const { event, url, orders } = await arrange()
  const { text } = await open(url)
  const fields = {
    act: 'register',
    total: hiddenField(text, 'total'),
    key: hiddenField(text, 'key'),
    [`g.${event.ticketTypeId}.0.name`]: ada.name,
    [`g.${event.ticketTypeId}.0.email`]: ada.email,
  }
  // The only ticket type is chosen already.
  const form = {
    ...fields,
    [`g.${event.ticketTypeId}.0.company`]: 'Analytical Engines',
    [`t.${event.ticketTypeId}`]: '1',
  }
  for (const { status, location } of [await post(url, form), await post(url, form)])
    expect([status, location]).toEqual([303, expect.stringMatching(/\?done=registered$/)])
  const [order, ...others] = await orders()
  expect(others).toEqual([])
  expect(order).toMatchObject({
    ...ada,
    status: 'completed',
    payment_method: null,
    source: 'page',
    company: 'Analytical Engines',
  })
  const { status, ticket_code } = await row<{ status: string; ticket_code: string }>(
    `select e.status, a.ticket_code from public.attendees a join public.emails e on e.attendee_id = a.id where a.order_id = $1`,
    [order.id],
  )
  expect(status).toBe('queued')
  const done = await open(`${url}?done=registered`)
  expect(statusOf(done.text)).toBe('Thank you for registering. The tickets are on their way by e-mail.')
  expect(done.text).not.toContain(ticket_code)
  expect(done.text).not.toContain('<form')
})

test('A group orders by invoice what it was shown the price of, in one order', async () => {
  const { event, url, orders } = await arrange({ price: 4900 })
  const group = {
    tickets: { [event.ticketTypeId]: 3 },
    guests: [ada, { name: 'Bo', email: 'bo@example.com' }, { name: 'Cy' }],
  }
  const unseen = await registerOn(url, { ...group, fields: { total: '0' } })
  expect([unseen.status, statusOf(unseen.text)]).toEqual([409, changed])
  expect(unseen.text).toMatch(/€147\.00[\s\S]*Order with obligation to pay/)
  expect(unseen.text).toContain('value="Ada Lovelace"')
  // Nor what was dearer by the time that it was ordered.
  const dearer = registerOn(url, group, undefined, () =>
    studio.query('update public.ticket_types set price = 9900 where event_id = $1', [event.id]),
  )
  expect([(await dearer).status, statusOf((await dearer).text)]).toEqual([409, changed])
  await studio.query('update public.ticket_types set price = 4900 where event_id = $1', [event.id])
  await later()
  expect(await registerOn(url, group)).toMatchObject({
    status: 303,
    location: expect.stringMatching(/\?done=ordered$/),
  })
  const [order, ...others] = await orders()
  expect(others).toEqual([])
  expect(order).toMatchObject({ ...ada, status: 'pending', payment_method: 'invoice', total: 14_700 })
  const { rows } = await studio.query('select name, email from public.attendees where order_id = $1 order by id', [
    order.id,
  ])
  // Whoever has no address gets the ticket with the first.
  expect(rows).toEqual([ada, { name: 'Bo', email: 'bo@example.com' }, { name: 'Cy', email: ada.email }])
})

test('A mistake is marked at its guest, nothing is lost, and nothing is written', async () => {
  const { event, url, ask, orders } = await arrange()
  await ask({ key: 'phone', type: 'phone' })
  await ask({ key: 'later', ask: 'ticket_page' })
  await ask({
    key: 'diet',
    type: 'several_of',
    required: false,
    options: [
      { key: 'a', label: 'A' },
      { key: 'b', label: 'B' },
    ],
  })
  await later()
  const send = (guests: Parameters<typeof registerOn>[1]['guests']) =>
    registerOn(url, { tickets: { [event.ticketTypeId]: 2 }, guests })
  const good = { ...ada, answers: { phone: '+49 40 1234', diet: ['a', 'b'] } }
  const cases: [Parameters<typeof send>[0], string[]][] = [
    [[good, { answers: { phone: '1234567' } }], ['g1.name']],
    [
      [
        { ...good, email: 'ada@' },
        { name: 'Bo', email: 'bo', answers: { phone: '1234567' } },
      ],
      ['g0.email', 'g1.email'],
    ],
    [[good, { name: 'Bo', answers: { phone: '' } }], ['g1.answer.phone']],
    [
      [
        { ...good, answers: { phone: 'call me' } },
        { name: 'Bo', answers: { phone: '1234567' } },
      ],
      ['g0.answer.phone', 'g1.answer.phone'],
    ],
  ]
  for (const [guests, wrong] of cases) {
    const { status, text } = await send(guests)
    expect([status, statusOf(text)], text).toEqual([422, 'Please check the marked fields.'])
    expect(mistakes(text)).toEqual(wrong)
    expect(text).toContain('value="Ada Lovelace"')
  }
  expect(await orders()).toEqual([])
  expect((await send([good, { name: 'Bo', answers: { phone: '1234567' } }])).status).toBe(303)
  const { rows } = await studio.query('select answers from public.attendees where event_id = $1 order by id', [
    event.id,
  ])
  expect(rows).toEqual([{ answers: good.answers }, { answers: { phone: '1234567' } }])
})

test('A code shows the hidden ticket types that it unlocks, with their price, and counts what it unlocked', async () => {
  const { event, url, send, orders } = await arrange()
  const hidden = async (name: string, price: number) =>
    (await send('POST', `/events/${event.id}/ticket-types`, { name, price, visibility: 'hidden' })).body.data
      .id as string
  const [speaker, vip, backstage] = [
    await hidden('Speaker', 0),
    await hidden('VIP', 10_000),
    await hidden('Backstage', 0),
  ]
  const add = async (fields: object) =>
    expect((await send('POST', `/events/${event.id}/promo-codes`, fields)).status).toBe(201)
  const nothing = await send('POST', `/events/${event.id}/promo-codes`, { code: 'FRIENDS', unlocks: true })
  expect(nothing.body.error).toMatchObject({ code: 'validation_failed', param: 'unlocks' })
  await add({ code: 'FRIENDS', unlocks: true, ticket_type_ids: [speaker, vip], percent_off: 25, max_redemptions: 3 })
  await later()
  expect((await open(url)).text).not.toMatch(/Speaker|VIP|Backstage/)
  const { text } = await open(`${url}?code=friends`)
  expect(text).toMatch(/Speaker[\s\S]*VIP/)
  expect(text).toMatch(/<s>€100\.00<\/s> €75\.00/)
  expect(text).not.toContain('Backstage')

  // A forged form names what the page does not show.
  const forged = { tickets: { [backstage]: 1, [vip]: 1 }, guests: [ada, { name: 'Bo' }], fields: { total: '0' } }
  const refused = await registerOn(url, forged)
  expect([refused.status, statusOf(refused.text)]).toEqual([409, 'This is not possible at the moment.'])
  const wrong = await registerOn(url, { code: 'FIENDS', tickets: { [event.ticketTypeId]: 1 }, guests: [ada] })
  const notValid = 'This promo code is not valid, or no longer valid.'
  expect([wrong.status, statusOf(wrong.text)]).toEqual([409, notValid])

  const group = { code: 'friends', tickets: { [speaker]: 2, [vip]: 1 }, guests: [ada, { name: 'Bo' }, { name: 'Cy' }] }
  expect((await registerOn(url, group)).location).toMatch(/done=ordered$/)
  const [order] = await orders()
  expect(order).toMatchObject({ promo_code: 'FRIENDS', subtotal: 10_000, total: 7_500 })
  await later()
  const usedUp = await registerOn(url, { ...group, tickets: { [speaker]: 1 } })
  expect([usedUp.status, statusOf(usedUp.text)]).toEqual([409, notValid])
})

test('Whoever finds it sold out joins the waiting list, and learns nothing of who else is on it', async () => {
  const { event, url } = await arrange({ quantity: 1 })
  const early = await waitOn(url, event.ticketTypeId, 'Bo', 'bo@example.com')
  expect([early.status, statusOf(early.text)]).toEqual([409, 'This is not possible at the moment.'])
  await event.guest()
  await later()
  expect((await open(url)).text).toMatch(/Sold out[\s\S]*Join the waiting list/)
  const wrong = await waitOn(url, event.ticketTypeId, 'Bo', 'bo')
  expect([wrong.status, mistakes(wrong.text)]).toEqual([422, [`w.${event.ticketTypeId}.email`]])
  for (let i = 0; i < 2; i++)
    expect((await waitOn(url, event.ticketTypeId, 'Bo', 'bo@example.com')).location).toMatch(/done=waiting$/)
  const { rows } = await studio.query('select name, email from public.waiting_list_entries where event_id = $1', [
    event.id,
  ])
  expect(rows).toEqual([{ name: 'Bo', email: 'bo@example.com' }])
})

test('The last place goes to one of many who press at once, on pages and over the API', async () => {
  const { event, url, send, orders } = await arrange({ quantity: 1 })
  const results = await Promise.all([
    ...Array.from({ length: 6 }, (_, i) =>
      registerOn(url, { tickets: { [event.ticketTypeId]: 1 }, guests: [{ name: 'Ada', email: `p${i}@example.com` }] }),
    ),
    ...Array.from({ length: 6 }, (_, i) =>
      send('POST', `/events/${event.id}/registrations`, {
        ticket_type_id: event.ticketTypeId,
        name: 'Bo',
        email: `r${i}@example.com`,
      }),
    ),
  ])
  expect(results.filter(({ status }) => status === 303 || status === 201)).toHaveLength(1)
  const refused = results.filter((answer) => 'text' in answer && answer.status !== 303)
  for (const { status, text } of refused as { status: number; text: string }[])
    expect([status, text]).toEqual([409, expect.stringMatching(/just been taken|Sold out/)])
  expect(await orders()).toHaveLength(1)
  expect(await event.sold()).toBe(1)
})

test('A form that is sent again is answered as before, though it took the last place and the last use of its code', async () => {
  const { event, url, send, orders } = await arrange()
  const { body } = await send('POST', `/events/${event.id}/ticket-types`, { name: 'Speaker', quantity: 1, price: 5000 })
  const speaker: string = body.data.id
  await send('POST', `/events/${event.id}/promo-codes`, {
    code: 'ONE',
    unlocks: true,
    ticket_type_ids: [speaker],
    max_redemptions: 1,
  })
  await later()
  const form = {
    act: 'register',
    code: 'one',
    total: '5000',
    key: randomUUID(),
    [`t.${speaker}`]: '1',
    [`g.${speaker}.0.name`]: ada.name,
    [`g.${speaker}.0.email`]: ada.email,
  }
  const done = { status: 303, location: expect.stringMatching(/done=ordered$/) }
  expect(await post(url, form)).toMatchObject(done)
  await later()
  expect(await post(url, form)).toMatchObject(done)
  const edited = await post(url, { ...form, [`g.${speaker}.0.name`]: 'Bo' })
  expect([edited.status, statusOf(edited.text)]).toEqual([
    422,
    'This form was sent before. To register more guests, send it again.',
  ])
  expect(await orders()).toHaveLength(1)
})

test('A machine that fills in what nobody sees is thanked, and registers nothing', async () => {
  const { event, url, orders } = await arrange()
  const { status, location } = await registerOn(url, {
    tickets: { [event.ticketTypeId]: 1 },
    guests: [ada],
    fields: { website: 'https://spam.example' },
  })
  expect([status, location]).toEqual([303, expect.stringMatching(/done=registered$/)])
  expect(await orders()).toEqual([])
})

test('The forms of one address are limited, and those with one e-mail address', async () => {
  const { event, url: shared, orders } = await arrange()
  const own = await ownApp({ trustProxy: true })
  const url = shared.replace(app, own.url)
  const one = (email: string, from?: string) =>
    registerOn(url, { tickets: { [event.ticketTypeId]: 1 }, guests: [{ name: 'Ada', email }] }, from)
  const statuses: number[] = []
  for (let i = 0; i < 12; i++) statuses.push((await one(`ada${i}@example.com`, '192.0.2.1')).status)
  expect(statuses).toEqual([...Array(10).fill(303), 429, 429])
  expect((await one('ada@example.com', '192.0.2.2')).status).toBe(303)
  for (let i = 0; i < 4; i++) expect((await one('ADA@example.com')).status).toBe(303)
  const limited = await one('ada@example.com')
  expect([limited.status, statusOf(limited.text)]).toEqual([429, 'Too many registrations. Please try again later.'])
  expect(limited.text).toContain('value="ada@example.com"')
  expect(await orders()).toHaveLength(15)
})

test('Whoever has guessed too many codes is not told of a good one', async () => {
  const { event, url: shared, send } = await arrange()
  await send('POST', `/events/${event.id}/promo-codes`, { code: 'GOOD', percent_off: 5 })
  const url = shared.replace(app, (await ownApp({ trustProxy: true })).url)
  const from = { 'X-Forwarded-For': '192.0.2.1' }
  for (let i = 0; i < 60; i++) expect((await open(`${url}?code=guess${i}`, from)).status).toBe(200)
  const statuses = [await open(`${url}?code=guess`, from), await open(`${url}?code=GOOD`, from), await open(url, from)]
  expect(statuses.map(({ status }) => status)).toEqual([429, 429, 200])
})

test('Of forms that one address sends at once, the first ten are taken', async () => {
  const { event, url: shared } = await arrange()
  const url = shared.replace(app, (await ownApp({ trustProxy: true })).url)
  const form = {
    act: 'register',
    total: '0',
    [`t.${event.ticketTypeId}`]: '1',
    [`g.${event.ticketTypeId}.0.name`]: 'Ada',
  }
  const send = (i: number) =>
    post(url, { ...form, [`g.${event.ticketTypeId}.0.email`]: `a${i}@example.com` }, '192.0.2.1')
  // Their connections are open, and all wait for the same page.
  const atOnce = () => Array.from({ length: 32 }, (_, i) => i)
  await Promise.all(atOnce().map(() => open(`${url}?lang=nl`)))
  await later()
  expect((await Promise.all(atOnce().map(send))).filter(({ status }) => status === 303)).toHaveLength(10)
})

test('It is shown in the language of the reader or the one they choose, in a frame of the origins that the organisation names', async () => {
  const { url, organisation } = await arrange()
  const lang = async (query = '', header?: string) =>
    /<html lang="(\w+)"/.exec(
      (await open(url + query, header === undefined ? {} : { 'Accept-Language': header })).text,
    )?.[1]
  expect([await lang(), await lang('', 'fr-CA'), await lang('?lang=nl', 'fr'), await lang('?lang=xx', 'pl')]).toEqual([
    'en',
    'fr',
    'nl',
    'en',
  ])
  const framing = async () => {
    const { headers } = await open(url)
    return [
      /frame-ancestors [^;]*/.exec(headers.get('Content-Security-Policy') ?? '')?.[0],
      headers.get('X-Frame-Options'),
    ]
  }
  expect(await framing()).toEqual(["frame-ancestors 'none'", 'SAMEORIGIN'])
  const embed = (origins: string[]) =>
    studio.query('update public.organisations set embed_origins = $2 where id = $1', [organisation.id, origins])
  for (const bad of [
    'http://a.example',
    'https://a.example/path',
    "https://a.example; script-src 'unsafe-inline'",
    'https://*',
  ])
    await expect(embed([bad]), bad).rejects.toThrow('embed_origins has at most 20 origins')
  await embed(['https://www.example.com', 'https://b.example:8443'])
  await later()
  expect(await framing()).toEqual(['frame-ancestors https://www.example.com https://b.example:8443', null])
})
