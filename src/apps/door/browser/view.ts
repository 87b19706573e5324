// Draws the session. Says everything in words, signs and colour, so that none of them is needed.

import { html, nothing, svg, type TemplateResult } from 'lit-html'
import { admits, type Direction, type Ticket } from './offline-rules.ts'
import type { Actions, Page } from './page.ts'
import { forgetting, panel, settingUp } from './panels.ts'
import { clockTolerance, undoLast } from './scan.ts'
import type { Session } from './session.ts'
import { answersOf, type Shown, signOf, toneOf } from './tones.ts'
import { payable, whyNoPayment } from './walk-in-panel.ts'
import { counted, dayAndTime, fill, moment, number, sayTakenBack, words } from './words/index.ts'

export function view(session: Session, page: Page, actions: Actions): TemplateResult {
  if (session.link === null) return withoutLink(session, actions)
  if (session.stopped !== null) return stopped(session, actions)
  if (session.settings === null) return asking(session, actions)
  if (session.door === null) return opening(session)
  return page.isScanning ? scanning(session, page, actions) : choosing(session, page, actions)
}

const withoutLink = (session: Session, { paste }: Actions) => html`
  <main class="card">
    <h1>${words.door}</h1>
    <p>${words.openLink}</p>
    ${pasting(paste)}
    ${session.waitingElsewhere > 0 ? html`<p class="notice">${counted(words.waitElsewhere, session.waitingElsewhere)}</p>` : nothing}
  </main>`

const pasting = (paste: Actions['paste']) => {
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const field = (event.target as HTMLFormElement).elements.namedItem('link') as HTMLInputElement
    field.setCustomValidity(paste(field.value) ? '' : words.notALink)
    field.reportValidity()
  }
  return html`
    <form @submit=${submit}>
      <label>${words.link} <input name="link" type="password" autocomplete="off" @input=${(event: Event) => (event.target as HTMLInputElement).setCustomValidity('')}></label>
      <button>${words.open}</button>
    </form>`
}

/** Once on each device, while the list is read. */
const asking = (session: Session, actions: Actions) => html`
  <main class="card">
    <p class="over">${session.door?.event.name ?? words.door}</p>
    <h1>${words.thisDevice}</h1>
    ${settingUp(session, actions)}
  </main>`

/** Before there is a session. */
export const starting = () => announcing(words.checking)

/** The same, where another tab has the door. */
export const waiting = (goOn: () => void) => html`
  <main class="card">
    <h1>${words.door}</h1>
    ${goingOn(goOn)}
  </main>`

const goingOn = (goOn: () => void) => html`
  <p class="notice" role="alert">${words.otherTab}</p>
  <button class="main" @click=${() => goOn()}>${words.goOnHere}</button>`

const opening = (session: Session) => announcing(session.isOnline ? words.reading : words.noNetworkYet)

const announcing = (why: string) => html`
  <main class="card">
    <h1>${words.door}</h1>
    <p role="status">${why}</p>
  </main>`

const stopped = (session: Session, { paste, forget, goOnHere }: Actions) => {
  const { stopped: why, waiting } = session
  return html`
    <main class="card">
      <h1>${words.closed}</h1>
      ${why === 'otherTab' ? goingOn(goOnHere) : html`<p class="notice" role="alert">${typeof why === 'string' ? words[why] : why?.message}</p>`}
      <p>${waiting.length === 0 ? words.noScanWaits : counted(words.scansWait, waiting.length)}</p>
      ${pasting(paste)}
      ${why === 'otherTab' ? nothing : forgetting(session, forget)}
    </main>`
}

