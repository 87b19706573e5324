// Logos: what the courier is handed, and what becomes of what it says.

import { PNG } from 'pngjs'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { runCourierOnce } from '../../../src/courier/courier.ts'
import { createLogoFetcher } from '../../../src/courier/fetch-logo.ts'
import { logoQueue, type PendingLogo } from '../../../src/courier/logo-queue.ts'
import { createCourierRpc } from '../../../src/gateway/courier-rpc.ts'
import { createDataApi } from '../../../src/gateway/data-api.ts'
import { createTokens } from '../../../src/gateway/tokens.ts'
import { createLog } from '../../../src/process/log.ts'
import { refusalOf, row } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { edit } from '../../support/studio.ts'
import { startWebhookReceiver, status } from '../../support/webhook-receiver.ts'
import { first, rolledBack } from '../as-courier.ts'

const url = 'https://acme.example/logo.png'
const png = PNG.sync.write(new PNG({ width: 30, height: 8 }))
const stored = { content: png.toString('base64'), content_type: 'image/png', width: 30, height: 8 }

type Fixture = {
  setUrl(url: string | null): Promise<void>
  /** As if it had been claimed so often, and settled never. */
  crash(times: number): Promise<void>
  claim(): Promise<PendingLogo[]>
  settle(pending: PendingLogo, how: typeof stored | { error: string; permanent?: boolean }): Promise<void>
  /** What members see, what e-mails get, and in how many seconds the logo is tried again. */
  shown(): Promise<{ logo_error: string | null; logo: object | null; wait: number | null }>
}

async function withLogo(work: (fixture: Fixture) => Promise<void>): Promise<void> {
  const { id } = await createOrganisation()
  await rolledBack(async (client, asCourier) => {
    const fixture: Fixture = {
      setUrl: async (next) =>
        void (await client.query('update public.organisations set logo_url = $2 where id = $1', [id, next])),
      crash: async (times) =>
        void (await client.query(
          `update private.organisation_logos set attempts = $2, claim = gen_random_uuid(), next_attempt_at = now()
           where organisation_id = $1`,
          [id, times],
        )),
      claim: async () => {
        await client.query(
          'update private.organisation_logos set next_attempt_at = now() where organisation_id = $1 and claim is null and next_attempt_at is not null',
          [id],
        )
        const pending = (await asCourier('select api.claim_logos(1000)')) as PendingLogo[]
        return pending.filter((logo) => logo.id === id)
      },
      settle: async ({ id, claim }, how) => {
        const args = { organisation_id: id, claim, ...how }
        const names = Object.keys(args).map((name, i) => `${name} => $${i + 1}`)
        await asCourier(`select api.settle_logo(${names.join(', ')})`, Object.values(args))
      },
      shown: async () => {
        const { rows } = await client.query(
          `select o.logo_error, api.get_logo(o.id) as logo,
             extract(epoch from l.next_attempt_at - now())::float8 as wait
           from public.organisations o left join private.organisation_logos l on l.organisation_id = o.id where o.id = $1`,
          [id],
        )
        return rows[0]
      },
    }
    await fixture.setUrl(url)
    await work(fixture)
  })
}

