// How often a batch tries its calls when some of them are refused.

import { expect, test } from 'vitest'
import { during } from '../support/database.ts'

const n = 64

/** Answers a batch of calls of which these are refused, and counts the calls of each attempt. */
const triesOf = (refused: number[]) =>
  during(async (client) => {
    // A sequence keeps its value when an attempt is rolled back.
    await client.query('create sequence private.tries')
    await client.query(
      `create function private.counted_calls(calls jsonb[]) returns json[] language plpgsql as $$
       begin
         perform setval('private.tries', nextval('private.tries') + cardinality(calls) - 1);
         if calls && (select array_agg(to_jsonb(r)) from unnest('{${refused}}'::integer[]) r) then
           perform private.refuse(409, 'sold_out', 'Not enough tickets of this type are left.');
         end if;
         return array(select to_json(c) from unnest(calls) c);
       end $$`,
    )
    const { rows } = await client.query(
      `select private.answer_calls('counted_calls', array(select to_jsonb(i) from generate_series(0, $1 - 1) i)) as answers`,
      [n],
    )
    const { rows: tries } = await client.query('select last_value::integer as calls from private.tries')
    const answers = rows[0].answers as { outcome?: number; error?: { code: string } }[]
    expect(answers.map(({ outcome, error }) => outcome ?? error?.code)).toEqual(
      Array.from({ length: n }, (_, i) => (refused.includes(i) ? 'PT409' : i)),
    )
    return tries[0].calls / n
  })

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

test.each<[string, number, number[]]>([
  ['none is', 1, []],
  ['all are', 2, range(0, n)],
  ['the first is', 2, [0]],
  ['the last is', 3, [n - 1]],
  ['one in the middle is', 3, [40]],
  ['the second half is', 3, range(n / 2, n)],
  ['every second is', 2, range(0, n / 2).map((i) => 2 * i)],
  ['every third is', 2, range(0, n / 3).map((i) => 3 * i)],
])('when %s refused, each call is tried %d times at most', async (_, most, refused) => {
  expect(await triesOf(refused)).toBeLessThanOrEqual(most)
})
