// Guests with the links of their e-mails, and no key: they press the forms of their pages.

import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { type Crowd, willDecline } from './clients.ts'
import { createForms } from './forms.ts'
import type { Random } from './random.ts'
import type { Press } from './send.ts'

const holderSql = `
  select a.id, '/g/' || private.guest_token(a) as path
  from public.attendees a
  join public.orders o on o.id = a.order_id
  where a.status <> 'cancelled' and (a.id = any ($1) or o.source = 'page' and a.waiting_list_entry_id is null)
  order by random() limit 1`
const offerSql = `
  select w.id, '/w/' || private.offer_token(w) as path
  from public.waiting_list_entries w where w.status = 'offered' order by random() limit 1`

export async function actAsGuests(
  crowd: Crowd,
  press: Press,
  prefix: string,
  random: Random,
  options: { connect: () => Promise<pg.Client>; until: () => boolean },
): Promise<void> {
  const { trespasses, holders } = crowd
  const { connect, until } = options
  const { attempt, send, open } = createForms(crowd, press, prefix, random, until)

  type Found = { id: string; path: string }
  const doings = {
    async correct({ path }, key) {
      const fields = { act: 'correct', name: 'Corrected', company: key }
      await attempt({ key, operation: 'correct as a guest', path, fields }, true)
    },
    async answer({ path }, key) {
      const fields = { act: 'answer', asked: 'note', 'answer.note': key }
      await attempt({ key, operation: 'answer as a guest', path, fields }, true)
    },
    async passOn({ path }, key) {
      const fields = { act: 'pass_on', name: key, email: `${key}@example.com` }
      const done = await send({ key, operation: 'pass on', path, fields })
      if (done > 1) trespasses.push({ about: 'a form that was sent twice', detail: `${key} was passed on twice` })
      if (done === 0) return
      const old = await open(path, { act: 'correct', name: 'Former holder' }).catch(() => undefined)
      if (old && old.status < 400) trespasses.push({ about: 'the link of a former holder', detail: key })
    },
    async giveBack({ id, path }) {
      await send({ key: `give back:${id}`, operation: 'give back', path, fields: { act: 'give_back' } })
    },
  } satisfies Record<string, (found: Found, key: string) => Promise<void>>
  const weights: Record<keyof typeof doings, number> = { correct: 4, answer: 4, passOn: 3, giveBack: 2 }

  /** Pressing leads back to the page, which says what became of the offer. A place that was taken may be cancelled by now. */
  async function settle({ id, path }: Found): Promise<void> {
    const [act, operation, said] = willDecline(id)
      ? (['decline', 'decline an offer', /no longer being held/] as const)
      : (['order', 'take an offer', /place is yours|reserved for you/] as const)
    const key = `${act === 'order' ? 'accept' : act}:${id}`
    const outcomeOf = async () => {
      const { status, text } = await open(path)
      if (status === 200 && said.test(text)) return 'ok'
      return status === 200 && act === 'decline' ? 'refused' : 'unknown'
    }
    await send({ key, operation, path: `${path}/${act}`, fields: {}, outcomeOf })
  }

  let client: pg.Client | undefined
  const find = async (sql: string, values: unknown[] = []) => {
    try {
      client ??= await connect()
      return (await client.query<Found>(sql, values)).rows[0]
    } catch {
      await client?.end().catch(() => {})
      client = undefined
    }
  }
  while (!until()) {
    const isOfOffer = random.next() < 0.3
    const found = isOfOffer ? await find(offerSql) : await find(holderSql, [holders])
    if (found === undefined) await sleep(50)
    else if (isOfOffer) await settle(found)
    else await doings[random.weighted(weights)](found, `${prefix}-guest-${random.below(1e9)}`)
  }
  await client?.end().catch(() => {})
}
