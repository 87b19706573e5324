// The registration page of an event, as a browser without a script sends its form.

import { randomInt } from 'node:crypto'

export type Answer = { status: number; text: string; location: string | null; headers: Headers }

type Guest = { name?: string; email?: string; company?: string; answers?: Record<string, string | string[]> }
export type Registration = {
  tickets?: Record<string, number>
  code?: string
  guests: Guest[]
  /** Fields in the place of those that the page has. */
  fields?: Record<string, string>
}

/** An address of its own for each request: the forms of one are limited. Behind a proxy that says so. */
export const elsewhere = () => `10.${randomInt(256)}.${randomInt(256)}.${randomInt(256)}`

async function send(url: string, init: RequestInit = {}, from = elsewhere()): Promise<Answer> {
  const headers = { 'X-Forwarded-For': from, ...init.headers }
  const answer = await fetch(url, { redirect: 'manual', ...init, headers })
  const { status } = answer
  return { status, text: await answer.text(), location: answer.headers.get('Location'), headers: answer.headers }
}

export const open = (url: string, headers: Record<string, string> = {}): Promise<Answer> => send(url, { headers })

export function post(url: string, fields: Record<string, string | string[]>, from?: string): Promise<Answer> {
  const body = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) for (const one of [value].flat()) body.append(name, one)
  return send(url, { method: 'POST', body }, from)
}

/** What a hidden field of the form has. */
export const hiddenField = (text: string, name: string): string =>
  new RegExp(`<input type="hidden" name="${name}" value="([^"]*)"`).exec(text)?.[1] ?? ''

/** The guests one after the other, as the tickets are chosen. */
const typed = (tickets: Record<string, number>, guests: Guest[]) => {
  const prefixes = Object.entries(tickets).flatMap(([id, count]) =>
    Array.from({ length: count }, (_, i) => `g.${id}.${i}.`),
  )
  return Object.fromEntries(
    guests.flatMap(({ answers = {}, ...contact }, i) => [
      ...Object.entries(contact).map(([name, value]): [string, string] => [`${prefixes[i]}${name}`, value]),
      [`${prefixes[i]}asked`, Object.keys(answers)] as [string, string[]],
      ...Object.entries(answers).map(([key, value]): [string, string | string[]] => [
        `${prefixes[i]}answer.${key}`,
        value,
      ]),
    ]),
  )
}

/** Chooses tickets, then sends the form of the guests. */
export async function registerOn(
  url: string,
  { tickets = {}, code, guests, fields = {} }: Registration,
  from?: string,
  beforeSending: () => Promise<unknown> = async () => {},
): Promise<Answer> {
  const choice = {
    ...Object.fromEntries(Object.entries(tickets).map(([id, count]) => [`t.${id}`, `${count}`])),
    ...(code !== undefined && { code }),
  }
  const shown = await post(url, { act: 'choose', ...choice }, from)
  const hidden = { total: hiddenField(shown.text, 'total'), key: hiddenField(shown.text, 'key') }
  await beforeSending()
  return post(url, { act: 'register', ...choice, ...hidden, ...typed(tickets, guests), ...fields }, from)
}

export const waitOn = (url: string, ticketTypeId: string, name: string, email: string): Promise<Answer> =>
  post(url, {
    ...{ act: 'wait', ticket_type_id: ticketTypeId, key: crypto.randomUUID() },
    ...{ [`w.${ticketTypeId}.name`]: name, [`w.${ticketTypeId}.email`]: email },
  })
