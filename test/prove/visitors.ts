// Visitors of registration pages, with neither a link nor a key: they choose tickets, send the form, use codes, join the waiting list of what
// is sold out, and forge forms.

import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { hiddenField } from '../support/event-page.ts'
import type { Crowd } from './clients.ts'
import { createForms } from './forms.ts'
import type { Random } from './random.ts'
import type { Page, Press } from './send.ts'

export type Pages = { paths: string[]; codes: string[]; hiddenTypeId: string }

/** Pages of the event that everybody is after, and of one with prices, codes and a hidden ticket type. */
export async function openPages(database: pg.Client, eventId: string): Promise<Pages> {
  const add = async (sql: string, ...values: unknown[]) =>
    (await database.query<{ id: string }>(`insert into public.${sql} returning id`, values)).rows[0]?.id ?? ''
  const fair = await add(
    `events (organisation_id, name, slug, starts_at, ends_at, registration_page)
     select organisation_id, 'Fair', 'fair', starts_at, ends_at, 'public' from public.events where id = $1`,
    eventId,
  )
  const type = 'ticket_types (event_id, name, price, visibility) values ($1, $2, $3, $4)'
  const [, priced, hiddenTypeId] = [
    await add(type, fair, 'free', 0, 'public'),
    await add(type, fair, 'priced', 999, 'public'),
    await add(type, fair, 'hidden', 0, 'hidden'),
  ]
  const code = `promo_codes (event_id, code, percent_off, amount_off, unlocks, ticket_type_ids, max_redemptions)
    values ($1, $2, $3, $4, $5, $6, 60)`
  await add(code, fair, 'GUESTS', 33, null, true, [hiddenTypeId, priced])
  await add(code, fair, 'LESS', null, 500, false, [priced])
  await database.query("update public.events set status = 'published' where id = $1", [fair])
  await database.query("update public.events set registration_page = 'by_link' where id = $1", [eventId])
  return { paths: ['/e/prove/prove', '/e/prove/fair'], codes: ['GUESTS', 'LESS'], hiddenTypeId }
}

// The page leads back to itself, and says so in its address.
const outcomeOf = ({ location }: Page) => (/[?&]done=/.test(location) ? 'ok' : 'unknown')

const idsIn = (text: string, field: RegExp): string[] => [...text.matchAll(field)].map(([, id]) => id ?? '')

/** Of up to two. */
const guestsOf = (typeId: string, name: string): Record<string, string> => {
  const [first, second] = [`g.${typeId}.0.`, `g.${typeId}.1.`]
  return {
    ...{ [`${first}name`]: name, [`${first}email`]: `${name}@example.com` },
    ...{ [`${first}asked`]: 'note', [`${first}answer.note`]: 'yes' },
    ...{ [`${second}name`]: 'Friend', [`${second}asked`]: 'note', [`${second}answer.note`]: 'no' },
  }
}

export async function actAsVisitors(
  crowd: Crowd,
  press: Press,
  prefix: string,
  random: Random,
  { pages, until }: { pages: Pages; until: () => boolean },
): Promise<void> {
  const { send, open } = createForms(crowd, press, prefix, random, until)
  // As the API's, so that what proxies copy on the way to PostgREST is known by it.
  const formKey = (key: string) => `${prefix} 0 ${key} 0`

  async function order(path: string, typeId: string, code: string, key: string): Promise<void> {
    const tickets = { code, [`t.${typeId}`]: `${random.between(1, 2)}` }
    const { text } = await open(path, { act: 'choose', ...tickets })
    const total = hiddenField(text, 'total')
    const fields = { act: 'register', ...tickets, total, key: formKey(key), ...guestsOf(typeId, key) }
    const hidden = { [`t.${pages.hiddenTypeId}`]: '1', ...guestsOf(pages.hiddenTypeId, key) }
    const forgeries: Record<string, string>[] = [
      { total: '1' },
      { [`g.${typeId}.0.answer.note`]: '' },
      { code: '', [`t.${typeId}`]: '0', ...hidden, total: '0' },
    ]
    const form = { key, path, fields, outcomeOf, total: Number(total) }
    if (random.next() < 0.7) await send({ ...form, operation: 'register on a page' })
    else {
      const forged = { ...fields, ...random.one(forgeries) }
      await send({ ...form, operation: 'forge a form of a page', fields: forged, isForged: true })
    }
  }

  async function wait(path: string, typeId: string, key: string): Promise<void> {
    const person = { [`w.${typeId}.name`]: key, [`w.${typeId}.email`]: `${key}@example.com` }
    const fields = { act: 'wait', ticket_type_id: typeId, key: formKey(key), ...person }
    await send({ key, operation: 'wait on a page', path, fields, outcomeOf })
  }

  while (!until()) {
    const key = `${prefix}-visitor-${random.below(1e9)}`
    const path = random.one(pages.paths)
    const code = random.next() < 0.4 ? random.one(pages.codes) : ''
    try {
      const { text } = await open(`${path}?code=${code}`)
      const soldOut = random.pick(idsIn(text, /name="ticket_type_id" value="([^"]*)"/g))
      const onSale = random.pick(idsIn(text, /name="t\.([^"]*)"/g))
      if (soldOut !== undefined && random.next() < 0.5) await wait(path, soldOut, key)
      else if (onSale !== undefined) await order(path, onSale, code, key)
    } catch {
      // The page did not come.
      await sleep(random.between(20, 400))
    }
  }
}
