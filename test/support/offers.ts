// Offers of the waiting list, and the links by which they are taken.

import { inject } from 'vitest'
import { createOrganiser } from './organiser.ts'
import { pendingEmail } from './pending-email.ts'

export const offerUrl = async (entryId: string, apiUrl = inject('apiUrl')): Promise<string> =>
  (await pendingEmail<{ offer_url: string }>('waiting_list_offer', entryId, apiUrl)).offer_url

/** An event whose only place was given back, and is offered to the first of those who wait. */
export async function offering({ price = 0, names = ['Ann', 'Bea'], fields = {}, apiUrl = inject('apiUrl') } = {}) {
  const { organisation, event, send } = await createOrganiser()
  const ticketTypeId = await event.ticketType({ quantity: 1, price })
  const guest = await event.guest({ ticketTypeId })
  const entryIds: string[] = []
  for (const name of names) {
    const person = { ticket_type_id: ticketTypeId, name, email: `${name.toLowerCase()}@example.com`, ...fields }
    entryIds.push((await send('POST', `/events/${event.id}/waiting-list`, person)).body.data.id)
  }
  const [entryId = ''] = entryIds
  await send('POST', `/attendees/${guest.attendeeId}/cancel`)
  const statuses = async (): Promise<string[]> =>
    (await send('GET', `/events/${event.id}/waiting-list`)).body.data.map(({ status }: { status: string }) => status)
  return { organisation, event, send, ticketTypeId, entryIds, entryId, url: await offerUrl(entryId, apiUrl), statuses }
}
