// Links to files: who gets one, what opening it spends, and when it dies.

import { randomBytes, randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { expect, inject, test } from 'vitest'
import { hashOf, prefixOf } from '../../src/gateway/api-key.ts'
import { parseCsv } from '../support/csv.ts'
import { studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { ownApp } from '../support/own-app.ts'
import { rest } from '../support/rest.ts'

async function arrange(...[scope = 'attendees:read']: ('attendees:read' | 'orders:read')[]) {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  await event.guest()
  const key = await organisation.key(scope)
  const args = { event_id: event.id, fields: ['name', 'metadata.diet'] }
  const make = async (headers?: Record<string, string>) =>
    (await rest(key)('POST', '/exports/attendees', args, headers)).body.data as { id: string; url: string }
  const change = (change: string) =>
    studio.query(`update public.api_keys set ${change} where prefix = $1`, [prefixOf(key)])
  return { organisation, event, key, make, change }
}

const statusesOf = async (url: string) => [(await fetch(url)).status, (await fetch(url, { method: 'POST' })).status]

test('a link says how long it works, what the file holds and how many rows; only its hash is kept', async () => {
  const { organisation, event, key } = await arrange()
  const { status, body } = await rest(key)('POST', '/exports/attendees', { event_id: event.id })
  expect([status, body.data]).toMatchObject([201, { object: 'export', rows: 1, good_for_minutes: 15 }])
  expect(body.data.columns.slice(0, 3)).toEqual(['id', 'event_id', 'event'])
  expect(Date.parse(body.data.expires_at) - Date.now()).toBeGreaterThan(13 * 60_000)
  const token = /\/exports\/([0-9a-f]{32})$/.exec(body.data.url)?.[1] ?? ''
  const { rows } = await studio.query(
    `select encode(l.token_hash, 'hex') as hash, strpos(l::text, $2) + strpos((select a::text from public.audit_entries a where a.object_id = l.id), $2) as place
     from private.export_links l where l.organisation_id = $1`,
    [organisation.id, token],
  )
  expect(rows).toEqual([{ hash: hashOf(token), place: 0 }])
  // A pending list is not counted.
  const since = await rest(key)('POST', '/exports/attendees', { updated_after: '2026-01-01T00:00:00Z' })
  expect(since.body.data.rows).toBeNull()
})

test('opening it spends nothing, its button downloads, as often as wanted, and the audit trail has it', async () => {
  const { organisation, make } = await arrange()
  const { id, url } = await make()
  for (const method of ['GET', 'HEAD', 'GET']) {
    const page = await fetch(url, { method })
    expect(page.status).toBe(200)
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': expect.stringMatching(
        /^default-src 'none'; style-src 'sha256-\S+'; .*form-action 'self'/,
      ),
      'x-robots-tag': 'noindex',
      'referrer-policy': 'no-referrer',
      'cache-control': 'private, no-store',
    })
    if (method === 'GET')
      expect(await page.text()).toMatch(
        /<form class="actions" method="post"><button class="main">Download<\/button><\/form>/,
      )
  }
  for (const _ of [1, 2]) {
    const file = await fetch(url, { method: 'POST' })
    expect([file.status, file.headers.get('content-disposition')]).toEqual([200, expect.stringMatching(/^attachment;/)])
    const text = Buffer.from(await file.arrayBuffer()).toString()
    expect(text.startsWith('\ufeffname,metadata.diet\r\n')).toBe(true)
    expect(parseCsv(text.slice(1))).toEqual([{ name: 'Guest', 'metadata.diet': '' }])
  }
  const { body } = await rest(await organisation.key())('GET', `/audit-entries?object_id=${id}`)
  expect(body.data).toMatchObject([
    { action: 'updated', object_type: 'export', changes: { operation: { to: 'export_attendees' } } },
    { action: 'updated', object_type: 'export' },
    { action: 'created', actor: 'api_key', changes: { operation: { to: 'export_attendees' } } },
  ])
  const refused = await fetch(url, { method: 'PUT' })
  expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST'])
})

test('it dies after a quarter of an hour, and with its key or the scope, and then is as if it had never been', async () => {
  const { make, change } = await arrange()
  const [old, good] = [await make(), await make()]
  await studio.query("update private.export_links set expires_at = expires_at - interval '16 minutes' where id = $1", [
    old.id,
  ])
  expect(await statusesOf(old.url)).toEqual([404, 404])
  expect(await statusesOf(good.url)).toEqual([200, 200])
  await change("scopes = '{orders:read}'")
  expect(await statusesOf(good.url)).toEqual([404, 404])
  await change("scopes = '{attendees:read}'")
  expect(await statusesOf(good.url)).toEqual([200, 200])
  await change("expires_at = now() - interval '1 second'")
  expect(await statusesOf(good.url)).toEqual([404, 404])
  await change('expires_at = null, revoked_at = now()')
  expect(await statusesOf(good.url)).toEqual([404, 404])

  const base = `${inject('apiUrl')}/exports`
  const answers = await Promise.all(
    [good.url, `${base}/${randomBytes(16).toString('hex')}`, `${base}/${'A'.repeat(32)}`, base, `${base}/%E0%A4%A`].map(
      async (url) => {
        const answer = await fetch(url)
        const { date: _, 'x-request-id': __, ...headers } = Object.fromEntries(answer.headers)
        return { status: answer.status, headers, body: await answer.text() }
      },
    ),
  )
  for (const answer of answers) expect(answer).toEqual(answers[0])
})

test('a repeated call answers the same link at another address, and the first one is void', async () => {
  const { make } = await arrange()
  const headers = { 'Idempotency-Key': randomUUID() }
  const [first, again] = [await make(headers), await make(headers)]
  expect(again.id).toBe(first.id)
  expect((await fetch(first.url)).status).toBe(404)
  expect((await fetch(again.url)).status).toBe(200)
  await studio.query('update private.export_links set expires_at = now() where id = $1', [first.id])
  expect(await make(headers)).toMatchObject({ id: first.id, url: null })
})

test('neither the address nor anything of the file is logged', async () => {
  const lines: string[] = []
  const { url: api } = await ownApp({ log: pino({ level: 'trace' }, { write: (line) => void lines.push(line) }) })
  const { make } = await arrange()
  const token = (await make()).url.slice(-32)
  await fetch(`${api}/exports/${token}`)
  await (await fetch(`${api}/exports/${token}`, { method: 'POST' })).text()
  await expect.poll(() => lines.length).toBe(2)
  expect(lines.join()).toContain('/exports/{token}')
  for (const secret of [token, hashOf(token), 'Guest']) expect(lines.join()).not.toContain(secret)
})

test('housekeeping forgets links an hour after they expired', async () => {
  const { make } = await arrange()
  const [old, recent] = [await make(), await make()]
  const expired = 'update private.export_links set expires_at = now() - $2::interval where id = $1'
  await studio.query(expired, [old.id, '61 minutes'])
  await studio.query(expired, [recent.id, '59 minutes'])
  await studio.query('select api.purge()')
  const { rows } = await studio.query('select id from private.export_links where id = any ($1)', [[old.id, recent.id]])
  expect(rows).toEqual([{ id: recent.id }])
})
