// The errands of errands.ts, one after the other, in an organisation of their own: each does what was asked for, and
// tells whom it should and nobody else.

import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import type { Claims } from '../database/actor.ts'
import { send, sign } from '../database/data-api-client.ts'
import { join, signUp } from '../database/tenant-fixture.ts'
import { row, studio } from '../support/database.ts'
import { gridInsert, gridUpdate } from '../support/grid.ts'
import { createOrganisation } from '../support/organisation.ts'
import { enqueued, listenIn, type Told } from '../support/outbox.ts'
import { type Errand, errands } from './errands.ts'

const mark = randomUUID().slice(0, 8)
let organisationId: string
let news: () => Promise<Told[]>
const people = {} as Record<'owner' | 'door' | 'grace', Claims>

beforeAll(async () => {
  organisationId = (await createOrganisation()).id
  for (const person of ['owner', 'door', 'grace'] as const) people[person] = await signUp()
  await join(organisationId, people.owner, 'owner')
  await join(organisationId, people.door, 'door')
  // One account has a name, that of the other was typed.
  await studio.query(`update auth.users set raw_user_meta_data = '{"full_name": "Dorothy Vaughan"}' where id = $1`, [
    people.owner.sub,
  ])
  await studio.query("update public.organisation_members set name = 'Hedy Lamarr' where user_id = $1", [
    people.door.sub,
  ])
  news = await listenIn(organisationId)
})

/** As it is in this organisation, whose slugs and addresses no other has. */
async function filledIn<T>(value: T): Promise<T> {
  let text = JSON.stringify(value)
    .replaceAll('ORG', organisationId)
    .replaceAll('GRACE', String(people.grace.sub))
    .replaceAll('data-days', `data-days-${mark}`)
    .replaceAll('//crm.', `//${mark}.crm.`)
    .replaceAll('@example.', `@${mark}.example.`)
    .replaceAll('partner-', `partner-${mark}-`)
  for (const [copied, table, column, name] of text.matchAll(/\{(\w+)\.(\w+) ([^}]+)\}/g)) {
    text = text.replaceAll(copied, (await rowOf(table as string, name as string))[column as string] as string)
  }
  return JSON.parse(text)
}

async function rowOf(table: string, name: string): Promise<Record<string, unknown>> {
  const owner = table === 'organisations' ? 'id' : 'organisation_id'
  return row(
    `select * from public.${table} t
     where ${owner} = $1 and $2 in (to_jsonb(t) ->> 'name', to_jsonb(t) ->> 'url', id::text)`,
    [organisationId, name],
  )
}

/** What members may read of a row. */
const readable: Record<string, string> = { check_ins: 'id,result' }

async function act({ by, sql, add, edit, call }: Partial<Errand>): Promise<unknown> {
  if (sql !== undefined) return (await studio.query(sql)).rows
  const [table = '', ...rows] = add ?? []
  const [edited = '', name = '', changes = {}] = edit ?? []
  const id = edit && (await rowOf(edited, name)).id
  if (by === undefined) {
    return (await studio.query(add ? gridInsert(table, rows) : gridUpdate(edited, changes, `id = '${id}'`))).rows
  }
  const select = `select=${readable[table || edited] ?? '*'}`
  const request = add
    ? { method: 'POST', path: `/${table}?${select}`, body: rows }
    : edit
      ? { method: 'PATCH', path: `/${edited}?id=eq.${id}&${select}`, body: changes }
      : { method: 'POST', path: `/rpc/${call?.[0]}`, body: call?.[1] }
  const { status, body } = await send(
    { ...request, headers: { 'Content-Profile': 'public', Prefer: 'return=representation' } },
    await sign({ ...people[by], role: 'authenticated' } as Claims),
  )
  if (status >= 300) throw body
  return body
}

/** The kinds of e-mails that wait to be sent; then they are. */
async function sendEmails(): Promise<string[]> {
  const { rows } = await studio.query<{ kind: string }>(
    `update public.emails e set status = 'sent', next_attempt_at = null, attempts = 1, sent_at = now()
     where organisation_id = $1 and status = 'queued' returning kind`,
    [organisationId],
  )
  await studio.query(
    "update public.attendees set ticket_email_status = 'sent' where organisation_id = $1 and ticket_email_status = 'queued'",
    [organisationId],
  )
  return rows.map(({ kind }) => kind).toSorted()
}

async function meanwhile(what: string): Promise<void> {
  if (what !== 'webhooks are sent') {
    await studio.query(what)
  } else {
    await enqueued(organisationId)
    await studio.query(
      "update public.webhook_deliveries set status = 'failed', next_attempt_at = null, attempts = 9 where organisation_id = $1",
      [organisationId],
    )
  }
  await sendEmails()
  await news()
}

test.each(errands.map((errand) => [errand.said, errand] as const))('%s', async (_, errand) => {
  if (errand.meanwhile) await meanwhile(await filledIn(errand.meanwhile))
  const { shows, answer, ...deed } = errand
  const answered = await act(await filledIn(deed))
  if (answer !== undefined) {
    expect.soft(answered).toMatchObject(answer as object)
    if (Array.isArray(answer)) expect(answered).toHaveLength(answer.length)
  }
  if (shows) {
    const [sql, ...rows] = shows
    expect.soft((await studio.query(await filledIn(sql))).rows).toMatchObject(rows)
  }
  expect([(await news()).map(({ type }) => type), await sendEmails()]).toEqual([errand.told ?? [], errand.mailed ?? []])
})
