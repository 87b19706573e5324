// Whoever had a ticket, an order or a place on the waiting list until it passed to somebody else: found by what the audit trail has, and erased
// from every log.

import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { addEndpoint } from '../../support/outbox.ts'
import { rest } from '../../support/rest.ts'
import { tracesFromNow } from '../../support/traces.ts'

/** A ticket of Anna's that somebody else bought. */
async function arrange({ name = 'Anna', isIn = true } = {}) {
  const tracesOf = await tracesFromNow()
  const mark = randomUUID().slice(0, 8)
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await addEndpoint(organisation.id)
  const send = rest(await organisation.key())
  const named = (first: string) => ({ name: `${first} ${mark}`, email: `${first}-${mark}@example.com`.toLowerCase() })
  const anna = { name: `${name} ${mark}`, email: named('a').email }
  // As a client does: other tests lock the outbox, on a slow machine for longer than a call waits.
  const sendAgain = async (method: string, path: string, body: object) => {
    const headers = { 'Idempotency-Key': randomUUID() }
    let answer = await send(method, path, body, headers)
    for (let again = 0; answer.status === 503 && again < 10; again++) answer = await send(method, path, body, headers)
    return answer
  }
  const write = async (method: string, path: string, body: object = {}) => {
    const answer = await sendAgain(method, path, body)
    expect([path, answer.body.error]).toEqual([path, undefined])
    return answer.body.data
  }
  const { attendees } = await write('POST', `/events/${event.id}/registrations`, {
    ...{ ticket_type_id: event.ticketTypeId, name: 'Buyer', email: 'buyer@example.com', attendees: [anna] },
  })
  const [{ id, ticket_code: code }] = attendees
  if (isIn) await write('POST', '/check-ins', { event_id: event.id, code })
  const edit = (change: object) => write('PATCH', `/attendees/${id}`, { ...change, reissue_ticket: false })
  const find = async (email: string) =>
    (await send('GET', `/people?email=${email}`)).body.data.people.map(
      ({ name, passed_on }: { name: string; passed_on: number }) => [name, passed_on],
    )
  const erase = async (email: string, who: object = {}) => {
    const { body } = await sendAgain('POST', '/people/erase', { email, ...who })
    return body.data ?? body.error
  }
  const remove = async () => {
    await write('POST', `/attendees/${id}/cancel`)
    await studio.query('delete from public.attendees where id = $1', [id])
  }
  return { mark, anna, bob: named('Bob'), named, edit, find, erase, remove, id, send, tracesOf }
}

test('who was called otherwise only after the address had changed is found by the name of then, and erased', async () => {
  const { mark, anna, bob, edit, find, erase, send, id, tracesOf } = await arrange()
  await edit({ email: bob.email })
  await edit({ name: bob.name })
  expect(await find(anna.email)).toEqual([[anna.name, 1]])
  expect(await erase(anna.email)).toMatchObject({ people: 1, attendees: 0 })
  expect(await find(anna.email)).toEqual([])
  for (const text of [anna.name, anna.email]) expect(await tracesOf(text)).toEqual([])
  expect((await send('GET', `/attendees/${id}`)).body.data).toMatchObject(bob)
  expect(await tracesOf(mark)).toContain('notifications.data')
})

test.each([{ names: true }, { everyone: true }])(
  'of who was called otherwise before the address changed each name is found, and with either both go: %j',
  async (who) => {
    const { anna, bob, edit, find, erase, send, id, tracesOf } = await arrange()
    await edit({ name: bob.name })
    await edit({ email: bob.email })
    expect(await find(anna.email)).toEqual(
      expect.arrayContaining([
        [anna.name, 1],
        [bob.name, 1],
      ]),
    )
    expect(await erase(anna.email, 'names' in who ? { names: [anna.name] } : who)).toMatchObject({ people: 2 })
    expect(await find(anna.email)).toEqual([])
    for (const text of [anna.name, anna.email]) expect(await tracesOf(text)).toEqual([])
    expect((await send('GET', `/attendees/${id}`)).body.data).toMatchObject(bob)
  },
)

