// Counts in the database what must never happen under load.

import type { Organiser, Stack } from './stack.ts'

export type Written = 'registrations' | 'check-ins'

/** Acknowledged writes that are missing, writes that are there twice, tickets beyond the quantity, and free places that were refused. */
export type Faults = { lost: number; duplicated: number; oversold: number; unsold: number }

/** Each registration of an organiser has an e-mail address of its own; a ticket admits once. */
const queries: Record<Written, { lost: string; duplicated: string }> = {
  registrations: {
    lost: `select count(*) as n from unnest($2::uuid[]) as acknowledged (id)
           where not exists (select from public.orders o join public.attendees a on a.order_id = o.id
                             where o.id = acknowledged.id and o.organisation_id = any ($1))`,
    duplicated: `select coalesce(sum(times - 1), 0) as n
                 from (select count(*) as times from public.attendees
                       where organisation_id = any ($1) group by organisation_id, email) as addresses`,
  },
  'check-ins': {
    lost: `select count(*) as n from unnest($2::uuid[]) as acknowledged (id)
           where not exists (select from public.check_ins c left join public.attendees a on a.id = c.attendee_id
                             where c.id = acknowledged.id and c.organisation_id = any ($1)
                               and (c.result = 'rejected' or a.checked_in_at is not null))`,
    duplicated: `select coalesce(sum(times - 1), 0) as n
                 from (select count(*) as times from public.check_ins
                       where organisation_id = any ($1) and result = 'accepted' and undone_at is null
                       group by attendee_id) as tickets`,
  },
}

const sales = `
  select coalesce(sum(greatest(active - quantity, 0)), 0) as oversold,
    coalesce(sum(greatest(quantity - active, 0)), 0) as unsold
  from (select t.quantity, count(a.id) filter (where a.status = 'active') as active
        from public.ticket_types t left join public.attendees a on a.ticket_type_id = t.id
        where t.organisation_id = any ($1) group by t.id) as types`

/** @param acknowledged ids of the orders or check-ins that were answered with success. */
export async function countFaults(
  { database }: Stack,
  written: Written,
  organisers: Organiser[],
  acknowledged: string[],
): Promise<Faults> {
  const organisations = organisers.map(({ holder }) => holder.organisation_id)
  const count = async (sql: string, values: unknown[]) => Number((await database.query(sql, values)).rows[0].n)
  const sold = (await database.query(sales, [organisations])).rows[0]
  return {
    lost: await count(queries[written].lost, [organisations, acknowledged]),
    duplicated: await count(queries[written].duplicated, [organisations]),
    oversold: Number(sold.oversold),
    unsold: Number(sold.unsold),
  }
}

/** The ids in an answer: of an order, a check-in, or each check-in of an uploaded batch. */
export function idsIn(body: string): string[] {
  const { data } = JSON.parse(body)
  if (data === undefined) return []
  return data.results?.map((result: { check_in: { id: string } }) => result.check_in.id) ?? [data.id]
}
