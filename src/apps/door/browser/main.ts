// Starts the page: takes the link, opens the session in one tab at a time, and connects camera, keyboard and view to it.

import { render } from 'lit-html'
import { paletteOf, propertiesOf } from '../../../guests/look.ts'
import { type Camera, type Facing, openCamera, prepareReader } from './camera.ts'
import { type DoorLink, heldLink, holdLink, nameOfStore, parseLink, takeLink } from './link.ts'
import type { Ticket } from './offline-rules.ts'
import type { Actions, Page } from './page.ts'
import { renew } from './renew.ts'
import { scan, takeBack, undoLast } from './scan.ts'
import { Session } from './session.ts'
import { allowSound, signal } from './signals.ts'
import { retry, sync } from './sync.ts'
import { type Shown, toneOf } from './tones.ts'
import { canRegister, spoken, starting, view, waiting } from './view.ts'
import { WalkIn } from './walk-in.ts'
import { keepWayBack } from './way-back.ts'
import { sayTakenBack, speak } from './words/index.ts'

const root = document.querySelector('#door') as HTMLElement
const said = document.querySelector('#said') as HTMLElement
const page: Page = {
  panels: [],
  get panel() {
    return this.panels.at(-1) ?? 'none'
  },
  isScanning: false,
  hasFiles: navigator.serviceWorker === undefined,
  query: '',
  person: null,
  walkIn: null,
  cameraProblem: null,
  hasTorch: false,
  torch: false,
}
let session: Session
let camera: Camera | null = null
let cameraTurn = 0
let facing: Facing = 'environment'
/** The button that a panel was opened by, which has the focus again after it. */
let opener = ''
/** Where a panel has its cursor. */
let field: HTMLElement | null = null
let coloured: string | null = null
let drawn: Shown | null = null
let takenBack: string | null = null
let awake: WakeLockSentinel | null = null

function draw(): void {
  if (session.stopped !== null || session.pointLost || session.door === null) leaveCamera()
  showColour()
  render(view(session, page, actions), root)
  const former = field
  field = root.querySelector<HTMLElement>('.panel [data-field]')
  // Not beneath an answer that is about to be there.
  if (field !== former && !session.deciding) field?.focus()
  const { shown } = session
  if (shown !== drawn && shown !== null) {
    signal(toneOf(shown.reason))
    said.textContent = spoken(session, shown)
    root.querySelector<HTMLElement>('.verdict .next')?.focus({ preventScroll: true })
  } else if (shown === null && drawn !== null) {
    said.textContent = ''
    // Not the field of the search, where a scanner that types would type.
    const place = root.querySelector<HTMLElement>('.panel .close') ?? root
    place.focus({ preventScroll: true })
  }
  drawn = shown
  if (session.takenBack !== null && session.takenBack !== takenBack) said.textContent = sayTakenBack(session.takenBack)
  takenBack = session.takenBack
}

/** In the organisation's colour, once the list is read. */
function showColour(): void {
  const { colour } = session.known
  if (colour === null || colour === coloured) return
  coloured = colour
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(propertiesOf(paletteOf(colour)))
  document.adoptedStyleSheets = [sheet]
  document.querySelector('meta[name=theme-color]')?.setAttribute('content', colour)
}

async function startCamera(): Promise<void> {
  stopCamera()
  const turn = cameraTurn
  page.cameraProblem = null
  const video = root.querySelector('video')
  if (video === null) return
  try {
    const opened = await openCamera(video, facing, {
      isLooking: () => page.panel === 'none' && session.isReady,
      onCode: (code) => scan(session, code),
      onReading: (works) => {
        page.cameraProblem = works ? null : 'cameraUnread'
        draw()
      },
    })
    // It was stopped, or another one was asked for, while this one opened.
    if (turn !== cameraTurn) return opened.stop()
    camera = opened
    page.hasTorch = camera.torch !== undefined
  } catch (error) {
    if (turn === cameraTurn) page.cameraProblem = problemOf(error)
  }
  draw()
}

const problemOf = (error: unknown): NonNullable<Page['cameraProblem']> => {
  if (!window.isSecureContext) return 'cameraNeedsHttps'
  return error instanceof DOMException && error.name === 'NotAllowedError' ? 'cameraForbidden' : 'cameraMissing'
}

function stopCamera(): void {
  cameraTurn++
  camera?.stop()
  camera = null
  page.hasTorch = page.torch = false
}

function leaveCamera(): void {
  if (!page.isScanning) return
  stopCamera()
  void awake?.release()
  Object.assign(page, { isScanning: false, panels: [] })
}

function stayAwake(): void {
  navigator.wakeLock?.request('screen').then(
    (lock) => {
      awake = lock
    },
    () => {},
  )
}

/** The camera sleeps with the screen. */
function followScreen(): void {
  if (!page.isScanning) return
  if (document.hidden) stopCamera()
  else {
    stayAwake()
    void startCamera()
  }
}

