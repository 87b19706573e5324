// Draws the session. Says everything in words, signs and colour, so that none of them is needed.

import { html, nothing, type TemplateResult } from 'lit-html'
import type { CheckIn, Conflict } from './api.ts'
import type { Ticket } from './offline-rules.ts'
import { clockTolerance, type Session } from './session.ts'
import { wordsOf } from './words.ts'

/** What only the page knows. */
export type Page = {
  panel: 'none' | 'search' | 'code' | 'more'
  isScanning: boolean
  query: string
  cameraProblem: string | null
  hasTorch: boolean
  torch: boolean
}
export type Actions = {
  start(): void
  stop(): void
  open(panel: Page['panel']): void
  search(text: string): void
  pick(ticket: Ticket): void
  code(text: string): void
  torch(): void
  turnCamera(): void
  paste(text: string): boolean
  forget(): void
}

const time = (at: string): string => new Date(at).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
const moment = (at: string): string =>
  new Date(at).toDateString() === new Date().toDateString()
    ? time(at)
    : `${new Date(at).toLocaleDateString([], { day: 'numeric', month: 'short' })}, ${time(at)}`
const plural = (count: number, one: string): string => `${count} ${one}${count === 1 ? '' : 's'}`

export function view(session: Session, page: Page, actions: Actions): TemplateResult {
  if (session.link === null) return withoutLink(session, actions)
  if (session.stopped !== null) return stopped(session, actions)
  if (session.door === null) return opening(session)
  return page.isScanning ? scanning(session, page, actions) : choosing(session, actions)
}

const withoutLink = (session: Session, { paste }: Actions) => html`
  <main class="card">
    <h1>Door</h1>
    <p>Open the link of the door, or scan its QR code with the camera of this telephone. The organiser gets it with
      <code>usher door-link</code>.</p>
    ${pasting(paste)}
    ${session.waitingElsewhere > 0 ? html`<p class="notice">${plural(session.waitingElsewhere, 'scan')} of this device wait for the link of their event.</p>` : nothing}
  </main>`

const pasting = (paste: Actions['paste']) => {
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const field = (event.target as HTMLFormElement).elements.namedItem('link') as HTMLInputElement
    field.setCustomValidity(paste(field.value) ? '' : 'This is not the link of a door.')
    field.reportValidity()
  }
  return html`
    <form @submit=${submit}>
      <label>Link <input name="link" type="password" autocomplete="off" @input=${(event: Event) => (event.target as HTMLInputElement).setCustomValidity('')}></label>
      <button>Open</button>
    </form>`
}

const opening = (session: Session) => html`
  <main class="card">
    <h1>Door</h1>
    <p role="status">${session.online ? 'Reading the list of tickets …' : 'No network. The list of tickets is needed once; trying again.'}</p>
  </main>`

const stopped = (session: Session, { paste, forget }: Actions) => html`
  <main class="card">
    <h1>Door closed</h1>
    <p class="notice" role="alert">${session.stopped}</p>
    <p>${session.waiting.length === 0 ? 'No scan waits on this device.' : html`${plural(session.waiting.length, 'scan')} on this device are kept, and uploaded when a new link of this event is opened here.`}</p>
    ${pasting(paste)}
    ${forgetting(session, forget)}
  </main>`

