// A test organisation beside a live one: its keys, codes, pages and door say so, neither reaches the other's objects, and what it keeps of
// e-mails is read. That none is sent: test/courier/.

import { beforeAll, expect, inject, test } from 'vitest'
import { rolledBack } from '../database/as-courier.ts'
import { during, studio } from '../support/database.ts'
import { createOrganisation, type TestEvent, type TestOrganisation } from '../support/organisation.ts'
import { problemOf, rest } from '../support/rest.ts'

type Side = { organisation: TestOrganisation; event: TestEvent; key: string; send: ReturnType<typeof rest> }

async function arrange(isTest: boolean): Promise<Side> {
  const organisation = await createOrganisation({ isTest })
  const [event, key] = await Promise.all([organisation.event(), organisation.key()])
  return { organisation, event, key, send: rest(key) }
}

let live: Side
let tests: Side
beforeAll(async () => {
  ;[live, tests] = await Promise.all([arrange(false), arrange(true)])
})

test('a key says by its beginning which kind of organisation it is for, and no other prefix is stored', async () => {
  expect([live.key, tests.key].map((key) => key.slice(0, 11))).toEqual(['usher_live_', 'usher_test_'])
  expect((await tests.send('GET', '/me')).body.data.prefix).toMatch(/^usher_test_\w{8}$/)
  const { rows } = await studio.query<{ made: { key: string; prefix: string } }>(
    `select public.create_api_key('CRM', '{events:read}', $1) as made`,
    [tests.organisation.id],
  )
  const made = rows[0]?.made ?? expect.unreachable()
  expect((await rest(made.key)('GET', '/me')).status).toBe(200)
  const { rows: rotated } = await studio.query('select public.rotate_api_key($1) ->> $2 as prefix', [
    made.prefix,
    'prefix',
  ])
  expect(rotated[0].prefix).toMatch(/^usher_test_/)
  for (const [{ organisation }, prefix] of [
    [live, 'usher_test_00000000'],
    [tests, 'usher_live_00000000'],
    [live, 'usher_page_00000000'],
  ] as const) {
    const insert = studio.query(
      `insert into public.api_keys (organisation_id, name, prefix, scopes) values ($1, 'CRM', $2, '{events:read}')`,
      [organisation.id, prefix],
    )
    await expect(insert).rejects.toMatchObject({ code: 'PT422' })
    const change = studio.query('update public.api_keys set prefix = $2 where organisation_id = $1', [
      organisation.id,
      prefix,
    ])
    await expect(change).rejects.toThrow('This field is fixed once the row exists.')
  }
})

test('whether it is one is fixed', async () => {
  for (const { organisation } of [live, tests]) {
    const change = studio.query('update public.organisations set is_test = not is_test where id = $1', [
      organisation.id,
    ])
    await expect(change).rejects.toThrow('This field is fixed once the row exists.')
  }
})

test('an e-mail stays in its organisation, so that none leaves a test one for a transport', async () => {
  await tests.event.guest()
  const move = studio.query('update public.emails set organisation_id = $2 where organisation_id = $1', [
    tests.organisation.id,
    live.organisation.id,
  ])
  await expect(move).rejects.toThrow('This field is fixed once the row exists.')
})

test('an object of the other kind is not found, whichever key asks', async () => {
  for (const [one, other] of [
    [live, tests],
    [tests, live],
  ] as const) {
    const { attendeeId, orderId } = await other.event.guest()
    for (const path of [`/events/${other.event.id}`, `/attendees/${attendeeId}`, `/orders/${orderId}`]) {
      expect((await one.send('GET', path)).body.error.code).toBe('not_found')
    }
  }
})

test('a test ticket is known by its code, also one that is reissued, and admits at its own event alone', async () => {
  const [guest, real] = await Promise.all([tests.event.guest(), live.event.guest()])
  expect([guest.code, real.code]).toEqual([
    expect.stringMatching(/^TEST-[0-9A-Z]{16}$/),
    expect.stringMatching(/^[0-9A-Z]{16}$/),
  ])
  const scan = ({ send, event }: Side, code: string) => send('POST', '/check-ins', { event_id: event.id, code })
  const testAtLive = (await scan(live, guest.code)).body.error
  expect(testAtLive).toMatchObject({
    code: 'not_found',
    message: 'No ticket here has this code, which is of a test organisation.',
  })
  expect((await scan(tests, real.code)).body.error).toMatchObject({ message: 'No ticket has this code.' })

  const changes = { reissue_ticket: true }
  const { data } = (await tests.send('PATCH', `/attendees/${guest.attendeeId}`, changes)).body
  expect(data.ticket_code).toMatch(/^TEST-/)
  const heard = data.ticket_code
    .toLowerCase()
    .replaceAll('0', 'o')
    .replace('-', '')
    .replace(/....(?=.)/g, '$& ')
  expect((await scan(tests, heard)).status).toBe(200)
})

