// Reminders of questions that guests have not answered: who gets one, what is in it, and that it comes once a day.

import { expect, test } from 'vitest'
import type { PendingEmail } from '../../src/guests/pending.ts'
import { studio } from '../support/database.ts'
import { createOrganiser } from '../support/organiser.ts'
import { pendingEmail } from '../support/pending-email.ts'
import { edit } from '../support/studio.ts'

type Reminder = Extract<PendingEmail, { kind: 'answers_reminder' }>

async function asking() {
  const { organisation, event, send } = await createOrganiser()
  const ask = async (key: string, fields = {}) =>
    (await send('POST', `/events/${event.id}/questions`, { key, label: `Label of ${key}`, required: true, ...fields }))
      .body.data
  await ask('diet', { translations: { de: { label: 'Ernährung' } } })
  await ask('allergies', { sensitive: true, delete_after_days: 3 })
  const register = async (name: string, answers = {}, fields = {}): Promise<string> => {
    const guest = { ticket_type_id: event.ticketTypeId, name, email: `${name.toLowerCase()}@example.com` }
    return (await send('POST', `/events/${event.id}/registrations`, { ...guest, answers, ...fields })).body.data
      .attendees[0].id
  }
  const remind = async (body = {}) => (await send('POST', `/events/${event.id}/questions/remind`, body)).body
  const reminded = async (): Promise<string[]> =>
    (
      await studio.query(
        `select a.name from public.emails e join public.attendees a on a.id = e.attendee_id
         where a.event_id = $1 and e.kind = 'answers_reminder' order by a.name`,
        [event.id],
      )
    ).rows.map(({ name }) => name)
  return { organisation, event, send, ask, register, remind, reminded }
}

test('each guest with a required question to answer is reminded, once a day', async () => {
  const { event, send, register, remind, reminded } = await asking()
  await register('Ann')
  await register('Bea', { diet: 'vegan' })
  await register('Cay', { diet: 'vegan', allergies: 'nuts' })
  await register('Dee', {}, { send_email: false })
  await register('Eve', {}, { email: 'nobody@example.invalid' })
  const gone = await register('Flo')
  await send('POST', `/attendees/${gone}/cancel`)

  const effect = {
    emails: 2,
    told: 2,
    attendees: 2,
    not_told: [
      { reason: 'no_address', count: 1 },
      { reason: 'send_email_false', count: 1 },
    ],
  }
  expect(await remind({ dry_run: true })).toMatchObject({ data: { reminded: 2 }, effect: { dry_run: true, ...effect } })
  expect(await reminded()).toEqual([])
  expect(await remind()).toMatchObject({
    data: { object: 'answer_reminders', event_id: event.id, reminded: 2 },
    effect: { dry_run: false, ...effect },
  })
  expect(await reminded()).toEqual(['Ann', 'Bea'])
  await register('Gus')
  expect(await remind()).toMatchObject({
    data: { reminded: 1 },
    effect: { not_told: expect.arrayContaining([{ reason: 'reminded_recently', count: 2 }]) },
  })
  await studio.query(
    "update public.emails set created_at = now() - interval '25 hours' where kind = 'answers_reminder' and attendee_id in (select id from public.attendees where event_id = $1)",
    [event.id],
  )
  expect((await remind()).data.reminded).toBe(3)
})

test('of calls at the same time one reminds', async () => {
  const { register, remind, reminded } = await asking()
  await register('Ann')
  await Promise.all(Array.from({ length: 6 }, () => remind()))
  expect(await reminded()).toEqual(['Ann'])
})

test('the e-mail has the open questions in the language of the event and a link, and no answer', async () => {
  const { event, send, register, remind } = await asking()
  const ann = await register('Ann', { allergies: 'secret nuts' })
  await edit('events', event.id, "locale = 'de'")
  await remind()
  const pending = await pendingEmail<Reminder>('answers_reminder', ann)
  expect(pending).toMatchObject({ questions: ['Ernährung'], answer_url: expect.stringMatching(/\/g\/[0-9a-f]{64}$/) })
  expect(JSON.stringify(pending)).not.toContain('secret')
  const told = await Promise.all(
    ['/notifications', '/audit-entries', '/emails', `/attendees/${ann}`].map((path) => send('GET', path)),
  )
  expect(JSON.stringify(told)).not.toContain(pending.answer_url?.slice(-32))
})

test('a reminder that was overtaken by the answer or the end of the event is not sent', async () => {
  const { event, send, register, remind } = await asking()
  const [ann, bea] = [await register('Ann'), await register('Bea')]
  await remind()
  const obsolete = async () =>
    (
      await studio.query(
        `select private.is_obsolete(e) as obsolete from public.emails e
         where e.attendee_id = any ($1) and e.kind = 'answers_reminder' order by e.id`,
        [[ann, bea]],
      )
    ).rows.map(({ obsolete }) => obsolete)
  expect(await obsolete()).toEqual([false, false])
  await send('PATCH', `/attendees/${ann}`, { answers: { diet: 'vegan', allergies: 'none' } })
  expect(await obsolete()).toEqual([true, false])
  await edit('events', event.id, "starts_at = '2020-01-01', ends_at = '2020-01-02'")
  expect(await obsolete()).toEqual([true, true])
  expect((await remind()).error.code).toBe('event_ended')
})

test('guests of a draft are not reminded', async () => {
  const { event, send } = await createOrganiser({ status: 'draft' })
  const { status, body } = await send('POST', `/events/${event.id}/questions/remind`)
  expect([status, body.error.code]).toEqual([409, 'event_not_published'])
})
