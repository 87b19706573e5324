// What SQL lets a courier claim, by the names that its token carries and by the cluster: that of the installation sends, a copy holds.

import type { PoolClient } from 'pg'
import { describe, expect, test } from 'vitest'
import { createOrganisation } from '../../support/organisation.ts'
import { addEndpoint } from '../../support/outbox.ts'
import { type AsCourier, rolledBack } from '../as-courier.ts'

type Names = string[] | null

const home = ['inodes:1:2:3', 'made:4']

const courierOf = (client: PoolClient, asCourier: AsCourier) => {
  const as = async <T>(names: Names, sql: string): Promise<T> => {
    const claims = { role: 'courier', ...(names && { installation: names }) }
    await client.query("select set_config('request.jwt.claims', $1, true)", [JSON.stringify(claims)])
    return (await asCourier(sql)) as T
  }
  return {
    /** Whether it is told that deliveries are held. */
    announce: async (names: Names) => (await as<{ held: boolean }>(names, 'select api.announce_installation()')).held,
    sends: async (names: Names) => {
      await as(names, 'select')
      return (await client.query('select not private.is_held() as sends')).rows[0].sends as boolean
    },
    /** Reminds of the oldest deadlines, and cancels after them. */
    enforce: (names: Names) => as(names, 'select api.enforce_payment_deadlines(30)'),
    /** What it is told of each queue. */
    held: async (names: Names) =>
      (await as<{ held: boolean }[]>(names, 'select api.outbox_depth()')).map(({ held }) => held),
    /** Whether it may claim any of each, of whatever organisation; given back at once. A few: what is locked is passed over. */
    claim: async (names: Names) => {
      await client.query('savepoint unclaimed')
      const claimed = {
        webhooks: (await as<unknown[]>(names, 'select api.claim_webhooks(30)')).length > 0,
        emails: (await as<unknown[]>(names, 'select api.claim_emails(30)')).length > 0,
      }
      await client.query('rollback to unclaimed')
      return claimed
    },
  }
}

/** A courier, by the names that it carries, in a transaction that is rolled back. */
const arranged = (work: (courier: ReturnType<typeof courierOf>, client: PoolClient) => Promise<void>) =>
  rolledBack((client, asCourier) => work(courierOf(client, asCourier), client))

const ofAnotherCluster = 'update private.installations set system_identifier = system_identifier + 1'

test('the first to be announced is the installation: an upgrade and a first start hold nothing', async () => {
  await arranged(async ({ announce, sends, held }) => {
    expect(await sends(home)).toBe(true)
    expect(await announce(home)).toBe(false)
    expect(await sends(home)).toBe(true)
    expect(await held(home)).toEqual([false, false])
  })
})

describe('a data directory', () => {
  test.each<[string, Names, boolean]>([
    ['as it was', home, true],
    ['on a file system that numbers its files anew', ['inodes:7:8:9', 'made:4'], true],
    ['on a file system that does not say when a folder was made', ['inodes:1:2:3'], true],
    ['with a courier of an earlier version, which names nothing', null, true],
    ['that is a copy', ['inodes:7:8:9', 'made:5'], false],
    ['as a Supabase project', ['address:http://127.0.0.1:54321'], false],
  ])('%s', async (_, names, expected) => {
    await arranged(async ({ announce, sends, held }) => {
      await announce(home)
      expect(await sends(names)).toBe(expected)
      expect(await announce(names)).toBe(!expected)
      expect(await sends(names)).toBe(expected)
      expect(await held(names)).toEqual([!expected, !expected])
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
    await arranged(async ({ announce, sends }, client) => {
      await announce(['address:http://kong:8000'])
      expect(await sends(names)).toBe(true)
      await client.query(ofAnotherCluster)
      expect(await announce(names)).toBe(true)
      expect(await sends(names)).toBe(false)
    })
  })

  test('in another project; while a project that is given another cluster goes on', async () => {
    await arranged(async ({ announce, sends }, client) => {
      await announce(['project:abcdefghijklmnopqrst'])
      await client.query(ofAnotherCluster)
      expect(await sends(['project:qrstabcdefghijklmnop'])).toBe(false)
      expect(await sends(['project:abcdefghijklmnopqrst'])).toBe(true)
      expect(await announce(['project:abcdefghijklmnopqrst'])).toBe(false)
      // It is the cluster of the installation from now on.
      expect(await sends(null)).toBe(true)
    })
  })
})

test('the inner and the outer address of a project are one, once both are announced; an address alone stays held', async () => {
  const [outer, inner] = [['project:https://supabase.example.com'], ['address:http://kong:8000']]
  await arranged(async ({ announce, sends }) => {
    expect(await announce(outer)).toBe(false)
    expect(await announce(inner)).toBe(true)
    expect(await announce(inner)).toBe(true)
    expect(await sends(inner)).toBe(false)
    expect(await announce(outer)).toBe(false)
    expect(await sends(inner)).toBe(true)
    expect(await announce(inner)).toBe(false)
    expect(await sends(outer)).toBe(true)
  })
})

test('a dump that is restored over an installation that has run holds both until they are released', async () => {
  await arranged(async ({ announce, sends }, client) => {
    expect(await announce(home)).toBe(false)
    // As COPY adds it where somebody does not stop at errors.
    await client.query("insert into private.installations values (1, '{inodes:7:8:9}', '{}', '2026-01-01')")
    expect(await sends(home)).toBe(false)
    expect(await announce(home)).toBe(true)
    expect(await announce(home), 'it does not make itself known').toBe(true)
    await client.query('select private.release_deliveries()')
    expect(await announce(home)).toBe(false)
    expect(await sends(home)).toBe(true)
  })
})

test('a release gives the database to who is announced next', async () => {
  const copy = ['inodes:7:8:9', 'made:5']
  await arranged(async ({ announce, sends }, client) => {
    await announce(home)
    expect(await announce(copy)).toBe(true)
    await client.query('select private.release_deliveries()')
    expect(await sends(copy)).toBe(true)
    expect(await announce(copy)).toBe(false)
    expect(await sends(home)).toBe(false)
  })
})

test('where deliveries are held no deadline passes: nobody was reminded of it', async () => {
  const organisation = await createOrganisation()
  const { orderId } = await (await organisation.event()).payer()
  await arranged(async ({ announce, enforce }, client) => {
    await client.query('update public.orders set payment_due_at = now() where id = $1', [orderId])
    const statusAfter = async (names: Names) => {
      await enforce(names)
      return (await client.query('select status from public.orders where id = $1', [orderId])).rows[0].status
    }
    await announce(home)
    expect(await statusAfter(['inodes:7:8:9', 'made:5'])).toBe('pending')
    expect(await statusAfter(home)).toBe('cancelled')
  })
})

test('who is held claims neither webhooks nor e-mails', async () => {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await addEndpoint(organisation.id, ['order.created'])
  await event.guest()
  await arranged(async ({ announce, claim }) => {
    await announce(home)
    expect(await claim(home)).toEqual({ webhooks: true, emails: true })
    expect(await claim(['inodes:7:8:9', 'made:5'])).toEqual({ webhooks: false, emails: false })
  })
})
