// What the page says of a verdict, for people at arm's length: tone, sign, headline.

import type { Reason } from './offline-rules.ts'

export type Tone = 'welcome' | 'caution' | 'stop'
export type Words = { tone: Tone; sign: string; headline: string; advice: string }

const words: Record<Reason | 'welcome' | 'goodbye' | 'not_kept', Words> = {
  welcome: { tone: 'welcome', sign: '✓', headline: 'Welcome', advice: '' },
  goodbye: { tone: 'welcome', sign: '→', headline: 'Goodbye', advice: '' },
  already_checked_in: { tone: 'caution', sign: '!', headline: 'Already in', advice: '' },
  not_inside: { tone: 'caution', sign: '!', headline: 'Not inside', advice: 'This ticket has not come in here.' },
  unpaid: { tone: 'stop', sign: '✕', headline: 'Unpaid', advice: 'The order is not paid for yet.' },
  cancelled: { tone: 'stop', sign: '✕', headline: 'Cancelled', advice: 'This ticket was cancelled.' },
  event_cancelled: { tone: 'stop', sign: '✕', headline: 'Event cancelled', advice: 'No ticket admits any more.' },
  wrong_event: { tone: 'stop', sign: '✕', headline: 'Wrong event', advice: 'This ticket is for another event.' },
  not_admitted_here: { tone: 'stop', sign: '✕', headline: 'Wrong point', advice: 'Not with this type of ticket.' },
  point_closed: { tone: 'stop', sign: '✕', headline: 'Closed', advice: 'This check-in point is not open now.' },
  not_found: { tone: 'stop', sign: '?', headline: 'Unknown', advice: 'No ticket of this event has this code.' },
  turned_away: { tone: 'stop', sign: '✕', headline: 'Turned away', advice: '' },
  not_kept: {
    tone: 'stop',
    sign: '✕',
    headline: 'Not saved',
    advice: 'This device is full and offline: the scan does not count.',
  },
}

export const wordsOf = (reason: keyof typeof words): Words => words[reason]
