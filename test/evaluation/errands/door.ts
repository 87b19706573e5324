// Errands at the door, while an event is on.

import type { Errand, Step } from '../errand.ts'
import { guest, type Organisation } from '../organisation.ts'
import { add, present, the } from '../state.ts'

/** Since yesterday, and until tomorrow. */
const festival = (organisation: Organisation) =>
  organisation.event({
    name: 'Lantern Festival',
    starts: new Date(Date.now() - 30 * 3_600_000).toISOString(),
    ends: new Date(Date.now() + 30 * 3_600_000).toISOString(),
    ticketTypes: { Standard: {}, VIP: {} },
  })

const checkInByName: Errand = {
  name: 'check-in-by-name',
  says: [
    'Check in Grace Hopper, Lantern Festival.',
    `I have Grace Hopper standing here in front of me at the Lantern Festival, and the battery of her phone is dead so she can't show her QR code. Her passport is fine. Would you let her in, please?`,
    `Grace Hopper has no ticket with her, but she's on the list of the Lantern Festival. Mark her as arrived.`,
  ],
  async arrange(organisation) {
    const event = await festival(organisation)
    await organisation.order(event, { guests: [guest('Grace Hopper'), guest('Grace Kelly')] })
    return {}
  },
  shortest: () => [['check_in', { event: 'Lantern Festival', attendee: 'Grace Hopper' }]],
  becomes(state) {
    const grace = the(state.attendees, { name: 'Grace Hopper' })
    const { id, event_id } = grace
    Object.assign(grace, { checked_in: true, inside: true })
    add(state, 'check_ins', {
      event_id,
      attendee_id: id,
      result: 'accepted',
      direction: 'entry',
      check_in_point_id: null,
      undone_at: null,
    })
  },
}

const undoCheckIn: Errand = {
  name: 'undo-check-in',
  says: [
    'Undo check-in: Grace Hopper, Lantern Festival.',
    `Sorry, I clicked on the wrong person at the Lantern Festival a minute ago: Grace Hopper is marked as arrived, but she is not here yet. Can you take that back so that she can get in later?`,
    `Grace Hopper will turn up at the Lantern Festival this evening and must then not be told that she is in already, as I mixed her up with somebody.`,
  ],
  async arrange(organisation) {
    const event = await festival(organisation)
    const { attendeeIds } = await organisation.order(event, { guests: [guest('Grace Hopper'), guest('Grace Kelly')] })
    for (const attendeeId of attendeeIds) await organisation.checkIn(event, attendeeId, '1 minute')
    return {}
  },
  shortest: () => [
    ['list_check_ins', { event: 'Lantern Festival', attendee: 'Grace Hopper' }],
    ({ data }) => ['undo_check_in', { check_in_id: data[0].id }],
  ],
  becomes(state) {
    const attendee = the(state.attendees, { name: 'Grace Hopper' })
    Object.assign(attendee, { checked_in: false, inside: false })
    the(state.check_ins, { attendee_id: attendee.id as string }).undone_at = present
  },
}

const whoCameToday: Errand = {
  name: 'who-came-today',
  says: [
    'Lantern Festival: names of those checked in today.',
    `Before I go home I'd like to know who has come to the Lantern Festival today (not yesterday, I have that list). Just the names, please.`,
    `Whom did we welcome at the Lantern Festival since midnight?`,
  ],
  async arrange(organisation) {
    const event = await festival(organisation)
    const names = ['Ada Lovelace', 'Grace Hopper', 'Joan Clarke', 'Mary Jackson']
    const { attendeeIds } = await organisation.order(event, { guests: names.map((name) => guest(name)) })
    const [ada, grace, joan] = attendeeIds
    await organisation.checkIn(event, ada, '26 hours')
    await organisation.checkIn(event, grace)
    await organisation.checkIn(event, joan)
    return {}
  },
  shortest: () => [['list_check_ins', { event: 'Lantern Festival', result: 'accepted' }]],
  answer: () => [/Grace Hopper/, /Joan Clarke/],
  never: () => [/Ada Lovelace(?!.*yesterday)/, /Mary Jackson(?!.*(not|n't))/],
}

const applyPlan: Step = ({ data }) => ['apply_event', { plan_id: data.plan_id }]

const twoDaysAtTheDoor: Errand = {
  name: 'two-days-at-the-door',
  says: [
    'Rust Days: check-in point "Main door", each ticket once per day.',
    `Rust Days lasts for two days and people have one ticket for both of them. On the second day the scanner shouldn't say that they are in already, but nobody must get in twice on the same day either. We have one door, let's call it "Main door".`,
    `With the same ticket, a guest of Rust Days is to get through the "Main door" on day one and again on day two – though not a second time on either day. Please prepare that door.`,
  ],
  async arrange(organisation) {
    await organisation.conference('Rust Days', { Standard: { price: 4900 } })
    return {}
  },
  shortest: () => [
    ['apply_event', { event: 'Rust Days', check_in_points: [{ name: 'Main door', admission: 'once_per_day' }] }],
    applyPlan,
  ],
  becomes(state) {
    add(state, 'check_in_points', {
      name: 'Main door',
      event_id: the(state.events, { name: 'Rust Days' }).id,
      admission: 'once_per_day',
      ticket_type_ids: [],
      status: 'active',
    })
  },
}

export const doorErrands = [checkInByName, undoCheckIn, whoCameToday, twoDaysAtTheDoor]