const actions: Actions = {
  start() {
    allowSound()
    page.isScanning = true
    draw()
    void startCamera()
    stayAwake()
    // It was open when the page was closed.
    if (session.walkIn !== null && session.walkIn.event_id === session.link?.event_id && canRegister(session)) {
      actions.open('walkIn')
    }
  },
  stop() {
    leaveCamera()
    page.panels = []
    draw()
  },
  open(panel, payer) {
    if (page.panel === 'none') opener = document.activeElement?.id ?? ''
    page.panels = [...page.panels, panel]
    if (panel === 'search') page.query = ''
    if (panel === 'walkIn' && page.walkIn?.isUnfinished !== true) page.walkIn = newWalkIn(payer)
    draw()
    if (field === null) root.querySelector<HTMLElement>('.panel .close')?.focus()
  },
  back() {
    if (page.panel === 'walkIn') page.walkIn?.leave()
    page.panels = page.panels.slice(0, -1)
    draw()
    if (field === null)
      document.querySelector<HTMLElement>(page.panel === 'none' ? `#${opener || 'door'}` : '.panel .close')?.focus()
  },
  search(text) {
    page.query = text
    draw()
  },
  look(ticket) {
    page.person = ticket.attendee_id
    actions.open('person')
    root.querySelector<HTMLElement>('.panel .thumb button')?.focus()
  },
  pay(ticket) {
    session.dismiss()
    actions.open('walkIn', ticket)
  },
  undo() {
    const ticket = session.list.of(session.last?.attendeeId ?? null)
    if (session.isLastLatest || ticket === undefined) void undoLast(session)
    else actions.look(ticket)
  },
  takeBack(ticket, taken) {
    page.panels = page.panels.filter((panel) => panel === 'search')
    void takeBack(session, taken, ticket.attendee_id, ticket.name)
    root.querySelector<HTMLElement>('.panel .close')?.focus()
  },
  async pick(ticket, from) {
    // Of a group that is called up by name the next one is looked for at once.
    const former = page.panels
    if (page.panel === from) page.panels = former.filter((panel) => panel === 'search')
    const isJudged = await scan(session, ticket)
    if (!isJudged && page.isScanning) page.panels = former.includes(from) ? former : [from]
    draw()
    return isJudged
  },
  code(text) {
    page.panels = page.panels.filter((panel) => panel === 'search')
    void scan(session, text)
  },
  setUp(device, keep) {
    page.panels = []
    holdLink(null)
    void session.setUp(device, keep)
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
    if (link !== null) use(link)
    return link !== null
  },
  async forget() {
    stopCamera()
    holdLink(null)
    await session.forget()
    location.reload()
  },
  async goOnHere(link = session.link) {
    // The list takes a moment to be read, and a second tap would begin a second session.
    if (isEntering) return
    isEntering = true
    try {
      await holdDoor({ steal: true })
      page.walkIn = null
      await enter(link)
    } finally {
      isEntering = false
    }
  },
}

let isEntering = false

function use(link: DoorLink): void {
  // Another tab has the door, and what is kept of it.
  if (session.stopped === 'otherTab') return void actions.goOnHere(link)
  if (session.settings === null) holdLink(link)
  // It goes on with what is kept of it, by the new key.
  if (session.link?.key !== link.key) page.walkIn = null
  session.use(link)
  void sync(session)
}

function newWalkIn(payer?: Ticket): WalkIn | null {
  if (session.link === null || (payer === undefined && !session.may('events:read'))) return null
  const close = () => {
    if (page.panel === 'walkIn') actions.back()
  }
  const walkIn = new WalkIn(session, session.link, (guest) => actions.pick(guest, 'walkIn'), close)
  walkIn.begin(payer)
  return walkIn
}

/** From a verdict as from a panel. */
function goBack(): void {
  if (session.shown !== null) session.dismiss()
  else if (page.panel !== 'none') actions.back()
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
    void scan(session, typed)
    typed = ''
  })
}

/** Two tabs would upload and undo each other's scans: one of them has the queue, and the other offers to go on with it. A page that
 * is reloaded may have it for a moment more. @returns whether this one has it. */
const holdDoor = (how: LockOptions = { signal: AbortSignal.timeout(1_000) }): Promise<boolean> =>
  new Promise((isHeld) => {
    const hold = () => {
      isHeld(true)
      return new Promise(() => {})
    }
    navigator.locks.request(nameOfStore, how, hold).catch(() => {
      isHeld(false)
      session?.close()
    })
  })

/** With what this device kept, and the link that it is opened with. */
async function enter(opened: DoorLink | null): Promise<void> {
  session = await Session.open(opened, draw)
  // In the address until now: a reload must find it. Another one may have been opened meanwhile.
  const link = takeLink() ?? opened ?? session.link
  if (link === null) draw()
  else use(link)
}

async function main(): Promise<void> {
  await speak(navigator.languages)
  render(starting(), root)
  if (await renew().catch(() => false)) {
    location.reload()
    return
  }
  // Not earlier: in Chromium no new version takes over while a web worker of the page is starting.
  prepareReader()
  if (!(await holdDoor())) {
    await new Promise<void>((goOn) =>
      render(
        waiting(() => goOn()),
        root,
      ),
    )
    await holdDoor({ steal: true })
  }
  await enter(parseLink(location.hash) ?? heldLink())
  void navigator.serviceWorker?.ready.then(() => {
    page.hasFiles = true
    draw()
  })
  listenToScanner()
  window.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') goBack()
  })
  keepWayBack(
    () => page.isScanning,
    () => page.panels.length,
    goBack,
  )
  document.addEventListener('visibilitychange', followScreen)
  window.addEventListener('online', () => void retry(session))
  window.addEventListener('offline', draw)
  window.addEventListener('hashchange', () => {
    const opened = takeLink()
    if (opened !== null) use(opened)
  })
}

void main()
