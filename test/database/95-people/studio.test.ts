// public.find_person and public.erase_person in the SQL editor. test/database/tenancy-of-people.test.ts tests which members may call them.

import { expect, test } from 'vitest'
import { refusalOf, row, studio } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'

const find = "select public.find_person('guest@example.com', $1) as found"
const erase = "select public.erase_person('GUEST@example.com', organisation_id => $1) as receipt"

test('the organisation is named, and nobody of another is erased', async () => {
  const [organisation, elsewhere] = await Promise.all([createOrganisation(), createOrganisation()])
  for (const { event } of [organisation, elsewhere]) await (await event()).guest()
  expect(await refusalOf(studio.query(erase, [null]))).toMatchObject({ sqlstate: 'PT422', param: 'organisation_id' })
  expect(await row(erase, [organisation.id])).toMatchObject({ receipt: { attendees: 1 } })
  expect(await refusalOf(studio.query(erase, [organisation.id]))).toMatchObject({ sqlstate: 'PT404', param: 'email' })
  expect(await row(find, [elsewhere.id])).toMatchObject({ found: { people: [{ name: 'Guest' }] } })
})
