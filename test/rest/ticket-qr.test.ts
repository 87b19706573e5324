// The QR code of a ticket, read back by a library that did not write it, over REST and MCP.

import { PNG } from 'pngjs'
import { expect, inject, test } from 'vitest'
import { bearing, jsonHeaders, post, toolCall } from '../support/mcp.ts'
import { createOrganisation } from '../support/organisation.ts'
import { createOrganiser } from '../support/organiser.ts'
import { readPixels, readPng } from '../support/qr.ts'
import { rest } from '../support/rest.ts'

async function arrange() {
  const { organisation, event, key } = await createOrganiser()
  const picture = (attendeeId: string, extension: string, of = key) =>
    fetch(`${inject('apiUrl')}/api/v1/attendees/${attendeeId}/ticket.${extension}`, bearing(of))
  return { organisation, event, key, send: rest(key), picture }
}

/** Draws the strokes of the SVG, one unit a module, eight pixels each. */
function readSvg(svg: string): string | undefined {
  const size = Number(/viewBox="0 0 (\d+) \1"/.exec(svg)?.[1])
  const strokes = /<path stroke="#000000" d="([^"]+)"/.exec(svg)?.[1] ?? ''
  const scale = 8
  const png = new PNG({ width: size * scale, height: size * scale })
  png.data.fill(255)
  let [x, y] = [0, 0]
  for (const [, command, first, second] of strokes.matchAll(/([Mmh])(-?[\d.]+)(?: ?(-?[\d.]+))?/g)) {
    if (command === 'M') [x, y] = [Number(first), Math.floor(Number(second))]
    if (command === 'm') [x, y] = [x + Number(first), y + Number(second)]
    if (command !== 'h') continue
    for (let px = x * scale; px < (x + Number(first)) * scale; px++) {
      for (let py = y * scale; py < (y + 1) * scale; py++)
        png.data.fill(0, (py * png.width + px) * 4, (py * png.width + px) * 4 + 3)
    }
    x += Number(first)
  }
  return readPixels(png)
}

test('the PNG and the SVG of a ticket hold its code, and the code lets its holder in', async () => {
  const { event, send, picture } = await arrange()
  const { attendeeId, code } = await event.guest()
  expect((await send('GET', `/attendees/${attendeeId}/ticket`)).body.data).toEqual({
    object: 'ticket_qr',
    attendee_id: attendeeId,
    event_id: event.id,
    name: 'Guest',
    ticket_code: code,
  })

  const png = await picture(attendeeId, 'png')
  expect([png.status, png.headers.get('content-type'), png.headers.get('cache-control')]).toEqual([
    200,
    'image/png',
    'no-store',
  ])
  const scanned = readPng(Buffer.from(await png.arrayBuffer()))
  expect(scanned).toBe(code)

  const svg = await picture(attendeeId, 'svg')
  expect([svg.status, svg.headers.get('content-type')]).toEqual([200, 'image/svg+xml; charset=utf-8'])
  expect(readSvg(await svg.text())).toBe(code)

  expect((await send('POST', '/check-ins', { event_id: event.id, code: scanned })).status).toBe(200)
})

test('over MCP the picture comes with the result', async () => {
  const { event, key } = await arrange()
  const { attendeeId, code } = await event.guest()
  const { body } = await post(toolCall('get_ticket_qr', { attendee_id: attendeeId }), jsonHeaders(key))
  const { content } = (body as { result: { content: { type: string; mimeType?: string; data?: string }[] } }).result
  expect(content.map(({ type, mimeType }) => [type, mimeType])).toEqual([
    ['text', undefined],
    ['image', 'image/png'],
  ])
  expect(readPng(Buffer.from(content[1]?.data ?? '', 'base64'))).toBe(code)
})

test('a ticket that would let nobody in is not shown', async () => {
  const { event, send, picture } = await arrange()
  const cancelled = await event.guest()
  await send('POST', `/attendees/${cancelled.attendeeId}/cancel`)
  const unpaid = await event.payer()
  for (const [{ attendeeId }, status] of [
    [cancelled, 'cancelled'],
    [unpaid, 'awaiting_payment'],
  ] as const) {
    for (const extension of ['png', 'svg']) {
      const answer = await picture(attendeeId, extension)
      expect([answer.status, answer.headers.get('content-type')]).toEqual([409, 'application/json; charset=utf-8'])
      expect(await answer.json()).toMatchObject({ error: { code: 'ticket_not_active', details: { status } } })
    }
  }
})

test('a ticket is shown to nobody without the scope, nor to another organisation', async () => {
  const { organisation, event, picture } = await arrange()
  const { attendeeId } = await event.guest()
  const stranger = await (await createOrganisation()).key()
  expect((await picture(attendeeId, 'png', await organisation.key('orders:read', 'checkin:write'))).status).toBe(403)
  expect((await picture(attendeeId, 'png', stranger)).status).toBe(404)
  expect((await picture(attendeeId, 'gif')).status).toBe(404)
  const posted = await fetch(`${inject('apiUrl')}/api/v1/attendees/${attendeeId}/ticket.png`, {
    method: 'POST',
    ...bearing(stranger),
  })
  expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})
