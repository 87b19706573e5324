// Whose ticket e-mail is claimed next: organisations take turns, however long the queue of one is, and no backlog is scanned.
// In a transaction that is rolled back, as the courier's role, since it claims from every organisation.

import type { PoolClient } from 'pg'
import { expect, test } from 'vitest'
import { asPurge } from '../../support/database.ts'
import { createOrganisation, type TestOrganisation } from '../../support/organisation.ts'
import { lockOutbox } from '../../support/outbox.ts'
import { type AsCourier, rolledBack } from '../as-courier.ts'

type Pending = { id: string; claim: string; organisation: { name: string } }

/** E-mails that have been due since so many seconds; one guest is enough for all of them. */
async function queue(
  client: PoolClient,
  organisation: TestOrganisation,
  attendeeId: string,
  emails: number,
  since: number,
  kind = 'ticket',
) {
  await client.query(
    `insert into public.emails (organisation_id, attendee_id, next_attempt_at, kind)
     select $1, $2, now() - make_interval(secs => $4 + 1.0 / i), $5 from generate_series(1, $3::integer) i`,
    [organisation.id, attendeeId, emails, since, kind],
  )
}

/** These organisations alone have anything queued, and nobody has been served. */
async function among(
  count: number,
  work: (
    client: PoolClient,
    asCourier: AsCourier,
    all: { organisation: TestOrganisation; attendeeId: string }[],
  ) => Promise<void>,
) {
  const all: { organisation: TestOrganisation; attendeeId: string }[] = []
  for (let i = 0; i < count; i++) {
    const organisation = await createOrganisation()
    const { attendeeId } = await (await organisation.event()).guest()
    all.push({ organisation, attendeeId })
  }
  await rolledBack(async (client, asCourier) => {
    await lockOutbox(client)
    await client.query(`delete from public.emails using ${asPurge}`)
    await work(client, asCourier, all)
  })
}

const claim = async (asCourier: AsCourier, limit: number) =>
  (await asCourier('select api.claim_emails($1)', [limit])) as Pending[]
/** Without what follows for the attendee, who stands for many. */
const settle = (client: PoolClient, { id }: Pending) =>
  client.query(
    `update public.emails set status = 'sent', claim = null, claimed_until = null, next_attempt_at = null
     where id = $1`,
    [id],
  )
const names = (pending: Pending[]) => pending.map(({ organisation }) => organisation.name)

test('one e-mail of an organisation is claimed next, whatever another has queued before it', async () => {
  await among(2, async (client, asCourier, [many, one]) => {
    if (!many || !one) throw new Error('two were made')
    await queue(client, many.organisation, many.attendeeId, 500, 600)
    const [first, ...rest] = await claim(asCourier, 4)
    expect(names([first as Pending, ...rest])).toEqual(Array(4).fill(many.organisation.slug))
    await queue(client, one.organisation, one.attendeeId, 1, 0)
    await settle(client, first as Pending)
    expect(names(await claim(asCourier, 1))).toEqual([one.organisation.slug])
  })
})

test('a ticket does not wait for what all attendees of the organisation are told', async () => {
  await among(1, async (client, asCourier, [one]) => {
    if (!one) throw new Error('one was made')
    await queue(client, one.organisation, one.attendeeId, 8, 600, 'event_cancelled')
    await queue(client, one.organisation, one.attendeeId, 1, 0)
    const claimed = (await claim(asCourier, 4)) as (Pending & { kind: string })[]
    expect(claimed.map(({ kind }) => kind).sort()).toEqual([...Array(3).fill('event_cancelled'), 'ticket'])
  })
})

test('where every organisation has a backlog, each has its turn before one has a second', async () => {
  await among(6, async (client, asCourier, all) => {
    // The first has waited longest, and always comes back with something older than the others have.
    for (const [i, { organisation, attendeeId }] of all.entries()) {
      await queue(client, organisation, attendeeId, 50, 1000 - i * 100)
    }
    const served: string[] = []
    for (let i = 0; i < all.length * 2; i++) {
      const [pending] = await claim(asCourier, 1)
      if (!pending) throw new Error('something is due')
      served.push(pending.organisation.name)
      await settle(client, pending)
    }
    expect(new Set(served.slice(0, all.length)).size).toBe(all.length)
    expect(new Set(served.slice(all.length)).size).toBe(all.length)
  })
})

test('a claim reads a few rows of an organisation that has hundreds due, with statistics or without', async () => {
  await among(2, async (client, asCourier, [many, one]) => {
    if (!many || !one) throw new Error('two were made')
    await queue(client, many.organisation, many.attendeeId, 500, 600)
    await queue(client, one.organisation, one.attendeeId, 1, 0)
    // Its order has hundreds of other addresses, and its address hundreds of other orders' tickets.
    await client.query(
      `with another as (
         insert into public.orders (event_id, name, email)
         select o.event_id, o.name, o.email from public.orders o
         where o.id = (select order_id from public.attendees where id = $1) returning id
       )
       insert into public.attendees (order_id, ticket_type_id, name, email)
       select case when n % 2 = 0 then a.order_id else (select id from another) end, a.ticket_type_id, a.name,
         case when n % 2 = 0 then n || '@example.com' else a.email end
       from public.attendees a, generate_series(1, 400) n where a.id = $1`,
      [one.attendeeId],
    )
    await client.query(
      `delete from public.emails using ${asPurge} where organisation_id = $1 and attendee_id <> all (array(
         select a.id from public.attendees a where a.organisation_id = $1 order by a.id limit 2
       ))`,
      [one.organisation.id],
    )
    const read = async () =>
      Number(
        (
          await client.query(
            `select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) as n from pg_stat_xact_user_tables
             where relid in ('public.emails'::regclass, 'public.attendees'::regclass)`,
          )
        ).rows[0].n,
      )
    for (const statistics of ['', 'analyze public.emails']) {
      await client.query(`savepoint unclaimed; ${statistics}`)
      const before = await read()
      const both = [many.organisation.slug, one.organisation.slug]
      expect(new Set(names(await claim(asCourier, 4))), statistics).toEqual(new Set(both))
      expect((await read()) - before, statistics).toBeLessThan(200)
      await client.query('rollback to unclaimed')
    }
  })
})
