// Guests with the links of their e-mails, and no key: they press the forms of their pages, now and then twice at once, and again where no
// answer came. Whatever they do goes into the history of the crowd.

import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { type Crowd, willDecline } from './clients.ts'
import type { Attempt } from './history.ts'
import type { Random } from './random.ts'
import type { Press } from './send.ts'

const attemptsPerForm = 4

type Form = {
  key: string
  operation: string
  path: string
  fields: Record<string, string>
  /** What becomes of an answer that is no refusal. */
  outcomeOf?: () => Promise<Attempt['outcome']>
}

const holderSql = `
  select a.id, '/g/' || private.guest_token(a) as path from public.attendees a where a.id = $1 and a.status <> 'cancelled'`
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
  const { history, now, tally, trespasses, holders } = crowd
  const { connect, until } = options
  let pressed = 0

  /** Presses once. */
  async function attempt(
    { key, operation, path, fields, outcomeOf }: Form,
    isUnkeyed = false,
  ): Promise<Attempt['outcome']> {
    const start = now()
    let outcome: Attempt['outcome'] = 'unknown'
    let why: string | undefined
    try {
      const page = await press(pressed, path, fields, `${prefix} 0 ${key} ${pressed++}`)
      if (page.status < 400) outcome = (await outcomeOf?.()) ?? 'ok'
      else if (page.status < 500 && page.status !== 408) outcome = 'refused'
      if (page.status >= 400) why = `${page.status} of a page`
    } catch (error) {
      why = String((error as { code?: string }).code ?? (error as Error).name)
    }
    const tallied = `${operation} ${outcome}${why === undefined ? '' : ` ${why}`}`
    tally.set(tallied, (tally.get(tallied) ?? 0) + 1)
    history.push({ key, operation, start, end: now(), outcome, ...(why && { why }), ...(isUnkeyed && { isUnkeyed }) })
    return outcome
  }

  /** Presses until there is an answer. What can be done once may be pressed twice. @returns how often it was done. */
  async function send(form: Form): Promise<number> {
    let done = 0
    for (let n = 0; n < attemptsPerForm && !until(); n++) {
      const outcomes = await Promise.all(Array.from({ length: random.between(1, 2) }, () => attempt(form)))
      done += outcomes.filter((outcome) => outcome === 'ok').length
      if (!outcomes.includes('unknown')) break
      await sleep(random.between(20, 400))
    }
    return done
  }

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
      const old = await press(pressed, path, { act: 'correct', name: 'Former holder' }).catch(() => undefined)
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
      const { status, text } = await press(pressed, path)
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
    const holder = random.pick(holders)
    const isOfOffer = random.next() < 0.3
    const found = isOfOffer ? await find(offerSql) : await find(holderSql, [holder])
    if (found === undefined) await sleep(50)
    else if (isOfOffer) await settle(found)
    else await doings[random.weighted(weights)](found, `${prefix}-guest-${random.below(1e9)}`)
  }
  await client?.end().catch(() => {})
}
