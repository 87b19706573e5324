// Requests that the pre-request hook did not see: PostgREST goes on without it where it could not read its settings.

import { expect, test } from 'vitest'
import { operations } from '../../../src/operations/index.ts'
import { roleOf } from '../../../src/operations/operation.ts'
import { studio } from '../../support/database.ts'
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
  expect(await outcomes()).toEqual(calls.map(() => refused))
})
