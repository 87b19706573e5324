// Ticket e-mails as they become pending, are claimed and settled, and what the attendee shows of them. In a transaction that is rolled
// back, as the courier's role, since it claims from every organisation.

import type { PoolClient } from 'pg'
import { expect, test } from 'vitest'
import { asPurge, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { lockOutbox } from '../../support/outbox.ts'
import { type AsCourier, first, rolledBack } from '../as-courier.ts'

type Pending = {
  id: string
  claim: string
  attempt: number
  attendee?: { id: string; email: string; ticket_code: string }
}

type Result = { messageId?: string; error?: string; permanent?: boolean }

const courierOf = (client: PoolClient, asCourier: AsCourier, attendeeId: string) => {
  const ofAttendee = async <T>(sql: string) => (await client.query(sql, [attendeeId])).rows as T[]
  return {
    // One, and ours is the oldest, and is served first: others of the run are left to themselves.
    claim: async () => {
      await ofAttendee(
        `update public.emails set next_attempt_at = '2000-01-01'
         where attendee_id = $1 and status = 'queued' and next_attempt_at <= now()`,
      )
      await ofAttendee('update public.emails set last_attempt_at = null where attendee_id = $1')
      const pending = (await asCourier('select api.claim_emails(1)')) as Pending[]
      return pending.filter((o) => o.attendee?.id === attendeeId)
    },
    settle: ({ id, claim }: Pick<Pending, 'id' | 'claim'>, { messageId, error, permanent = false }: Result) =>
      asCourier('select api.settle_email($1, $2, $3, $4, $5)', [
        id,
        claim,
        messageId ?? null,
        error ?? null,
        permanent,
      ]),
    event: (messageId: string, status: string, error?: string, email?: Pick<Pending, 'id' | 'attempt'>) =>
      asCourier('select api.record_email_event($1, $2, $3, $4, $5)', [
        ...[messageId, status, error ?? null],
        ...[email?.id ?? null, email?.attempt ?? null],
      ]),
    edit: (assignments: string) => ofAttendee(`update public.attendees set ${assignments} where id = $1`),
    /** What the attendee shows. */
    shown: async () =>
      first(
        await ofAttendee<{ status: string; sent: boolean; error: string | null }>(
          `select ticket_email_status as status, ticket_email_sent_at is not null as sent, ticket_email_last_error as error
           from public.attendees where id = $1`,
        ),
      ),
    /** In the view of tickets that did not arrive. */
    undelivered: () =>
      ofAttendee('select ticket_email_status, error from public.undelivered_tickets where attendee_id = $1'),
    /** The rows of what is and was pending, oldest first. */
    emails: () =>
      ofAttendee<{ status: string; attempts: number; wait: number | null }>(
        `select status, attempts, extract(epoch from next_attempt_at - now())::float8 as wait
         from public.emails where attendee_id = $1 order by id`,
      ),
    /** The lease, or the pause: the row is due again, and nobody's. */
    expire: () =>
      ofAttendee(
        `update public.emails set next_attempt_at = now(), claimed_until = least(claimed_until, now())
         where attendee_id = $1 and status = 'queued'`,
      ),
    /** Of the e-mail that is pending. */
    id: async () =>
      first(
        await ofAttendee<{ id: string }>("select id from public.emails where attendee_id = $1 and status = 'queued'"),
      ).id,
  }
}

/** A guest with a ticket to be e-mailed. */
async function withCourier(
  work: (courier: ReturnType<typeof courierOf>) => Promise<void>,
  { paid = true } = {},
): Promise<void> {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await studio.query("update public.organisations set reply_to_email = 'desk@example.com' where id = $1", [
    organisation.id,
  ])
  await rolledBack(async (client, asCourier) => {
    const order = await client.query(
      "insert into public.orders (event_id, name, email, payment_method) values ($1, 'G', 'g@example.com', $2) returning id",
      [event.id, paid ? null : 'invoice'],
    )
    await client.query('update public.ticket_types set price = 4900 where id = $1', [event.ticketTypeId])
    const { rows } = await client.query(
      `insert into public.attendees (order_id, ticket_type_id, name, email, company)
       values ($1, $2, 'Mary Jackson', 'mary@example.com', 'NASA') returning id`,
      [order.rows[0].id, event.ticketTypeId],
    )
    await work(courierOf(client, asCourier, String(rows[0].id)))
  })
}

test('a ticket is pending once, with all that its e-mail says, and is shown as sent', async () => {
  await withCourier(async ({ claim, settle, shown, emails }) => {
    const pending = await claim()
    expect(pending).toEqual([
      {
        id: expect.any(String),
        claim: expect.any(String),
        attempt: 1,
        kind: 'ticket',
        previous: null,
        lines: null,
        message: null,
        payment: null,
        others: [],
        holders: null,
        offer_url: null,
        questions: null,
        organiser_message: null,
        answer_url: null,
        opt_out_url: null,
        order_url: null,
        guests: null,
        money: null,
        waiting_list_entry: null,
        organisation: {
          name: expect.any(String),
          reply_to: 'desk@example.com',
          accent_colour: null,
          payment_instructions: null,
          logo_url: null,
          is_test: false,
        },
        event: expect.objectContaining({ object: 'event', timezone: 'Europe/Berlin' }),
        ticket_type: { name: 'General' },
        order: { reference: expect.stringMatching(/^[0-9A-Z]{8}$/) },
        attendee: {
          id: expect.any(String),
          name: 'Mary Jackson',
          email: 'mary@example.com',
          company: 'NASA',
          status: 'active',
          ticket_code: expect.stringMatching(/^[0-9A-Z]{16}$/),
          // A courier with no PUBLIC_URL knows none.
          ticket_url: null,
          guest: null,
          has_another_ticket: false,
          updated_at: expect.stringContaining('T'),
        },
      },
    ])
    expect(await claim()).toEqual([])
    await settle(first(pending), { messageId: 'm-1' })
    expect(await shown()).toEqual({ status: 'sent', sent: true, error: null })
    expect(await emails()).toEqual([{ status: 'sent', attempts: 1, wait: null }])
  })
})

test('no e-mail is pending before the order is paid', async () => {
  await withCourier(
    async ({ claim, emails }) => {
      expect(await emails()).toEqual([])
      expect(await claim()).toEqual([])
    },
    { paid: false },
  )
})

test('a ticket that is cancelled before it was sent is not sent', async () => {
  await withCourier(async ({ claim, edit, shown, emails }) => {
    await edit("status = 'cancelled'")
    expect(await claim()).toEqual([])
    expect(await shown()).toEqual({ status: 'cancelled', sent: false, error: null })
    expect(await emails()).toMatchObject([{ status: 'cancelled' }])
  })
})

test('a ticket that is cancelled while its e-mail is under way stays cancelled', async () => {
  await withCourier(async ({ claim, edit, settle, shown }) => {
    const pending = first(await claim())
    await edit("status = 'cancelled'")
    await settle(pending, { messageId: 'm-2' })
    expect(await shown()).toMatchObject({ status: 'cancelled' })
  })
})

test('a transient failure is tried again for five days, ever later, and then shown as failed', async () => {
  await withCourier(async ({ claim, settle, shown, emails, expire }) => {
    for (const hours of [1 / 120, 1 / 30, 1 / 6, 1 / 2, 2, 6, 12, 12, 12, 24, 24, 24]) {
      const seconds = hours * 3600
      await settle(first(await claim()), { error: 'The mail service is busy.' })
      const { status, wait } = first(await emails())
      expect(status).toBe('queued')
      expect(wait).toBeGreaterThanOrEqual(seconds * 0.79)
      expect(wait).toBeLessThanOrEqual(seconds * 1.21)
      expect(await shown()).toEqual({ status: 'queued', sent: false, error: 'The mail service is busy.' })
      await expire()
    }
    await settle(first(await claim()), { error: 'The mail service is busy.' })
    expect(await shown()).toEqual({ status: 'failed', sent: false, error: 'The mail service is busy.' })
    expect(await emails()).toEqual([{ status: 'failed', attempts: 13, wait: null }])
  })
})

test('a permanent failure is not tried again', async () => {
  await withCourier(async ({ claim, settle, shown }) => {
    await settle(first(await claim()), { error: 'No such mailbox.', permanent: true })
    expect(await shown()).toEqual({ status: 'failed', sent: false, error: 'No such mailbox.' })
    expect(await claim()).toEqual([])
  })
})

test.each([
  ['sent once more', "ticket_email_status = 'queued'"],
  ['reissued', 'ticket_code = null'],
])('a ticket that waits after failures and is %s is due at once, with all its attempts', async (_what, assignments) => {
  await withCourier(async ({ claim, settle, edit, shown, emails, expire }) => {
    for (let attempt = 1; attempt <= 3; attempt++) {
      await expire()
      await settle(first(await claim()), { error: 'Wrong password.' })
    }
    await edit("name = 'Mary W. Jackson'")
    expect(await emails()).toEqual([{ status: 'queued', attempts: 3, wait: expect.any(Number) }])
    await edit(assignments)
    expect(await emails()).toEqual([
      { status: 'cancelled', attempts: 3, wait: null },
      { status: 'queued', attempts: 0, wait: 0 },
    ])
    await settle(first(await claim()), { messageId: 'm-6' })
    expect(await shown()).toEqual({ status: 'sent', sent: true, error: null })
    expect((await emails())[1]).toEqual({ status: 'sent', attempts: 1, wait: null })
  })
})

test('a ticket that is sent once more while its e-mail is under way is sent once', async () => {
  await withCourier(async ({ claim, settle, edit, shown, emails, expire }) => {
    await settle(first(await claim()), { error: 'Wrong password.' })
    await expire()
    const pending = first(await claim())
    await edit("ticket_email_status = 'queued'")
    expect(await emails()).toMatchObject([{ status: 'queued', attempts: 2 }])
    expect(await claim()).toEqual([])
    await settle(pending, { messageId: 'm-7' })
    expect(await shown()).toEqual({ status: 'sent', sent: true, error: null })
  })
})

test('what waits after a failure is shown as a ticket that did not arrive', async () => {
  await withCourier(async ({ claim, settle, undelivered }) => {
    expect(await undelivered()).toEqual([])
    await settle(first(await claim()), { error: 'Wrong password.' })
    expect(await undelivered()).toEqual([{ ticket_email_status: 'queued', error: 'Wrong password.' }])
  })
})

test.each([
  ['code', 'ticket_code = null'],
  ['address', "email = 'new@example.com'"],
])(
  'a ticket whose %s changes while its e-mail is under way is pending again, as it is now',
  async (_what, assignments) => {
    await withCourier(async ({ claim, settle, edit, shown }) => {
      const old = first(await claim())
      await edit(assignments)
      await settle(old, { messageId: 'm-5' })
      expect(await shown()).toMatchObject({ status: 'queued' })
      const { attendee, claim: name, id } = first(await claim())
      expect(attendee).not.toEqual(old.attendee)
      await settle({ id, claim: name }, { messageId: 'm-6' })
      expect(await shown()).toMatchObject({ status: 'sent' })
    })
  },
)

test('whoever died with a claim leaves it to the next, and what they say afterwards does not count', async () => {
  await withCourier(async ({ claim, settle, expire, shown }) => {
    const dead = first(await claim())
    await expire()
    const next = first(await claim())
    expect([next.id, next.attempt]).toEqual([dead.id, 2])
    await settle(dead, { error: 'No such mailbox.', permanent: true })
    expect(await shown()).toMatchObject({ status: 'queued' })
    await settle(next, { messageId: 'm-7' })
    expect(await shown()).toMatchObject({ status: 'sent' })
  })
})

test('what the mail service tells later is shown, of the latest e-mail only', async () => {
  await withCourier(async ({ claim, settle, event, edit, shown }) => {
    await settle(first(await claim()), { messageId: 'm-8' })
    await event('m-8', 'delivered')
    expect(await shown()).toMatchObject({ status: 'delivered' })
    await event('m-8', 'bounced', 'Mailbox full.')
    expect(await shown()).toMatchObject({ status: 'bounced', error: 'Mailbox full.' })
    await edit("ticket_email_status = 'queued'")
    await settle(first(await claim()), { messageId: 'm-9' })
    await event('m-8', 'bounced', 'Late.')
    await event('nobody', 'bounced', 'Strange.')
    expect(await shown()).toEqual({ status: 'sent', sent: true, error: null })
  })
})

test('what the mail service tells before its answer has arrived counts as that answer', async () => {
  await withCourier(async ({ claim, settle, event, shown, emails }) => {
    const pending = first(await claim())
    await event('m-10', 'delivered', undefined, pending)
    expect(await shown()).toEqual({ status: 'delivered', sent: true, error: null })
    expect(await emails()).toEqual([{ status: 'delivered', attempts: 1, wait: null }])
    // The answer comes, or the courier has lost it.
    await settle(pending, { messageId: 'm-10' })
    await settle(pending, { error: 'No answer.' })
    expect(await shown()).toEqual({ status: 'delivered', sent: true, error: null })
    await event('m-10', 'bounced', 'Mailbox full.')
    expect(await shown()).toMatchObject({ status: 'bounced', error: 'Mailbox full.' })
  })
})

test('an e-mail that arrived although its answer was lost is not sent again', async () => {
  await withCourier(async ({ claim, settle, event, expire, shown }) => {
    const pending = first(await claim())
    await settle(pending, { error: 'Postmark: timeout.' })
    await event('m-11', 'delivered', undefined, pending)
    expect(await shown()).toEqual({ status: 'delivered', sent: true, error: null })
    await expire()
    expect(await claim()).toEqual([])
  })
})

test('an event changes nothing of an e-mail that nobody has begun to send', async () => {
  await withCourier(async ({ event, emails, shown, id }) => {
    await event('m-13', 'delivered', undefined, { id: await id(), attempt: 1 })
    expect(await shown()).toMatchObject({ status: 'queued' })
    expect(await emails()).toMatchObject([{ status: 'queued', attempts: 0 }])
  })
})

test('an event of an attempt that another has followed changes nothing', async () => {
  // The address is corrected between two attempts, and the code re-issued: what became of the first says nothing of the ticket.
  for (const [told, assignments, attempt] of [
    ['delivered', "email = 'new@example.com'", 2],
    ['bounced', "email = 'new@example.com'", 2],
    ['delivered', "ticket_code = null, email = 'new@example.com'", 1],
    ['bounced', "ticket_code = null, email = 'new@example.com'", 1],
  ] as const) {
    await withCourier(async ({ claim, settle, event, edit, expire, shown }) => {
      const one = first(await claim())
      await settle(one, { error: 'Postmark: timeout.' })
      await edit(assignments)
      await expire()
      const two = first(await claim())
      expect([two.id === one.id, two.attempt, two.attendee?.email]).toEqual([attempt === 2, attempt, 'new@example.com'])
      await event('m-14', told, told === 'bounced' ? 'No such mailbox.' : undefined, one)
      expect(await shown()).toMatchObject({ status: 'queued' })
      await settle(two, { messageId: 'm-15' })
      await event('m-15', 'delivered', undefined, two)
      expect(await shown()).toEqual({ status: 'delivered', sent: true, error: null })
      await event('m-14', told, 'Late.', one)
      expect(await shown()).toMatchObject({ status: 'delivered' })
    })
  }
})

test('an e-mail that was given up and arrives all the same is shown as delivered', async () => {
  await withCourier(async ({ claim, settle, event, shown, emails }) => {
    const pending = first(await claim())
    await settle(pending, { error: 'Postmark: timeout.', permanent: true })
    expect(await shown()).toMatchObject({ status: 'failed' })
    await event('m-16', 'delivered', undefined, pending)
    expect(await shown()).toEqual({ status: 'delivered', sent: true, error: null })
    expect(await emails()).toEqual([{ status: 'delivered', attempts: 1, wait: null }])
  })
})

test('what is claimed again and again and never settled is given up', async () => {
  await withCourier(async ({ claim, expire, shown, emails }) => {
    for (let i = 0; i < 20; i++) {
      expect(await claim()).toHaveLength(1)
      await expire()
    }
    expect(await claim()).toEqual([])
    expect(await emails()).toEqual([{ status: 'failed', attempts: 20, wait: null }])
    expect(await shown()).toMatchObject({ error: 'Given up after 20 attempts without a recorded result.' })
  })
})

test('results of different kinds in one call are each recorded for their own e-mail', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await rolledBack(async (client, asCourier) => {
    const guests = ['sent', 'later', 'never', 'reissued', 'stale']
    await client.query(
      `insert into public.orders (event_id, name, email, payment_method, source)
       select $1, g, g || '@example.com', case g when 'buyer' then 'invoice'::public.payment_method end, 'api' from unnest($2::text[]) g`,
      [event.id, [...guests, 'buyer']],
    )
    await client.query(
      `insert into public.attendees (order_id, ticket_type_id, name, email)
       select o.id, $2, o.name, o.email from public.orders o where o.event_id = $1 order by o.id`,
      [event.id, event.ticketTypeId],
    )
    // As api.claim_emails leaves them, which would claim those of other tests as well.
    const { rows: claimed } = await client.query<{ id: string; claim: string; name: string }>(
      `update public.emails e set claim = gen_random_uuid(), claimed_until = now() + interval '1 hour', attempts = 1,
         sent_to = coalesce(t.email, o.email), sent_code = t.ticket_code
       from public.emails n
       left join public.attendees t on t.id = n.attendee_id
       left join public.orders o on o.id = n.order_id
       where n.id = e.id and e.organisation_id = $1
       returning e.id, e.claim, coalesce(t.name, o.name) as name`,
      [organisation.id],
    )
    // The buyer has a confirmation and a ticket.
    expect(claimed).toHaveLength(7)
    await client.query("update public.attendees set ticket_code = null where event_id = $1 and name = 'reissued'", [
      event.id,
    ])
    const others: Record<string, object> = {
      later: { error: 'busy' },
      never: { error: 'no such box', permanent: true },
      stale: { claim: '00000000-0000-0000-0000-000000000000', message_id: 'stale' },
    }
    await asCourier('select api.settle_emails($1)', [
      JSON.stringify(
        claimed.map(({ id, claim, name }) => ({
          email_id: id,
          claim,
          ...(others[name] ?? { message_id: name }),
        })),
      ),
    ])
    const { rows } = await client.query(
      `select coalesce(a.name, o.name) as name, array_agg(e.status || coalesce(' ' || e.message_id, '') order by e.id) as emails,
         min(a.ticket_email_status) as shown, min(a.ticket_email_last_error) as error
       from public.emails e
       left join public.attendees a on a.id = e.attendee_id left join public.orders o on o.id = e.order_id
       where e.organisation_id = $1 group by 1 order by 1`,
      [organisation.id],
    )
    expect(rows).toEqual([
      { name: 'buyer', emails: ['sent buyer', 'sent buyer'], shown: 'sent', error: null },
      { name: 'later', emails: ['queued'], shown: 'queued', error: 'busy' },
      { name: 'never', emails: ['failed'], shown: 'failed', error: 'no such box' },
      { name: 'reissued', emails: ['sent reissued', 'queued'], shown: 'queued', error: null },
      { name: 'sent', emails: ['sent sent'], shown: 'sent', error: null },
      { name: 'stale', emails: ['queued'], shown: 'queued', error: null },
    ])
  })
})