test('of who had the ticket under two addresses both go, by either of them', async () => {
  for (const which of [0, 1]) {
    const { anna, bob, named, edit, find, erase, tracesOf } = await arrange()
    const other = named('Other').email
    await edit({ email: other })
    await edit(bob)
    await erase([anna.email, other][which] as string)
    for (const email of [anna.email, other]) expect(await find(email)).toEqual([])
    for (const text of [anna.name, anna.email, other]) expect(await tracesOf(text)).toEqual([])
    expect(await find(bob.email)).toEqual([[bob.name, 0]])
  }
})

test('of several who had the ticket each goes alone, and the others are found as before', async () => {
  const { anna, bob, named, edit, find, erase, tracesOf } = await arrange()
  const holders = [anna, named('Cleo'), bob, named('Dan')]
  for (const { name, email } of holders.slice(1)) {
    await edit({ name, email, company: `${name} Ltd` })
    await edit({ company: `${name} Inc` })
  }
  const found = async () => (await Promise.all(holders.map(({ email }) => find(email)))).flat()
  for (const gone of [1, 0, 2]) {
    const { name, email } = holders[gone] as typeof anna
    const before = await found()
    expect(await erase(email)).toMatchObject({ people: 1 })
    for (const text of [name, email]) expect(await tracesOf(text)).toEqual([])
    expect(await found()).toEqual(before.filter(([other]: [string]) => other !== name))
  }
  expect(await found()).toEqual([[holders[3]?.name, 0]])
})

test('an address that was corrected keeps the person, and is erased by itself', async () => {
  const { anna, named, edit, find, erase, send, id, tracesOf } = await arrange()
  const right = named('Right').email
  await edit({ email: right })
  expect(await find(anna.email)).toEqual([[anna.name, 1]])
  await erase(anna.email)
  expect(await tracesOf(anna.email)).toEqual([])
  expect((await send('GET', `/attendees/${id}`)).body.data).toMatchObject({ name: anna.name, email: right })
})

test('who had an address that others share is erased by name, and who has the ticket now keeps what is theirs', async () => {
  const { mark, anna, edit, find, erase, tracesOf } = await arrange()
  const heirs = ['Ben', 'Cleo'].map((name) => `${name} ${mark}`)
  for (const name of heirs) await edit({ name })
  await erase(anna.email, { names: [anna.name] })
  expect(await tracesOf(anna.name)).toEqual([])
  for (const name of heirs) expect(await tracesOf(name)).toContain('notifications.data')
  expect(await find(anna.email)).toEqual([[heirs[1], 0]])
  expect(await erase(anna.email, { names: [heirs[0]] })).toMatchObject({ people: 1, attendees: 0 })
  expect(await tracesOf(heirs[0] as string)).toEqual([])
})

test('of a ticket whose address was corrected and that was deleted, nothing is left by either address', async () => {
  for (const which of [0, 1]) {
    const mine = await arrange({ isIn: false })
    const addresses = [mine.anna.email, mine.named('Right').email]
    await mine.edit({ email: addresses[1] })
    await mine.remove()
    for (const email of addresses) expect(await mine.find(email)).toEqual([[mine.anna.name, 1]])
    expect(await mine.erase(addresses[which] as string)).toMatchObject({ people: 1, attendees: 0 })
    expect(await mine.tracesOf(mine.mark)).toEqual([])
  }
})

test('who had a ticket under the address of whoever has it now takes none of their e-mails', async () => {
  const { mark, anna, bob, edit, erase, id, tracesOf } = await arrange()
  await edit({ name: bob.name })
  await studio.query(
    `update public.emails set status = 'sent', next_attempt_at = null, attempts = 1, sent_at = now(), sent_to = $2
     where attendee_id = $1`,
    [id, anna.email],
  )
  const error = `550 <${anna.email}> unknown`
  await studio.query(
    `update public.attendees set ticket_email_status = 'bounced', ticket_email_last_error = $2 where id = $1`,
    [id, error],
  )
  expect(await erase(anna.email, { names: [anna.name] })).toMatchObject({ people: 1, attendees: 0, emails: 0 })
  expect(await tracesOf(anna.name)).toEqual([])
  const { rows } = await studio.query(
    `select e.sent_to, a.name, a.ticket_email_last_error as error
     from public.attendees a join public.emails e on e.attendee_id = a.id where a.id = $1`,
    [id],
  )
  expect(rows).toEqual([{ sent_to: anna.email, name: `Bob ${mark}`, error }])
})