describe('a logo', () => {
  test('is claimed once, and kept as it was fetched', async () => {
    await withLogo(async ({ claim, settle, shown, setUrl }) => {
      const pending = first(await claim())
      expect(pending).toEqual({ id: pending.id, claim: expect.any(String), attempt: 1, url })
      expect(await claim()).toEqual([])
      await settle(pending, stored)
      expect(await shown()).toEqual({ logo_error: null, logo: stored, wait: null })
      // Saved as it is, nothing is fetched.
      await setUrl(url)
      expect([await claim(), await shown()]).toEqual([[], { logo_error: null, logo: stored, wait: null }])
      await setUrl(' ')
      expect(await shown()).toEqual({ logo_error: null, logo: null, wait: null })
    })
  })

  test('that is replaced while the old one is fetched is the new one', async () => {
    await withLogo(async ({ claim, settle, shown, setUrl }) => {
      const old = first(await claim())
      await setUrl(`${url}?v=2`)
      await settle(old, stored)
      expect((await shown()).logo).toBeNull()
      await settle(old, { error: 'Connection refused.', permanent: true })
      expect((await shown()).logo_error).toBeNull()
      expect(first(await claim()).url).toBe(`${url}?v=2`)
    })
  })

  test('that cannot be fetched is tried four times, and says so', async () => {
    await withLogo(async ({ claim, settle, shown }) => {
      const waits: number[] = []
      for (let attempt = 1; attempt <= 3; attempt++) {
        await settle(first(await claim()), { error: 'Connection refused.' })
        const { logo_error, wait } = await shown()
        expect(logo_error).toBe('Connection refused. Usher tries again.')
        waits.push(Number(wait))
      }
      for (const [i, seconds] of [30, 300, 3600].entries()) {
        expect(waits[i]).toBeGreaterThanOrEqual(seconds * 0.8)
        expect(waits[i]).toBeLessThanOrEqual(seconds * 1.2)
      }
      await settle(first(await claim()), { error: 'Connection refused.' })
      expect(await shown()).toEqual({ logo_error: 'Connection refused.', logo: null, wait: null })
    })
  })

  test('that is none says so at once, until the address is set again or emptied', async () => {
    await withLogo(async ({ claim, settle, shown, setUrl }) => {
      const error = 'The logo is larger than 256 KiB.'
      await settle(first(await claim()), { error, permanent: true })
      expect(await shown()).toEqual({ logo_error: error, logo: null, wait: null })
      await setUrl(url)
      expect((await shown()).logo_error).toBeNull()
      await settle(first(await claim()), { error, permanent: true })
      await setUrl(null)
      expect(await shown()).toEqual({ logo_error: null, logo: null, wait: null })
    })
  })

  test('whose courier dies each time is given up', async () => {
    await withLogo(async ({ claim, shown, crash }) => {
      await crash(10)
      expect(await claim()).toEqual([])
      expect((await shown()).logo_error).toBe('The logo could not be fetched.')
    })
  })
})

test('the courier fetches a logo whose address an organiser sets', async () => {
  const server = await startWebhookReceiver()
  onTestFinished(() => server.close())
  server.answerWith(status(200, {}, png))
  const { id } = await createOrganisation()
  await edit('organisations', id, 'logo_url = $2', [`${server.url}/logo.png`])

  const tokens = await createTokens({ secret: inject('jwtSecret') })
  const fetcher = createLogoFetcher({ allowLoopback: true })
  onTestFinished(() => fetcher.close())
  const log = createLog('silent')
  const queue = logoQueue(
    createCourierRpc(createDataApi(inject('dataApiUrl'), tokens), tokens),
    fetcher,
    60,
    log,
    () => {},
  )
  await runCourierOnce([queue], log, 20_000)
  expect(await row('select api.get_logo($1) as logo', [id])).toEqual({ logo: stored })
  expect(server.received).toHaveLength(1)
})

test('a colour is kept in lower case, and blank fields are empty', async () => {
  const { id } = await createOrganisation()
  await edit('organisations', id, "accent_colour = ' #A1B2C3 ', payment_instructions = E'IBAN\\nDE00 '")
  const read = () => row('select accent_colour, payment_instructions from public.organisations where id = $1', [id])
  expect(await read()).toEqual({ accent_colour: '#a1b2c3', payment_instructions: 'IBAN\nDE00' })
  await edit('organisations', id, "accent_colour = '', payment_instructions = ' '")
  expect(await read()).toEqual({ accent_colour: null, payment_instructions: null })
})

test('a new organisation cannot come with what is wrong with its logo', async () => {
  const insert = "insert into public.organisations (name, slug, logo_error) values ('Acme', 'acme-logo-error', 'No.')"
  expect(await refusalOf(row(insert))).toMatchObject({
    sqlstate: 'PT409',
    code: 'read_only_field',
    param: 'logo_error',
  })
})
