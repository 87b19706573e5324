// Starts the page: takes the link, opens the session in one tab at a time, and connects camera, keyboard and view to it.

import { render } from 'lit-html'
import { base, nameOfStore } from './base.ts'
import { type Camera, type Facing, openCamera } from './camera.ts'
import { parseLink, takeLink } from './link.ts'
import { Session } from './session.ts'
import { allowSound, signal } from './signals.ts'
import { type Actions, type Page, view } from './view.ts'
import { wordsOf } from './words.ts'

const root = document.querySelector('#door') as HTMLElement
const page: Page = {
  panel: 'none',
  isScanning: false,
  query: '',
  cameraProblem: null,
  hasTorch: false,
  torch: false,
}
let session: Session
let camera: Camera | null = null
let facing: Facing = 'environment'
let drawn: Session['shown'] = null
let awake: WakeLockSentinel | null = null

function draw(): void {
  render(view(session, page, actions), root)
  if (session.shown !== drawn && session.shown !== null) {
    signal(wordsOf(session.shown.reason).tone)
    root.querySelector<HTMLElement>('.verdict .next')?.focus({ preventScroll: true })
  }
  drawn = session.shown
  if (session.stopped !== null && camera !== null) stopCamera()
}

async function startCamera(): Promise<void> {
  stopCamera()
  page.cameraProblem = null
  const video = root.querySelector('video')
  if (video === null) return
  try {
    camera = await openCamera(video, facing, (code) => session.scanCode(code))
    page.hasTorch = camera.torch !== undefined
  } catch (error) {
    page.cameraProblem = `No camera: ${problemOf(error)}. Search by name, type the code, or use a barcode scanner.`
  }
  draw()
}

const problemOf = (error: unknown): string => {
  if (!window.isSecureContext) return 'browsers give it to pages with https only'
  return error instanceof DOMException && error.name === 'NotAllowedError'
    ? 'this page may not use it'
    : 'none was found'
}

function stopCamera(): void {
  camera?.stop()
  camera = null
  page.hasTorch = page.torch = false
}

const actions: Actions = {
  start() {
    allowSound()
    page.isScanning = true
    draw()
    void startCamera()
    navigator.wakeLock?.request('screen').then(
      (lock) => {
        awake = lock
      },
      () => {},
    )
  },
  stop() {
    stopCamera()
    void awake?.release()
    Object.assign(page, { isScanning: false, panel: 'none' })
    draw()
  },
  open(panel) {
    Object.assign(page, { panel, query: '' })
    draw()
    root.querySelector<HTMLElement>('.panel input')?.focus()
  },
  search(text) {
    page.query = text
    draw()
  },
  pick(ticket) {
    page.panel = 'none'
    void session.scanTicket(ticket)
  },
  code(text) {
    page.panel = 'none'
    void session.scanCode(text)
  },
  torch() {
    page.torch = !page.torch
    void camera?.torch?.(page.torch)
    draw()
  },
  turnCamera() {
    facing = facing === 'environment' ? 'user' : 'environment'
    void startCamera()
  },
  paste(text) {
    const link = parseLink(text)
    if (link !== null) session.use(link)
    return link !== null
  },
  async forget() {
    stopCamera()
    await session.forget()
    location.reload()
  },
}

/** An external scanner types the code, faster than people, and ends with Enter. */
function listenToScanner(): void {
  let typed = ''
  let lastAt = 0
  window.addEventListener('keydown', (event) => {
    if (!page.isScanning || event.ctrlKey || event.altKey || event.metaKey) return
    if (event.target instanceof HTMLInputElement) return
    if (event.timeStamp - lastAt > 200) typed = ''
    lastAt = event.timeStamp
    if (event.key.length === 1) typed += event.key
    if (event.key !== 'Enter' || typed.length < 4) return
    event.preventDefault()
    void session.scanCode(typed)
    typed = ''
  })
}

/** Two tabs would upload and undo each other's scans: the latest one has the queue, and the other says so. */
async function holdDoor(): Promise<void> {
  await new Promise<void>((isHeld) => {
    void navigator.locks
      .request(nameOfStore, { steal: true }, () => {
        isHeld()
        return new Promise(() => {})
      })
      .catch(() => session?.close())
  })
}

async function main(): Promise<void> {
  const link = takeLink()
  await holdDoor()
  // Another one may have been opened meanwhile.
  session = await Session.open(takeLink() ?? link, draw)
  if (session.link === null) draw()
  else session.use(session.link)
  listenToScanner()
  window.addEventListener('online', () => void session.retry())
  window.addEventListener('hashchange', () => {
    const opened = takeLink()
    if (opened !== null) session.use(opened)
  })
  await navigator.serviceWorker?.register(new URL('door/service-worker.ts', base), {
    scope: new URL('door', base).pathname,
  })
}

void main()