const choosing = (session: Session, page: Page, actions: Actions) => {
  const { door, settings } = session
  if (door === null || settings === null) return html``
  const points = door.points.filter(({ status }) => status === 'active')
  const choose = (event: Event) => session.choose((event.target as HTMLSelectElement).value || null)
  const hasChoice = points.length > 0 || session.pointLost || session.place.direction === 'exit'
  const hasPanel = page.panel !== 'none'
  return html`
    <main class="start" ?inert=${hasPanel}>
      <header>
        <h1>${door.event.name}</h1>
        ${counter(session)}
      </header>
      <div class="card">
        ${session.startsOnly === null ? nothing : html`<p class="notice">${fill(words.startsOnly, { moment: dayAndTime(session.startsOnly) })}</p>`}
        ${session.pointLost ? html`<p class="notice" role="alert">${words.pointLost}</p>` : nothing}
        ${session.mustChoose && !session.pointLost ? html`<p class="notice" role="status">${words.choosePoint}</p>` : nothing}
        ${
          !hasChoice
            ? nothing
            : html`<label>${words.point}
                <select @change=${choose}>
                  ${session.mustChoose ? html`<option selected disabled>—</option>` : nothing}
                  <option value="" ?selected=${session.pointId === null && !session.mustChoose}>${words.wholeEvent}</option>
                  ${points.map(({ id, name }) => html`<option value=${id} ?selected=${session.pointId === id}>${name}</option>`)}
                </select></label>
                <fieldset class="directions">
                  <legend>${words.people}</legend>
                  ${(['entry', 'exit'] as const).map((direction) => html`<label class="choice"><input type="radio" name="direction" .checked=${session.place.direction === direction} @change=${() => session.turn(direction)}> ${words[direction]}</label>`)}
                </fieldset>`
        }
        <div class="device">
          <p><strong>${settings.device}</strong><br>${savedOr(session, page)}</p>
          <button id="open-device" @click=${() => actions.open('device')}>${words.change}</button>
        </div>
        ${health(session, actions)}
        ${forgetting(session, actions.forget)}
      </div>
      <div class="thumb"><button class="main" ?disabled=${session.mustChoose} @click=${actions.start}>${words.start}</button></div>
    </main>
    ${hasPanel ? panel(session, page, actions) : nothing}`
}

/** Whether the door opens again after a reload, without a network. */
const savedOr = ({ saved }: Session, { hasFiles }: Page): string => {
  if (saved === 'saved' && hasFiles) return `✓ ${words.saved}`
  return saved === 'saved' || saved === 'saving' ? words.saving : `⚠ ${words.notSaved}`
}

/** Who came, or who is inside where people come and go. */
const counter = ({ counts, point }: Session) => html`
  <p class="counter"><strong>${number(counts.arrived)}</strong> <span>${fill(point?.admission === 're_entry' ? words.inside : words.arrived, { expected: number(counts.expected) })}</span></p>`

/** What the person at the door has to know of this device. */
const health = (session: Session, { open }: Actions) => {
  const { door, waiting, openConflicts } = session
  const { list_at, clock } = session.known
  const told: Record<string, string | undefined> = words.eventIs
  const event = told[door?.event.status ?? '']
  const list = list_at === null ? nothing : html` · ${fill(words.listOf, { moment: moment(list_at) })}`
  const minutes = Math.round(Math.abs(clock) / 60_000)
  return html`
    ${door?.event.livemode === false ? html`<p class="notice">${words.isTest}</p>` : nothing}
    ${event === undefined ? nothing : html`<p class="notice" role="alert">${event}</p>`}
    <div class="health" role="status">
      ${session.isOnline ? html`<p>● ${words.online}${list}</p>` : html`<p class="notice">○ ${words.offline}${list}</p>`}
      ${waiting.length > 0 ? html`<p>↑ ${counted(words.toUpload, waiting.length)}</p>` : nothing}
      ${openConflicts.length > 0 ? html`<button class="notice" id="open-conflicts" @click=${() => open('more')}>⚠ ${counted(words.conflicts, openConflicts.length)}</button>` : nothing}
      ${Math.abs(clock) > clockTolerance ? html`<p class="notice">${counted(clock > 0 ? words.clockSlow : words.clockFast, minutes)}</p>` : nothing}
      ${session.store.isFull ? html`<p class="notice">${words.storageFull}</p>` : nothing}
    </div>`
}

