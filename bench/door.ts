// From a code before the camera until the answer on the page, at an event of 20,000 tickets; with the main thread of the browser as it is,
// and slowed six times, as on a cheap telephone.

import type { Page } from 'playwright-core'
import { openBrowser } from '../scripts/support/browser.ts'
import { linesOfCode } from '../scripts/support/ticket-film.ts'
import type { Effort } from './compare.ts'
import { grow } from './lists.ts'
import { fixed, judged, median, type Outcome, type Target } from './report.ts'
import { addOrganiser, type Stack } from './stack.ts'

const tickets = 20_000

/** A camera that films what is held before it. The code is there from `heldAt` on, the answer from `answeredAt`. */
const camera = `
  AudioContext = class extends OfflineAudioContext {
    constructor() { super(1, 48_000, 48_000) }
    async resume() {}
  }
  const canvas = Object.assign(document.createElement('canvas'), { width: 1280, height: 720 })
  const context = canvas.getContext('2d')
  globalThis.hold = (lines) => {
    context.fillStyle = lines.length === 0 ? '#666' : '#fff'
    context.fillRect(0, 0, 1280, 720)
    context.fillStyle = '#000'
    const side = Math.floor(400 / lines.length)
    lines.forEach((line, y) => [...line].forEach((dark, x) => {
      if (dark === '1') context.fillRect(440 + x * side, 160 + y * side, side, side)
    }))
    globalThis.answeredAt = null
    globalThis.heldAt = performance.now()
  }
  hold([])
  // A frame is filmed when something was drawn.
  setInterval(() => context.fillRect(0, 0, 1, 1), 33)
  new MutationObserver(() => {
    if (answeredAt === null && document.querySelector('.verdict[data-reason=welcome]')) {
      requestAnimationFrame(() => { globalThis.answeredAt ??= performance.now() })
    }
  }).observe(document, { subtree: true, childList: true, attributes: true })
  navigator.mediaDevices.getUserMedia = async () => canvas.captureStream(30)`

async function scan(page: Page, code: string): Promise<number> {
  await page.evaluate(`hold(${JSON.stringify(linesOfCode(code))})`)
  const taken: number = await page.evaluate(`new Promise((resolve) => {
    const look = () => (answeredAt === null ? setTimeout(look, 50) : resolve(answeredAt - heldAt))
    look()
  })`)
  await page.evaluate('hold([])')
  await page.getByRole('button', { name: 'Next' }).click()
  await page.locator('.verdict').waitFor({ state: 'hidden' })
  return taken
}

export async function door(stack: Stack, { rounds }: Effort): Promise<Outcome> {
  const organiser = await addOrganiser(stack)
  await grow(stack, organiser, tickets)
  const { rows } = await stack.database.query(
    'select ticket_code from public.attendees where event_id = $1 order by id',
    [organiser.eventId],
  )
  const codes: string[] = rows.map(({ ticket_code }) => ticket_code)
  const browser = await openBrowser()
  try {
    const context = await browser.newContext({ viewport: { width: 360, height: 640 }, reducedMotion: 'reduce' })
    await context.addInitScript(camera)
    const page = await context.newPage()
    page.setDefaultTimeout(120_000)
    await page.goto(`${stack.url}/door#event=${organiser.eventId}&key=${organiser.key}`)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('Saved on this device').waitFor()
    await page.getByRole('button', { name: 'Start scanning' }).click()
    const session = await context.newCDPSession(page)
    const slowed = (rate: number) => session.send('Emulation.setCPUThrottlingRate', { rate })
    const next = () => codes.pop() as string
    await scan(page, next())

    const taken: Record<string, number[]> = {}
    for (let round = 0; round < rounds; round++) {
      for (const decides of ['server', 'list']) {
        await context.setOffline(decides === 'list')
        for (const times of [1, 6]) {
          await slowed(times)
          const kind = `the ${decides} decides${times > 1 ? `, slowed ${times} times` : ''}`
          // The first one offline waits for the server in vain.
          await scan(page, next())
          for (let i = 0; i < 4; i++) taken[kind] = [...(taken[kind] ?? []), await scan(page, next())]
          await slowed(1)
        }
        await context.setOffline(false)
        await page.getByText('to upload').waitFor({ state: 'detached' })
      }
    }
    const targets: Target[] = Object.entries(taken).map(([kind, all]) => {
      const sorted = all.toSorted((a, b) => a - b)
      const p95 = sorted[Math.ceil(sorted.length * 0.95) - 1] ?? 0
      return judged(`${kind}: ≤ 300 ms`, `${fixed(median(all))} ms, p95 ${fixed(p95)}`, median(all), { atMost: 300 })
    })
    return { figures: taken, targets }
  } finally {
    await browser.close()
  }
}