const choosing = (session: Session, { start, forget }: Actions) => {
  const { door } = session
  if (door === null) return html``
  const points = door.points.filter(({ status }) => status === 'active')
  const choose = (event: Event) => session.choose((event.target as HTMLSelectElement).value || null, session.direction)
  return html`
    <main class="card">
      <p class="over">Door</p>
      <h1>${door.event.name}</h1>
      ${door.event.status === 'cancelled' ? html`<p class="notice" role="alert">This event was cancelled: no ticket admits.</p>` : nothing}
      ${
        points.length === 0
          ? nothing
          : html`<label>Check-in point
              <select @change=${choose}>
                <option value="" ?selected=${session.pointId === null}>The event as such</option>
                ${points.map(({ id, name }) => html`<option value=${id} ?selected=${session.pointId === id}>${name}</option>`)}
              </select></label>
              <fieldset>
                <legend>People</legend>
                ${(['entry', 'exit'] as const).map((direction) => html`<label class="choice"><input type="radio" name="direction" .checked=${session.direction === direction} @change=${() => session.choose(session.pointId, direction)}> ${direction === 'entry' ? 'come in' : 'leave'}</label>`)}
              </fieldset>`
      }
      ${counter(session)}
      <label class="choice"><input type="checkbox" .checked=${session.keep} @change=${(event: Event) => session.setKeep((event.target as HTMLInputElement).checked)}>
        Keep key and list on this device, so that it works without a network after a restart</label>
      <button class="primary" @click=${start}>Start scanning</button>
      ${health(session)}
      ${forgetting(session, forget)}
    </main>`
}

const counter = ({ counts }: Session) => html`
  <p class="counter"><strong>${counts.arrived}</strong> of ${counts.expected} arrived</p>`

/** What the person at the door has to know of this device. */
const health = (session: Session) => {
  const { waiting, listAt, clock } = session
  const age = listAt === null ? '' : ` of ${moment(listAt)}`
  const minutes = Math.round(Math.abs(clock) / 60_000)
  return html`
    <div class="health" role="status">
      ${
        session.online
          ? html`<p>● Online · ${plural(session.list.size, 'ticket')}${age}</p>`
          : html`<p class="notice">○ Offline: verdicts come from the list${age}</p>`
      }
      ${waiting.length > 0 ? html`<p>↑ ${plural(waiting.length, 'scan')} to upload</p>` : nothing}
      ${Math.abs(clock) > clockTolerance ? html`<p class="notice">The clock of this device is ${plural(minutes, 'minute')} ${clock > 0 ? 'slow' : 'fast'}; times are corrected.</p>` : nothing}
      ${session.storageFull ? html`<p class="notice">The storage of this device is full.</p>` : nothing}
      ${session.conflicts.length > 0 ? html`<p class="notice">⚠ ${plural(session.conflicts.length, 'conflict')}: see “More”</p>` : nothing}
    </div>`
}

const scanning = (session: Session, page: Page, actions: Actions) => {
  const point = session.door?.points.find(({ id }) => id === session.pointId)
  return html`
    <main class="scanning" ?inert=${session.shown !== null}>
      <header>
        <div><h1>${point?.name ?? session.door?.event.name}</h1>${session.direction === 'exit' ? html`<p>People leave</p>` : nothing}</div>
        ${counter(session)}
      </header>
      <div class="camera">
        <video muted playsinline aria-label="Camera"></video>
        ${page.cameraProblem === null ? nothing : html`<p class="notice" role="alert">${page.cameraProblem}</p>`}
      </div>
      ${health(session)}
      <nav aria-label="Tools">
        <button @click=${() => actions.open('search')}>Search</button>
        <button @click=${() => actions.open('code')}>Code</button>
        ${page.hasTorch ? html`<button aria-pressed=${page.torch} @click=${actions.torch}>Torch</button>` : nothing}
        <button @click=${actions.turnCamera}>Turn camera</button>
        <button ?disabled=${session.last === null} @click=${() => session.undoLast()}>Undo</button>
        <button @click=${() => actions.open('more')}>More</button>
      </nav>
      ${page.panel === 'none' ? nothing : panel(session, page, actions)}
    </main>
    ${session.shown === null ? nothing : verdict(session)}`
}

const panel = (session: Session, page: Page, actions: Actions) => html`
  <section class="panel" aria-label=${page.panel}>
    <button class="close" @click=${() => actions.open('none')}>Close</button>
    ${page.panel === 'search' ? searching(session, page, actions) : page.panel === 'code' ? typing(actions) : more(session, actions)}
  </section>`