// Signs on buttons that have a word beside them.
const paths = {
  search: 'M10.5 4a6.5 6.5 0 1 1 0 13a6.5 6.5 0 1 1 0-13M15.5 15.5L21 21',
  code: 'M3 6h18v12H3zM6.5 10h1M10.5 10h1M14.5 10h3M7 14h10',
  torch: 'M8 3h8v4l-2 3v11h-4V10L8 7zM8 6h8',
  turn: 'M4 11a8 8 0 0 1 14-4l2 2M20 4v5h-5M20 13a8 8 0 0 1-14 4l-2-2M4 20v-5h5',
  undo: 'M9 5L4 10l5 5M4 10h10a6 6 0 0 1 0 12h-3',
  more: 'M4 7h16M4 12h16M4 17h16',
  walkIn: 'M10 4a4 4 0 1 1 0 8a4 4 0 1 1 0-8M3 21c0-4 3-6 7-6s7 2 7 6M19 6v6M16 9h6',
}

const icon = (name: keyof typeof paths): TemplateResult => html`
  <svg viewBox="0 0 24 24" aria-hidden="true">${svg`<path d=${paths[name]} />`}</svg>`

const directionSign: Record<Direction, string> = { entry: '→', exit: '←' }

export const canRegister = (session: Session): boolean =>
  session.may('attendees:write') && session.place.direction === 'entry'

const scanning = (session: Session, page: Page, actions: Actions) => {
  const { shown } = session
  const { direction } = session.place
  const hasPanel = page.panel !== 'none'
  const tool = (name: 'code' | 'more') =>
    html`<button id="open-${name}" @click=${() => actions.open(name)}>${icon(name)}<span>${words[name]}</span></button>`
  return html`
    <main class="scanning ${direction}" ?inert=${shown !== null || hasPanel}>
      <header>
        <div>
          <h1>${session.point?.name ?? session.door?.event.name}</h1>
          <p class="direction">${directionSign[direction]} ${words[direction]}</p>
        </div>
        ${counter(session)}
      </header>
      <div class="camera">
        <video muted playsinline aria-label=${words.camera}></video>
        ${page.cameraProblem === null ? html`<div class="frame" aria-hidden="true"></div>` : nothing}
        ${session.takenBack === null ? nothing : html`<p class="taken-back">${sayTakenBack(session.takenBack)}</p>`}
        ${session.deciding ? html`<p class="checking">${words.checking}</p>` : nothing}
        ${page.cameraProblem === null ? nothing : html`<p class="notice" role="alert">${fill(words.noCamera, { problem: words[page.cameraProblem] })}</p>`}
      </div>
      ${health(session, actions)}
      <nav class="thumb" aria-label=${words.tools}>
        <div class="tools">
          ${tool('code')}
          ${page.hasTorch ? html`<button aria-pressed=${page.torch} @click=${actions.torch}>${icon('torch')}<span>${words.torch}</span></button>` : nothing}
          <button @click=${actions.turnCamera}>${icon('turn')}<span>${words.camera}</span></button>
          <button id="open-undo" ?disabled=${session.last === null} @click=${actions.undo}>${icon('undo')}<span>${words.undo}</span></button>
          ${tool('more')}
        </div>
        <div class="first">
          <button class="main" id="open-search" @click=${() => actions.open('search')}>${icon('search')}<span>${words.search}</span></button>
          ${
            canRegister(session)
              ? html`<button id="open-walkIn" @click=${() => actions.open('walkIn')}>${icon('walkIn')}<span>${words.walkIn}</span></button>`
              : nothing
          }
        </div>
      </nav>
    </main>
    ${hasPanel ? panel(session, page, actions) : nothing}
    ${shown === null ? nothing : verdict(session, shown, actions)}`
}

