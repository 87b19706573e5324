// What both clients do, and what comes of it.

export type Story = (place: { apiUrl: string; key: string; eventId: string; ticketTypeId: string }) => Promise<Told>

export type Told = {
  events: number
  order: 'pending' | 'completed' | 'cancelled' | undefined
  group: number
  arrival: 'accepted' | 'rejected' | undefined
  again: 'already_checked_in' | undefined
}
