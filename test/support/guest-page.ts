// The guest page, by the link that the e-mails of a ticket carry, and what it makes of its forms.

import { inject } from 'vitest'
import type { GuestLink } from '../../src/guests/pending.ts'
import { during } from './database.ts'

type Pending = { attendee: { name: string; email: string; ticket_url: string | null; guest: GuestLink | null } }

/** The last e-mail of a kind to an attendee, as a courier claims it. */
export async function pendingEmail<T = Pending>(
  attendeeId: string,
  kind = 'ticket',
  publicUrl = inject('apiUrl'),
): Promise<T> {
  return during(async (client) => {
    await client.query("select set_config('request.jwt.claims', $1, true)", [JSON.stringify({ public_url: publicUrl })])
    const { rows } = await client.query<{ pending: T }>(
      `select private.pending_email_json(e) as pending from public.emails e
       where e.attendee_id = $1 and e.kind::text = $2 order by e.id desc limit 1`,
      [attendeeId, kind],
    )
    if (rows[0] === undefined) throw new Error(`no e-mail of the kind ${kind}`)
    return rows[0].pending
  })
}

/** The address of the page, whether or not it offers anything. */
export async function guestUrl(attendeeId: string, publicUrl = inject('apiUrl')): Promise<string> {
  return during(async (client) => {
    const { rows } = await client.query<{ token: string }>(
      'select private.guest_token(a) as token from public.attendees a where a.id = $1',
      [attendeeId],
    )
    return `${publicUrl}/g/${rows[0]?.token}`
  })
}

export type Answer = { status: number; text: string; location: string | null }

async function answerOf(answer: Response): Promise<Answer> {
  return { status: answer.status, text: await answer.text(), location: answer.headers.get('Location') }
}

/** As a browser without a script: fields that are repeated are lists. */
export async function press(url: string, act: string, fields: Record<string, string | string[]> = {}): Promise<Answer> {
  const body = new URLSearchParams({ act })
  for (const [field, value] of Object.entries(fields)) for (const one of [value].flat()) body.append(field, one)
  return answerOf(await fetch(url, { method: 'POST', body, redirect: 'manual' }))
}

/** Answers by key. */
export const answer = (url: string, answers: Record<string, string | string[]>): Promise<Answer> =>
  press(url, 'answer', {
    asked: Object.keys(answers),
    ...Object.fromEntries(Object.entries(answers).map(([key, value]) => [`answer.${key}`, value])),
  })

export const open = async (url: string): Promise<Answer> => answerOf(await fetch(url, { redirect: 'manual' }))
