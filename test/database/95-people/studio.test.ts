// public.find_person and public.erase_person: for owners and managers of the organisation, and for the SQL editor.

import { beforeAll, expect, test } from 'vitest'
import { refusalOf, row, studio } from '../../support/database.ts'
import { createOrganisation, type TestOrganisation } from '../../support/organisation.ts'
import { actAs, type Claims } from '../actor.ts'
import { join, signUp } from '../tenant-fixture.ts'

const roles = ['owner', 'manager', 'door', 'viewer', 'stranger'] as const
const people = {} as Record<(typeof roles)[number], Claims>
let organisation: TestOrganisation
let elsewhere: TestOrganisation

beforeAll(async () => {
  ;[organisation, elsewhere] = await Promise.all([createOrganisation(), createOrganisation()])
  for (const { event } of [organisation, elsewhere]) await (await event()).guest()
  for (const role of roles) {
    people[role] = await signUp()
    await join(role === 'stranger' ? elsewhere.id : organisation.id, people[role], role === 'stranger' ? 'owner' : role)
  }
})

const find = "select public.find_person('guest@example.com', $1) as found"
const erase = "select public.erase_person('GUEST@example.com', organisation_id => $1) as receipt"

test.each(['owner', 'manager'] as const)(
  'as %s one finds and erases a person of the own organisation',
  async (role) => {
    await actAs('authenticated', people[role], async ({ rows }) => {
      expect(await rows(find, [null])).toMatchObject([
        { found: { people: [{ name: 'Guest', attendees: 1, orders: 1 }] } },
      ])
      expect(await rows(erase, [null])).toMatchObject([
        { receipt: { people: 1, attendees: 1, orders: 1, remaining: 0 } },
      ])
      expect(await rows(find, [null])).toMatchObject([{ found: { people: [] } }])
    })
  },
)

test.each(['door', 'viewer', 'stranger'] as const)('as %s one does neither', async (role) => {
  await actAs('authenticated', people[role], async ({ refusal }) => {
    expect(await refusal(find, [organisation.id])).toMatchObject({ param: 'organisation_id' })
    expect(await refusal(erase, [organisation.id])).toMatchObject({ param: 'organisation_id' })
  })
})

test('in the SQL editor the organisation is named, and nobody of another is erased', async () => {
  expect(await refusalOf(studio.query(erase, [null]))).toMatchObject({ sqlstate: 'PT422', param: 'organisation_id' })
  expect(await row(erase, [organisation.id])).toMatchObject({ receipt: { attendees: 1 } })
  expect(await refusalOf(studio.query(erase, [organisation.id]))).toMatchObject({ sqlstate: 'PT404', param: 'email' })
  expect(await row(find, [elsewhere.id])).toMatchObject({ found: { people: [{ name: 'Guest' }] } })
})
