// Messages of an organiser to attendees: whom they reach, that nobody has one twice, and what they show.

import { describe, expect, test } from 'vitest'
import type { PendingEmail } from '../../src/guests/pending.ts'
import { row, studio } from '../support/database.ts'
import { createOrganiser } from '../support/organiser.ts'
import { pendingEmail } from '../support/pending-email.ts'
import { edit } from '../support/studio.ts'

type Pending = Extract<PendingEmail, { kind: 'organiser_message' }>
const words = { subject: 'The doors open earlier', message: 'At **18:30**.' }

async function arrange() {
  const { organisation, event, send } = await createOrganiser()
  const register = async (name: string, fields = {}): Promise<string> => {
    const guest = { ticket_type_id: event.ticketTypeId, name, email: `${name.toLowerCase()}@example.com` }
    return (await send('POST', `/events/${event.id}/registrations`, { ...guest, ...fields })).body.data.attendees[0].id
  }
  const write = async (body = {}) => (await send('POST', `/events/${event.id}/messages`, { ...words, ...body })).body
  const emails = async (status = 'queued'): Promise<string[]> =>
    (
      await studio.query(
        `select a.name from public.emails e join public.attendees a on a.id = e.attendee_id
         where a.event_id = $1 and e.kind = 'organiser_message' and e.status = $2 order by a.name`,
        [event.id, status],
      )
    ).rows.map(({ name }) => name)
  /** To whom the courier would send what is queued. */
  const waiting = async (): Promise<string[]> =>
    (
      await studio.query(
        `select a.name from public.emails e join public.attendees a on a.id = e.attendee_id
         where a.event_id = $1 and e.kind = 'organiser_message' and e.status = 'queued' and not private.is_obsolete(e) order by a.name`,
        [event.id],
      )
    ).rows.map(({ name }) => name)
  const settle = (name: string, status: string, more = '') =>
    studio.query(
      `update public.emails e set status = $3, next_attempt_at = null${more} from public.attendees a
       where a.id = e.attendee_id and e.kind = 'organiser_message' and e.status = 'queued' and a.event_id = $1 and a.name = $2`,
      [event.id, name, status],
    )
  const sent = (name: string) => settle(name, 'sent', ', sent_at = now(), sent_to = a.email')
  return { organisation, event, send, register, write, emails, waiting, settle, sent }
}

test('a message reaches each address once, and says who is not told and why', async () => {
  const { event, send, register, write, emails } = await arrange()
  await register('Ann')
  await register('Bea', { email: 'ann@example.com' })
  await register('Dee', { send_email: false })
  await register('Eve', { email: 'nobody@example.invalid' })
  await register('Fay')
  await studio.query('insert into public.email_opt_outs (event_id, email) values ($1, $2)', [
    event.id,
    'fay@example.com',
  ])
  await send('POST', `/attendees/${await register('Gus')}/cancel`)

  const effect = {
    emails: 1,
    told: 2,
    attendees: 2,
    not_told: [
      { reason: 'no_address', count: 1 },
      { reason: 'send_email_false', count: 1 },
      { reason: 'switched_off', count: 1 },
    ],
  }
  expect(await write({ dry_run: true })).toMatchObject({
    data: { id: null, told: 2 },
    effect: { dry_run: true, ...effect },
  })
  expect(await emails()).toEqual([])
  expect(await write()).toMatchObject({
    data: { object: 'message', id: expect.any(String), event_id: event.id, subject: words.subject, told: 2 },
    effect: { dry_run: false, ...effect },
  })
  expect(await emails()).toEqual(['Ann'])
})