test('the door list and every page say that it is a test', async () => {
  const door = async ({ send, event }: Side) => (await send('GET', `/events/${event.id}/door-list`)).body.data.event
  expect([await door(live), await door(tests)]).toMatchObject([{ livemode: true }, { livemode: false }])
  const pages = async ({ send, event, organisation }: Side) => {
    await studio.query("update public.events set registration_page = 'public' where id = $1", [event.id])
    const { slug } = (await send('GET', `/events/${event.id}`)).body.data
    const guest = { ticket_type_id: event.ticketTypeId, name: 'Mary Jackson', email: 'mary@example.com' }
    const { data } = (await send('POST', `/events/${event.id}/registrations`, guest)).body
    const urls = [`${inject('apiUrl')}/e/${organisation.slug}/${slug}`, data.attendees[0].ticket_url]
    return Promise.all(
      urls.map(async (url) => (await (await fetch(url)).text()).includes('<p class="status notice">Test</p>')),
    )
  }
  expect([await pages(live), await pages(tests)]).toEqual([
    [false, false],
    [true, true],
  ])
})

test('an e-mail is read as it was kept, by whoever may read its object; of a live organisation without content', async () => {
  const kept = { subject: '[Test] Your ticket', text: 'Test', html: '<p>Test</p>', attachments: [] }
  const emailOf = async ({ event, organisation }: Side, content: object | null, of = 'attendee_id') => {
    const { attendeeId, orderId } = await event.guest()
    const { rows } = await studio.query<{ id: string }>(
      `insert into public.emails (organisation_id, kind, ${of}, status, next_attempt_at, content)
       values ($1, $2, $3, 'sent', null, $4) returning id`,
      [
        organisation.id,
        of === 'order_id' ? 'order_expired' : 'event_changed',
        of === 'order_id' ? orderId : attendeeId,
        content,
      ],
    )
    return { attendeeId, path: `/emails/${rows[0]?.id}` }
  }
  const mine = await emailOf(tests, kept)
  expect((await tests.send('GET', mine.path)).body.data).toMatchObject({ object: 'email', status: 'sent', ...kept })
  const nothing = { subject: null, text: null, html: null, attachments: null }
  expect((await live.send('GET', (await emailOf(live, null)).path)).body.data).toMatchObject(nothing)
  expect(problemOf(await live.send('GET', mine.path))).toEqual([404, 'not_found', 'email_id'])

  const toBuyer = await emailOf(tests, kept, 'order_id')
  const reader = rest(await tests.organisation.key('attendees:read'))
  expect((await reader('GET', toBuyer.path)).body.data).toMatchObject(nothing)
  expect((await tests.send('GET', toBuyer.path)).body.data).toMatchObject(kept)
})

test('a courier that does not say that it keeps test e-mails gets none', async () => {
  const { attendeeId } = await tests.event.guest()
  // Without a lease, which would take those of other tests as well.
  const isDue = async (keepsTests: boolean) => {
    const { rows } = await studio.query<{ due: boolean }>(
      `select e.id = any (private.due_emails(100000, clock_timestamp(), $2)) as due
       from public.emails e where e.attendee_id = $1`,
      [attendeeId, keepsTests],
    )
    return rows
  }
  expect([await isDue(false), await isDue(true)]).toEqual([[{ due: false }], [{ due: true }]])
})

test('its e-mails are purged after a week, those of a live organisation after a month', async () => {
  await rolledBack(async (client, asCourier) => {
    const emails = async () => {
      const { rows } = await client.query<{ organisation_id: string }>(
        `select organisation_id from public.emails where organisation_id = any ($1) and id < private.first_uuid_v7(now() - interval '7 days')`,
        [[live.organisation.id, tests.organisation.id]],
      )
      return rows.map(({ organisation_id }) => organisation_id)
    }
    for (const { organisation, event } of [live, tests]) {
      await client.query(
        `insert into public.emails (id, organisation_id, kind, attendee_id, status, next_attempt_at, created_at)
         select overlay(private.first_uuid_v7(now() - interval '8 days')::text placing right($1, 12) from 25)::uuid, $1::uuid,
           'event_changed', a.id, 'sent', null, now() - interval '8 days'
         from public.attendees a where a.event_id = $2 limit 1`,
        [organisation.id, event.id],
      )
    }
    expect(await emails()).toHaveLength(2)
    await asCourier('select api.purge(30, 100000)')
    expect(await emails()).toEqual([live.organisation.id])
  })
})

test('whoever registers while it is emptied is not in its way', async () => {
  const { organisation, event } = await arrange(true)
  const empty = await during(async (client) => {
    // As a registration: the event, and then what refers to the organisation.
    await client.query('select private.lock_event_shared($1)', [event.id])
    await client.query('select from public.events where id = $1 for key share', [event.id])
    const emptying = studio.query('select public.empty_test_organisation($1) as rows', [organisation.id])
    await expect
      .poll(() =>
        studio.query(
          "select from pg_stat_activity where query like '%empty_test_organisation($1)%' and wait_event_type = 'Lock'",
        ),
      )
      .toMatchObject({ rowCount: 1 })
    await client.query('select from public.organisations where id = $1 for key share', [organisation.id])
    return { emptying }
  })
  expect((await empty.emptying).rows[0].rows).toMatchObject({ events: 1 })
})
