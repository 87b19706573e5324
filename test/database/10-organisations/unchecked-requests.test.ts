// Requests that the pre-request hook did not see: PostgREST goes on without it where it could not read its settings.

import { expect, test } from 'vitest'
import { operations } from '../../../src/operations/index.ts'
import { roleOf } from '../../../src/operations/operation.ts'
import { during, studio } from '../../support/database.ts'
import { actAs } from '../actor.ts'
import { createTenant } from '../tenant-fixture.ts'

const ofAll = operations.filter(({ name, input }) => name.startsWith('list_') && input.safeParse({}).success)

test.each([
  ['is revoked', 'update public.api_keys set revoked_at = now() where organisation_id = $1', 'PT401'],
  ['has lost the scope', "update public.api_keys set scopes = '{attendees:write}' where organisation_id = $1", 'PT403'],
])('a key that %s lists and writes nothing', async (_, sql, refused) => {
  const tenant = await createTenant()
  const calls = [
    ...ofAll.map((operation) => [roleOf(operation), `select api.${operation.name}()`] as const),
    ['scope_events_write', "select api.create_event(name => 'Gala', currency => 'EUR')"],
  ] as const
  const outcomes = () =>
    Promise.all(
      calls.map(([role, call]) =>
        actAs(role, tenant.claims, async (actor) => {
          await actor.rows("select set_config('request.path', '/rpc/any', true)")
          return actor.attempt(call)
        }),
      ),
    )
  expect(await outcomes()).toEqual(calls.map(() => 'allowed'))
  await studio.query(sql, [tenant.id])
  // What needs no scope is lost with the key alone.
  expect(await outcomes()).toEqual(
    calls.map(([role]) => (role === 'api_key' && refused === 'PT403' ? 'allowed' : refused)),
  )
})

test('who calls is the same whether it was asked of the claims or is known since the check', async () => {
  const [tenant, other] = [await createTenant(), await createTenant()]
  const asked = `select private.current_organisation_id() as organisation, private.is_foreign('${tenant.id}') as own,
    private.is_foreign('${other.id}') as strange, private.is_foreign(null) as none, private.is_by_hand() as by_hand,
    private.audit_actor() as actor`
  const expected = { organisation: tenant.id, own: false, strange: true, none: true, by_hand: false, actor: 'api_key' }
  for (const checked of ['', 'on', tenant.id]) {
    await during(async (client) => {
      await client.query("select set_config('request.jwt.claims', $1, true), set_config('usher.checked', $2, true)", [
        JSON.stringify({ ...tenant.claims, role: 'scope_orders_read' }),
        checked,
      ])
      expect((await client.query(asked)).rows[0], checked).toEqual(expected)
    })
  }
})