test('the filter is that of list_attendees', async () => {
  const { event, send, register, write } = await arrange()
  const ask = (key: string, fields: object) =>
    send('POST', `/events/${event.id}/questions`, { key, label: key, ...fields })
  await ask('diet', {
    type: 'several_of',
    options: ['vegan', 'halal'].map((key) => ({ key, label: key })),
    required: true,
  })
  await ask('health', { sensitive: true, delete_after_days: 1 })
  const vip = await event.ticketType({ name: 'VIP' })
  const ann = await register('Ann', { ticket_type_id: vip, answers: { diet: ['vegan', 'halal'] } })
  await register('Bea', { answers: { diet: ['halal'] } })
  const cay = await register('Cay')
  await send('POST', '/check-ins', {
    event_id: event.id,
    code: (await send('GET', `/attendees/${ann}/ticket`)).body.data.ticket_code,
  })
  await send('POST', `/attendees/${cay}/cancel`)
  await register('Dee')

  const told = async (filter: object) => (await write({ ...filter, dry_run: true })).data?.told
  expect(await told({})).toBe(3)
  expect(await told({ ticket_type_id: vip })).toBe(1)
  expect(await told({ answer: 'diet:halal' })).toBe(2)
  expect(await told({ answer: 'diet:vegan', checked_in: false })).toBe(0)
  expect(await told({ checked_in: true })).toBe(1)
  expect(await told({ unanswered: true })).toBe(1)
  expect(await told({ status: 'cancelled' })).toBe(1)
  for (const answer of ['health:x', 'nothing', 'other:x'])
    expect((await write({ answer })).error).toMatchObject({ code: 'validation_failed', param: 'answer' })
  const elsewhere = (await createOrganiser()).event.ticketTypeId
  expect((await write({ ticket_type_id: elsewhere })).error).toMatchObject({
    code: 'not_found',
    param: 'ticket_type_id',
  })
})

describe('sent again', () => {
  test('it reaches those who have not had it: new, stopped and failed ones', async () => {
    const { register, write, emails, settle, sent } = await arrange()
    for (const name of ['Ann', 'Bea', 'Cay', 'Dee']) await register(name)
    await write()
    await sent('Ann')
    await settle('Bea', 'cancelled')
    await settle('Cay', 'bounced')
    await register('Eve')
    // Blanks around it make no other message.
    expect(await write({ message: ` ${words.message}\n` })).toMatchObject({
      effect: { told: 3, not_told: [{ reason: 'told_before', count: 2 }] },
    })
    expect(await emails()).toEqual(['Bea', 'Cay', 'Dee', 'Eve'])
    expect((await write()).effect.told).toBe(0)
    expect((await write({ message: 'Another one.' })).effect.told).toBe(5)
  })

  test('a replay answers the first outcome, and of calls at once one tells', async () => {
    const { event, send, register, write, emails } = await arrange()
    await register('Ann')
    const keyed = () => send('POST', `/events/${event.id}/messages`, words, { 'Idempotency-Key': 'once' })
    const [first, again] = [await keyed(), await keyed()]
    expect([first.body.data.told, again.body]).toEqual([1, { ...first.body, ...again.body }])
    await register('Bea')
    await Promise.all(Array.from({ length: 6 }, () => write()))
    expect(await emails()).toEqual(['Ann', 'Bea'])
  })

  test('a stopped e-mail that is queued by hand after the message was sent again is not sent as well', async () => {
    const { event, register, write, settle, sent, emails, waiting } = await arrange()
    const stopAndRepeat = async (name: string) => {
      await register(name)
      await write()
      await settle(name, 'cancelled')
      await write()
    }
    const queueStopped = () =>
      studio.query(
        `update public.emails e set status = 'queued' from public.attendees a
         where a.id = e.attendee_id and e.kind = 'organiser_message' and e.status = 'cancelled' and a.event_id = $1`,
        [event.id],
      )
    await stopAndRepeat('Ann')
    await sent('Ann')
    await queueStopped()
    expect(await waiting()).toEqual([])
    await stopAndRepeat('Bea')
    await queueStopped()
    expect([await emails(), await waiting()]).toEqual([['Ann', 'Bea', 'Bea'], ['Bea']])
  })
})

