// What SQL lets a courier claim, by the names that its token carries and by the cluster: that of the installation sends, a copy holds.

import type { PoolClient } from 'pg'
import { describe, expect, test } from 'vitest'
import { createOrganisation } from '../support/organisation.ts'
import { addEndpoint, fanOut } from '../support/outbox.ts'
import { type AsCourier, rolledBack } from './as-courier.ts'

type Names = string[] | null

const home = ['inodes:1:2:3', 'made:4']

/** A courier that carries these names, beside an organisation of which a webhook and an e-mail are due. */
async function arranged(
  work: (
    courier: {
      /** Whether it is told that deliveries are held. */
      announce(names: Names): Promise<boolean>
      /** What it may claim: that of the organisation, and given back at once. */
      claim(names: Names): Promise<{ webhooks: number; emails: number }>
      held(names: Names): Promise<boolean[]>
    },
    client: PoolClient,
  ) => Promise<void>,
): Promise<void> {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await addEndpoint(organisation.id, ['order.created'])
  await event.guest()
  await fanOut(organisation.id)
  await rolledBack(async (client, asCourier) => {
    const as = async (names: Names, call: (asCourier: AsCourier) => Promise<unknown>) => {
      const claims = { role: 'courier', ...(names && { installation: names }) }
      await client.query("select set_config('request.jwt.claims', $1, true)", [JSON.stringify(claims)])
      return call(asCourier)
    }
    const ofOrganisation = async (table: string, claimed: unknown) => {
      const ids = (claimed as { id: string }[]).map(({ id }) => id)
      const { rows } = await client.query(
        `select count(*)::integer as n from public.${table} where id = any ($1) and organisation_id = $2`,
        [ids, organisation.id],
      )
      return rows[0].n as number
    }
    await work(
      {
        announce: async (names) =>
          ((await as(names, (call) => call('select api.announce_installation()'))) as { held: boolean }).held,
        async claim(names) {
          await client.query('savepoint unclaimed')
          const webhooks = await as(names, (call) => call('select api.claim_webhooks(100000)'))
          const emails = await as(names, (call) => call('select api.claim_ticket_emails(100000)'))
          const counts = {
            webhooks: await ofOrganisation('webhook_deliveries', webhooks),
            emails: await ofOrganisation('emails', emails),
          }
          await client.query('rollback to unclaimed')
          return counts
        },
        held: async (names) =>
          ((await as(names, (call) => call('select api.outbox_depth()'))) as { held: boolean }[]).map(
            ({ held }) => held,
          ),
      },
      client,
    )
  })
}

const all = { webhooks: 1, emails: 1 }
const nothing = { webhooks: 0, emails: 0 }
const ofAnotherCluster = 'update private.installations set system_identifier = system_identifier + 1'

test('the first to be announced is the installation: an upgrade and a first start hold nothing', async () => {
  await arranged(async ({ announce, claim, held }) => {
    expect(await claim(home)).toEqual(all)
    expect(await announce(home)).toBe(false)
    expect(await claim(home)).toEqual(all)
    expect(await held(home)).toEqual([false, false])
  })
})

describe('a data directory', () => {
  test.each<[string, Names, object]>([
    ['as it was', home, all],
    ['on a file system that numbers its files anew', ['inodes:7:8:9', 'made:4'], all],
    ['on a file system that does not say when a folder was made', ['inodes:1:2:3'], all],
    ['with a courier of an earlier version, which names nothing', null, all],
    ['that is a copy', ['inodes:7:8:9', 'made:5'], nothing],
    ['as a Supabase project', ['address:http://127.0.0.1:54321'], nothing],
  ])('%s', async (_, names, expected) => {
    await arranged(async ({ announce, claim, held }) => {
      await announce(home)
      expect(await claim(names)).toEqual(expected)
      expect(await announce(names)).toBe(expected === nothing)
      expect(await claim(names)).toEqual(expected)
      expect(await held(names)).toEqual([expected === nothing, expected === nothing])
    })
  })

  test('learns the names that it is given, so that two changes one after the other hold nothing', async () => {
    await arranged(async ({ announce }) => {
      expect(await announce(home)).toBe(false)
      expect(await announce(['inodes:7:8:9', 'made:4'])).toBe(false)
      expect(await announce(['inodes:7:8:9', 'made:5'])).toBe(false)
    })
  })
})

describe('a dump that is restored into another cluster is held', () => {
  test.each<[string, Names]>([
    ['under an address that every machine has', ['address:http://kong:8000']],
    ['with a courier of an earlier version', null],
  ])('%s', async (_, names) => {
    await arranged(async ({ announce, claim }, client) => {
      await announce(['address:http://kong:8000'])
      expect(await claim(names)).toEqual(all)
      await client.query(ofAnotherCluster)
      expect(await announce(names)).toBe(true)
      expect(await claim(names)).toEqual(nothing)
    })
  })

  test('in another project; while a project that is given another cluster goes on', async () => {
    await arranged(async ({ announce, claim }, client) => {
      await announce(['project:abcdefghijklmnopqrst'])
      await client.query(ofAnotherCluster)
      expect(await claim(['project:qrstabcdefghijklmnop'])).toEqual(nothing)
      expect(await claim(['project:abcdefghijklmnopqrst'])).toEqual(all)
      expect(await announce(['project:abcdefghijklmnopqrst'])).toBe(false)
      // It is the cluster of the installation from now on.
      expect(await claim(null)).toEqual(all)
    })
  })
})

test('the inner and the outer address of a project are one, once both are announced; an address alone stays held', async () => {
  const [outer, inner] = [['project:https://supabase.example.com'], ['address:http://kong:8000']]
  await arranged(async ({ announce, claim }) => {
    expect(await announce(outer)).toBe(false)
    expect(await announce(inner)).toBe(true)
    expect(await announce(inner)).toBe(true)
    expect(await claim(inner)).toEqual(nothing)
    expect(await announce(outer)).toBe(false)
    expect(await claim(inner)).toEqual(all)
    expect(await announce(inner)).toBe(false)
    expect(await claim(outer)).toEqual(all)
  })
})

test('a release gives the database to who is announced next', async () => {
  const copy = ['inodes:7:8:9', 'made:5']
  await arranged(async ({ announce, claim }, client) => {
    await announce(home)
    expect(await announce(copy)).toBe(true)
    await client.query('select private.release_deliveries()')
    expect(await claim(copy)).toEqual(all)
    expect(await announce(copy)).toBe(false)
    expect(await claim(home)).toEqual(nothing)
  })
})

test('a file system that never keeps a name does not fill the row', async () => {
  await arranged(async ({ announce }, client) => {
    for (let i = 0; i < 60; i++) await announce([`inodes:${i}:0:0`, 'made:4'])
    const { rows } = await client.query('select cardinality(names) as n, names[1] as newest from private.installations')
    expect(rows).toEqual([{ n: 50, newest: 'inodes:59:0:0' }])
  })
})