test('tickets of an order to one address go together, ten at most, and what is said of the e-mail is said of each', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await rolledBack(async (client, asCourier) => {
    await lockOutbox(client)
    await client.query(`delete from public.emails using ${asPurge}`)
    const { rows } = await client.query(
      "insert into public.orders (event_id, name, email) values ($1, 'G', 'desk@example.com') returning id",
      [event.id],
    )
    await client.query(
      `insert into public.attendees (order_id, ticket_type_id, name, email)
       select $1, $2, 'Guest ' || n, case n when 5 then 'own@example.com' when 6 then 'DESK@example.com' else 'desk@example.com' end
       from generate_series(1, 13) n`,
      [rows[0].id, event.ticketTypeId],
    )
    type Together = Pending & { others: { email_id: string; name: string; ticket_code: string }[] }
    const claim = async (limit: number) =>
      ((await asCourier('select api.claim_emails($1)', [limit])) as Together[]).sort(
        (a, b) => b.others.length - a.others.length,
      )
    const settle = ({ id, claim, others }: Together, result: object) =>
      asCourier('select api.settle_emails($1)', [
        JSON.stringify(
          [id, ...others.map(({ email_id }) => email_id)].map((email_id) => ({ email_id, claim, ...result })),
        ),
      ])
    const shown = async () =>
      (
        await client.query(
          `select ticket_email_status as status, count(*)::integer from public.attendees
           where order_id = $1 and ticket_email_status <> 'queued' group by 1 order by 1`,
          [rows[0].id],
        )
      ).rows

    const all = await claim(16)
    expect(all.map(({ others }) => others.length)).toEqual([9, 1, 0])
    const codes = all.flatMap((each) => [each.attendee, ...each.others].map((one) => one?.ticket_code))
    expect(new Set(codes).size).toBe(13)
    expect(all[2]?.attendee?.email).toBe('own@example.com')
    expect(await claim(16)).toEqual([])

    // Each has a pause of its own; the first that is due takes the others along, but for one that was cancelled.
    const [ten, two, own] = all as [Together, Together, Together]
    await settle(ten, { error: 'busy' })
    await client.query('update public.emails set next_attempt_at = now() where id = $1', [ten.others[3]?.email_id])
    await client.query(
      `update public.attendees set status = 'cancelled' where id = (select attendee_id from public.emails where id = $1)`,
      [ten.others[4]?.email_id],
    )
    const again = first(await claim(1))
    expect([again.attempt, again.others.length]).toEqual([2, 8])
    await settle(again, { message_id: 'm-9' })
    await settle(two, { message_id: 'm-2' })
    await settle(own, { message_id: 'm-1' })
    const sent = await shown()
    expect(sent).toContainEqual({ status: 'sent', count: 12 })

    // A report on the first attempt is on none that has followed.
    const report = (id: string | null, message: string, attempt: number | null) =>
      asCourier(`select api.record_email_event($1, 'bounced', 'no such mailbox', $2, $3)`, [message, id, attempt])
    await report(again.id, 'm-9', 1)
    expect(await shown()).toEqual(sent)
    await report(again.id, 'm-9', 2)
    expect(await shown()).toContainEqual({ status: 'bounced', count: 9 })
    await report(null, 'm-2', null)
    expect(await shown()).toContainEqual({ status: 'bounced', count: 11 })

    // One that is sent again goes alone.
    await client.query(`update public.attendees set ticket_email_status = 'queued' where email = 'own@example.com'`)
    expect((await claim(16)).map(({ others }) => others)).toEqual([[]])
  })
})