test('who opted out, was erased or cancelled since, or whose event is cancelled, is not sent what waits', async () => {
  const { event, send, register, write, waiting } = await arrange()
  const [ann, bea, cay] = [await register('Ann'), await register('Bea'), await register('Cay')]
  await register('Dee')
  await send('POST', `/attendees/${cay}/cancel`)
  await write()
  await write({ status: 'cancelled' })
  expect(await waiting()).toEqual(['Ann', 'Bea', 'Cay', 'Dee'])
  await studio.query('insert into public.email_opt_outs (event_id, email) values ($1, $2)', [
    event.id,
    'dee@example.com',
  ])
  await send('POST', `/attendees/${ann}/cancel`)
  await send('POST', `/attendees/${bea}/erase`)
  expect(await waiting()).toEqual(['Cay'])
  await send('POST', `/events/${event.id}/cancel`)
  expect(await waiting()).toEqual([])
})

test('an e-mail has the words as they were written, the ticket and the opt-out, and waits behind tickets', async () => {
  const { register, write } = await arrange()
  const ann = await register('Ann')
  await write({ message: '<b>Bring</b> a lamp.' })
  expect(await pendingEmail<Pending>('organiser_message', ann)).toMatchObject({
    organiser_message: { subject: words.subject, message: '<b>Bring</b> a lamp.' },
    attendee: { ticket_url: expect.stringContaining('/t/') },
    opt_out_url: expect.stringContaining('/u/'),
  })
  const queued = await studio.query('select kind, is_mailing from public.emails where attendee_id = $1 order by kind', [
    ann,
  ])
  expect(queued.rows).toEqual([
    { kind: 'ticket', is_mailing: false },
    { kind: 'organiser_message', is_mailing: true },
  ])
})

test('words of which nothing is seen, and those that are too long, are refused by REST and in Studio', async () => {
  const { event, write } = await arrange()
  for (const wrong of [
    { subject: '' },
    { subject: 'a\nb' },
    { subject: 'x'.repeat(151) },
    { message: ' \n\u200b' },
    { message: 'x'.repeat(5001) },
  ]) {
    const { subject, message } = { ...words, ...wrong }
    expect((await write(wrong)).error).toMatchObject({ code: 'validation_failed', param: Object.keys(wrong)[0] })
    const typed = studio.query('select public.message_attendees($1, $2, $3)', [event.id, subject, message])
    await expect(typed).rejects.toMatchObject({ code: 'PT422', message: expect.not.stringContaining('x'.repeat(99)) })
  }
})

test('it is sent while the event is published or completed, before its end and after', async () => {
  const { event, register, write } = await arrange()
  await register('Ann')
  await edit('events', event.id, "starts_at = '2020-01-01', ends_at = '2020-01-02'")
  expect((await write()).data.told).toBe(1)
  await edit('events', event.id, "status = 'completed'")
  expect((await write({ message: 'Thank you for coming.' })).data.told).toBe(1)
  const draft = await createOrganiser({ status: 'draft' })
  const { body } = await draft.send('POST', `/events/${draft.event.id}/messages`, words)
  expect(body.error).toMatchObject({ code: 'event_not_published', details: { status: 'draft' } })
})

test('in Studio a message is sent by a function, is kept as it was, and is stopped in emails', async () => {
  const { event, register, emails, organisation } = await arrange()
  await register('Ann')
  await register('Bea')
  const select = `select public.message_attendees($1, 'Doors', 'At six.', status => 'active') as told`
  expect(await row(select, [event.id])).toEqual({ told: 2 })
  await expect(
    studio.query("update public.messages set message = 'At ten.' where event_id = $1", [event.id]),
  ).rejects.toMatchObject({
    code: 'PT409',
  })
  await studio.query(
    "update public.emails set status = 'cancelled' where organisation_id = $1 and kind = 'organiser_message'",
    [organisation.id],
  )
  expect(await emails()).toEqual([])
  expect(await row(select, [event.id])).toEqual({ told: 2 })
})
