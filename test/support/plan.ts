// An organisation on a plan of its own, so that a test can use an allowance up.

import { randomBytes } from 'node:crypto'
import { studio } from './database.ts'
import { createOrganisation, type TestOrganisation } from './organisation.ts'

export async function organisationAllowed(requestsPerMinute: number): Promise<TestOrganisation> {
  const plan = `test-${randomBytes(8).toString('hex')}`
  await studio.query('insert into public.plans (name, rate_limit_per_minute) values ($1, $2)', [
    plan,
    requestsPerMinute,
  ])
  return createOrganisation({ plan })
}
