// A proof that finds nothing proves nothing unless it can: builds that are broken on purpose, and whether what tries each operation notices.

import pg from 'pg'
import { expect, inject, test } from 'vitest'
import { operations } from '../../../src/operations/index.ts'
import { appOfThisFile } from '../../support/own-app.ts'
import { whileHeld } from '../../support/rows-of.ts'
import { type Mutate, patch, run } from '../mutants.ts'
import { createLockout } from './lockout.ts'
import { createThem } from './them.ts'
import { trespassAll, triesAgainst } from './trespass.ts'

const { url } = await appOfThisFile({ trustProxy: true })
const { url: elsewhereUrl } = await appOfThisFile({ trustProxy: true })

const named = (...names: string[]) => operations.filter(({ name }) => names.includes(name))

const trespassing =
  (...names: string[]) =>
  async () => {
    const them = await createThem()
    return trespassAll(triesAgainst(them, named(...names)), url, them)
  }
const trespassingWhileHeld =
  (...names: string[]) =>
  async () => {
    const them = await createThem()
    return whileHeld(them.id, () => trespassAll(triesAgainst(them, named(...names)), url, them))
  }
const lockingOut =
  (...names: string[]) =>
  async () =>
    (await createLockout(url, elsewhereUrl, named(...names))).tryAll()

const isThere = `create or replace function private.is_there(id uuid) returns boolean language plpgsql security definer as $f$
  begin return exists (select from public.events e where e.id = is_there.id); end $f$;
  grant execute on function private.is_there to api_key`

type Doubt = { functions?: string[]; mutate: Mutate; after?: string; notice: () => Promise<string[]> }

const doubts: Record<string, Doubt> = {
  'row level security is off on orders': {
    mutate: run('alter table public.orders disable row level security'),
    after: 'alter table public.orders enable row level security',
    notice: trespassing('get_order'),
  },
  'a message tells that an event is there': {
    functions: ['api.get_event'],
    mutate: async (database) => {
      await database.query(isThere)
      await patch('api.get_event', [
        "perform private.refuse_not_found('event_id');",
        "if private.is_there(event_id) then perform private.refuse(404, 'not_found', 'Not yours.', 'event_id'); end if; perform private.refuse_not_found('event_id');",
      ])(database)
    },
    after: 'drop function private.is_there(uuid)',
    notice: trespassing('get_event'),
  },
  "an event is found by another organisation's name for it": {
    functions: ['private.find_event'],
    mutate: patch('private.find_event', [/e\.organisation_id = query\.organisation_id/g, 'true']),
    notice: trespassing('get_event'),
  },
  'an order is locked before it is asked whose it is': {
    functions: ['private.remind_buyer'],
    mutate: patch(
      'private.remind_buyer',
      ['and not private.is_foreign(o.organisation_id)', ''],
      ['if not found then', 'if private.is_foreign(v_order.organisation_id) then'],
    ),
    notice: trespassingWhileHeld('send_payment_reminder'),
  },
  'an expired key is good': {
    functions: ['private.is_usable_key'],
    mutate: patch('private.is_usable_key', [/ and coalesce\(key\.expires_at > now\(\), true\)/, '']),
    notice: lockingOut('list_events'),
  },
}

test.for(Object.entries(doubts))('%s: noticed', async ([, { functions = [], mutate, after, notice }], { task }) => {
  const database = new pg.Client({ connectionString: inject('databaseUrl') })
  await database.connect()
  const texts: string[] = []
  for (const name of functions) {
    const { rows } = await database.query<{ text: string }>('select pg_get_functiondef(to_regproc($1)) as text', [name])
    texts.push(rows[0]?.text ?? '')
  }
  try {
    await mutate(database)
    const problems = await notice()
    expect(problems.length).toBeGreaterThan(0)
    task.meta.figures = `${problems.length} problems, such as ${problems[0]?.split('\n')[0]?.slice(0, 160)}`
  } finally {
    for (const text of texts) await database.query(text)
    if (after !== undefined) await database.query(after)
    await database.end()
  }
})