/** Where and since when the ticket was used; what else there is to know. */
const circumstances = (session: Session, { reason, since, where, leftAt, ticket }: Shown): string[] => {
  const { point, startsOnly } = session
  const hasLeft = leftAt !== null
  const isForGood =
    reason === 'goodbye' ? (point?.admission ?? 're_entry') !== 're_entry' : reason === 'already_checked_in' && hasLeft
  const known = [
    since === null
      ? ''
      : fill(where === null ? words.since : words.sinceAt, { moment: moment(since), where: where ?? '' }),
    hasLeft ? fill(words.wentOut, { moment: moment(leftAt) }) : '',
    isForGood ? (point?.admission === 'once_per_day' ? words.noReEntryToday : words.noReEntry) : '',
    reason === 'unpaid' && payable(session, ticket) ? `${words.verdicts.unpaid[1]} ${whyNoPayment(session)}` : '',
    reason === 'welcome' && startsOnly !== null ? fill(words.startsOnly, { moment: dayAndTime(startsOnly) }) : '',
  ].filter(Boolean)
  if (known.length > 0) return known
  return [words.verdicts[reason][1], ...elsewhere(session, reason, ticket)].filter(Boolean)
}

/** When or where the ticket is admitted that is not here and now. */
const elsewhere = ({ door, point }: Session, reason: Shown['reason'], ticket: Ticket | undefined): string[] => {
  if (reason === 'point_closed') {
    const { opens_at = null, closes_at = null } = point ?? {}
    return [
      opens_at === null ? '' : fill(words.openFrom, { moment: moment(opens_at) }),
      closes_at === null ? '' : fill(words.openUntil, { moment: moment(closes_at) }),
    ]
  }
  if (reason !== 'not_admitted_here' || ticket === undefined) return []
  const points = door?.points.filter((each) => each.status === 'active' && admits(each, ticket)) ?? []
  return points.length === 0 ? [] : [fill(words.admittedAt, { points: points.map(({ name }) => name).join(', ') })]
}

const decidedBy = ({ known }: Session, { offline }: Shown): string =>
  offline && known.list_at !== null ? fill(words.byList, { moment: moment(known.list_at) }) : ''

const verdict = (session: Session, shown: Shown, actions: Actions) => {
  const { reason, name, company, type, ticket } = shown
  const tone = toneOf(reason)
  const [headline] = words.verdicts[reason]
  const length = name?.length ?? 0
  const decided = decidedBy(session, shown)
  return html`
    <section class="verdict ${tone}" role="alertdialog" aria-modal="true" aria-labelledby="headline" data-reason=${reason}>
      <div class="message">
        <p class="sign" aria-hidden="true">${signOf(reason)}</p>
        <h2 id="headline" class=${headline.length > 12 ? 'long' : ''}>${headline}</h2>
        ${type === null ? nothing : html`<p class="chip">${type}</p>`}
        ${name === null ? nothing : html`<p class="name ${length > 60 ? 'longest' : length > 24 ? 'long' : ''}">${name}</p>`}
        ${company === null ? nothing : html`<p class="company">${company}</p>`}
        ${answersOf(shown).map((each) => html`<p class="answer">${each}</p>`)}
        ${circumstances(session, shown).map((each) => html`<p>${each}</p>`)}
        ${decided === '' ? nothing : html`<p class="by-list">${decided}</p>`}
      </div>
      <div class="answers">
        ${reason === 'unpaid' && ticket !== undefined && payable(session, ticket) && session.isOnline ? html`<button @click=${() => actions.pay(ticket)}>${words.pay}</button>` : nothing}
        ${tone === 'welcome' && session.last !== null ? html`<button @click=${() => undoLast(session)}>${words.undo}</button>` : nothing}
        <button class="next" @click=${() => session.dismiss()}>${words.next}</button>
      </div>
    </section>`
}

/** The verdict in one breath, for a screen reader. */
export const spoken = (session: Session, shown: Shown): string =>
  [
    words.verdicts[shown.reason][0],
    shown.name,
    shown.type,
    shown.company,
    ...answersOf(shown),
    ...circumstances(session, shown),
    decidedBy(session, shown),
  ]
    .filter(Boolean)
    .map((part) => String(part).replace(/\.$/, ''))
    .join('. ')
