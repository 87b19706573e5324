// What clients of an API do not make: members of each role, and a grant of OAuth. So that a migration meets rows of every kind.

import { withClient } from '../prove.ts'

export async function fillTheRest(databaseUrl: string): Promise<void> {
  await withClient(databaseUrl, async (database) => {
    await database.query(`
      with people as (
        insert into auth.users (id, email)
        select gen_random_uuid(), 'member-' || n || '@example.com' from generate_series(1, 4) n
        returning id, email
      )
      insert into public.organisation_members (organisation_id, user_id, role, name, email)
      select o.id, p.id, r.role, 'Member', p.email
      from public.organisations o
      join (select p.*, row_number() over (order by p.email) as n from people p) p on o.slug = 'prove'
      join unnest(enum_range(null::public.organisation_role)) with ordinality r (role, n) on r.n = p.n`)
    await database.query(`
      insert into public.api_keys (organisation_id, name, scopes, kind, prefix, expires_at, parent_id, family_id)
      select k.organisation_id, 'An assistant', '{events:read}', 'grant', 'usher_grant_' || left(md5(k.id::text), 12),
        now() + interval '1 day', k.id, gen_random_uuid()
      from public.api_keys k
      order by k.id
      limit 1`)
  })
}
