// Payments and refunds as rows: how each came, and amounts that are none.

import { expect, test } from 'vitest'
import { row, studio } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { rest } from '../support/rest.ts'
import { addOrder } from '../support/studio.ts'

async function arrange({ paid = 19_900 } = {}) {
  const organisation = await createOrganisation()
  const event = await organisation.event()
  const { id } = await addOrder(event, { subtotal: 19_900, paid })
  const send = rest(await organisation.key())
  return { organisation, event, id, send, order: async () => (await send('GET', `/orders/${id}`)).body.data }
}

test('the order keeps how it is to be paid, and each payment how it came, in exports as well', async () => {
  const { id, send, order } = await arrange({ paid: 0 })
  for (const method of ['cash', 'bank_transfer']) await send('POST', `/orders/${id}/payments`, { amount: 500, method })
  const { payment_method, payments } = await order()
  expect([payment_method, payments.map((payment: { method: string }) => payment.method)]).toEqual([
    'invoice',
    ['cash', 'bank_transfer'],
  ])
  expect(await row('select payment_method from public.order_export where id = $1', [id])).toEqual({
    payment_method: 'invoice',
  })
  const lines =
    'select array_agg(method::text order by created_at) as methods from public.payment_export where order_id = $1'
  expect(await row(lines, [id])).toEqual({ methods: ['cash', 'bank_transfer'] })
})

test.each([['payments'], ['refunds']])(
  'a full row of %s of nothing or less is refused in a sentence',
  async (table) => {
    const { id, event, organisation, send } = await arrange()
    await send('POST', `/orders/${id}/cancel`)
    for (const amount of [-4900, 0]) {
      const adding = studio.query(
        `insert into public.${table} (order_id, amount, currency, method, event_id, organisation_id, external_reference)
       values ($1, $2, 'EUR', 'cash', $3, $4, 'Private 1')`,
        [id, amount, event.id, organisation.id],
      )
      const said = { message: expect.stringMatching(/^In amount: A (payment|refund) is above 0\.$/), code: 'PT422' }
      await expect(adding).rejects.toMatchObject(said)
      await expect(adding).rejects.not.toMatchObject({ detail: expect.stringContaining('Private') })
    }
  },
)