const searching = (session: Session, { query }: Page, { search, pick }: Actions) => html`
  <label>Name or company <input type="search" autocomplete="off" .value=${query} @input=${(event: Event) => search((event.target as HTMLInputElement).value)}></label>
  <ul class="found">
    ${session.list.search(query, 30).map(
      (ticket) => html`
        <li><button @click=${() => pick(ticket)}><strong>${ticket.name}</strong>
          ${[ticket.company, session.ticketTypes.get(ticket.ticket_type_id)].filter(Boolean).join(' · ')}</button></li>`,
    )}
  </ul>`

const typing = ({ code }: Actions) => {
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    code(((event.target as HTMLFormElement).elements.namedItem('code') as HTMLInputElement).value)
  }
  return html`
    <form @submit=${submit}>
      <label>Code of the ticket <input name="code" autocomplete="off" autocapitalize="characters" spellcheck="false" required></label>
      <button class="primary">Check in</button>
    </form>`
}

const more = (session: Session, { stop, forget }: Actions) => html`
  <h2>Let in by mistake</h2>
  ${session.conflicts.length === 0 ? html`<p>None.</p>` : html`<ul class="conflicts">${session.conflicts.map((each) => conflict(session, each))}</ul>`}
  ${
    session.refusedScans.length === 0
      ? nothing
      : html`<h2>Not accepted by the server</h2>
        <ul class="conflicts">${session.refusedScans.map(({ name, code, scanned_at, refused }) => html`<li>${name ?? code}, ${moment(scanned_at)}: ${refused}</li>`)}</ul>`
  }
  <button @click=${stop}>Change the check-in point</button>
  ${forgetting(session, forget)}`

const conflict = (session: Session, { check_in, earlier }: Conflict) => {
  const scan = ({ scanned_at, check_in_point_id, device }: CheckIn) => {
    const point = session.door?.points.find(({ id }) => id === check_in_point_id)?.name
    return [moment(scanned_at), point, device].filter(Boolean).join(', ')
  }
  return html`
    <li><strong>${check_in.attendee?.name ?? 'Unknown ticket'}</strong>: ${wordsOf(check_in.reason ?? 'not_found').headline.toLowerCase()}.
      Let in at ${scan(check_in)}${earlier === null ? '' : `; before at ${scan(earlier)}`}.</li>`
}

const forgetting = (session: Session, forget: () => void) => html`
  <details>
    <summary>Forget this device</summary>
    <p>Wipes the key, the list and the queue${session.waiting.length > 0 ? html`. <strong>${plural(session.waiting.length, 'scan')} not uploaded yet would be lost</strong>` : nothing}.</p>
    <button class="danger" @click=${forget}>Wipe</button>
  </details>`

const verdict = (session: Session) => {
  const { shown } = session
  if (shown === null) return nothing
  const { tone, sign, headline, advice } = wordsOf(shown.reason)
  return html`
    <section class="verdict ${tone}" role="alertdialog" aria-modal="true" aria-label=${headline} data-reason=${shown.reason}>
      <p class="sign" aria-hidden="true">${sign}</p>
      <h2>${headline}</h2>
      ${shown.name === null ? nothing : html`<p class="name">${shown.name}</p>`}
      ${shown.detail === null ? nothing : html`<p>${shown.detail}</p>`}
      ${shown.since === null ? nothing : html`<p>since ${moment(shown.since)}</p>`}
      ${advice === '' ? nothing : html`<p>${advice}</p>`}
      ${shown.offline ? html`<p class="by-list">Offline: by the list${session.listAt === null ? '' : ` of ${moment(session.listAt)}`}</p>` : nothing}
      <div class="answers">
        ${tone === 'welcome' && session.last !== null ? html`<button @click=${() => session.undoLast()}>Undo</button>` : nothing}
        <button class="next" @click=${() => session.dismiss()}>Next</button>
      </div>
    </section>`
}
