// What opens over the camera: search, a person, a code by hand, and the rest, such as what staff are asked of this device.

import { html, nothing, type TemplateResult } from 'lit-html'
import type { CheckIn, Conflict } from './api.ts'
import type { Ticket } from './offline-rules.ts'
import type { Actions, Page } from './page.ts'
import { undoable } from './scan.ts'
import type { Session } from './session.ts'
import { answersOf, signOf } from './tones.ts'
import { isPayment, payable, registering, whyNoPayment } from './walk-in-panel.ts'
import { counted, fill, moment, momentAndSeconds, money, number, sayTakenBack, words } from './words/index.ts'

/** More than can be read at a door. */
const mostFound = 30

export const panel = (session: Session, page: Page, actions: Actions): TemplateResult => {
  const [title, content] = contentOf(session, page, actions)
  return html`
    <section class="panel" role="dialog" aria-modal="true" aria-labelledby="panel-title" ?inert=${session.shown !== null}>
      <header>
        <h2 id="panel-title">${title}</h2>
        <button class="close" @click=${actions.back}>${page.panel === 'person' && page.panels.includes('search') ? words.back : words.close}</button>
      </header>
      ${content}
    </section>`
}

function contentOf(session: Session, page: Page, actions: Actions): [string, TemplateResult] {
  if (page.panel === 'search') return [words.search, searching(session, page, actions)]
  if (page.panel === 'person') {
    const ticket = session.list.of(page.person)
    return [ticket?.name ?? words.unknownTicket, ticket === undefined ? html`` : person(session, ticket, actions)]
  }
  if (page.panel === 'code') return [words.code, typing(actions)]
  if (page.panel === 'device') return [words.thisDevice, settingUp(session, actions)]
  if (page.panel === 'walkIn')
    return [isPayment(page.walkIn) ? words.pay : words.registerSomebody, registering(session, page.walkIn)]
  return [words.more, more(session, actions)]
}

/** As Usher makes codes, typed by a scanner behind what was there. */
const scannedAtEnd = /(TEST-)?[0-9A-HJKMNP-TV-Z]{16}$/i

const searching = (session: Session, { query }: Page, { search, look, code }: Actions) => {
  const { found, total } = session.list.search(query, mostFound)
  const near = total === 0 ? session.list.nearest(query, 3) : []
  const none = near.length === 0 ? words.noneFound : `${words.noneFound} ${words.similar}`
  const enter = (event: SubmitEvent) => {
    event.preventDefault()
    const [only] = found
    const [scanned] = scannedAtEnd.exec(query.trim()) ?? []
    if (total === 1 && only !== undefined) look(only)
    else if (total === 0 && scanned !== undefined) {
      search('')
      code(scanned)
    }
  }
  return html`
    ${session.takenBack === null ? nothing : html`<p class="notice">${sayTakenBack(session.takenBack)}</p>`}
    <form @submit=${enter}>
      <label>${words.nameOrCompany} <input type="search" data-field autocomplete="off" .value=${query} @input=${(event: Event) => search((event.target as HTMLInputElement).value)}></label>
    </form>
    <p class="help" role="status">${query.trim().length > 1 && total === 0 ? none : total > found.length ? fill(words.found, { shown: number(found.length), total: number(total) }) : nothing}</p>
    <ul class="found">
      ${[...found, ...near].map(
        (ticket) => html`
          <li><button @click=${() => look(ticket)}>
            <span><strong>${ticket.name}</strong> ${aboutOf(session, ticket)}</span>
            ${standingOf(session, ticket)}
          </button></li>`,
      )}
    </ul>`
}

const aboutOf = (session: Session, ticket: Ticket): string =>
  [session.typeOf(ticket), ticket.company].filter(Boolean).join(' · ')

const pointName = (session: Session, pointId: string | null): string | undefined =>
  session.door?.points.find(({ id }) => id === pointId)?.name

/** Paid or not, in or not, and where: for the eye that looks down a list. */
const standingOf = (session: Session, ticket: Ticket) => {
  if (ticket.status === 'cancelled') return html`<span class="standing stop">✕ ${words.verdicts.cancelled[0]}</span>`
  if (ticket.status === 'awaiting_payment')
    return html`<span class="standing stop">✕ ${words.verdicts.unpaid[0]}</span>`
  const latest = session.entriesOf(ticket).reduce<{ at: string; text: string } | null>((last, entry) => {
    const at = entry.exited_at ?? entry.scanned_at
    if (last !== null && Date.parse(last.at) > Date.parse(at)) return last
    const text = fill(entry.exited_at === null ? words.insideSince : words.leftAt, { moment: moment(at) })
    return { at, text: [text, pointName(session, entry.check_in_point_id)].filter(Boolean).join(', ') }
  }, null)
  return latest === null ? nothing : html`<span class="standing caution">${latest.text}</span>`
}

const person = (session: Session, ticket: Ticket, { pick, pay, takeBack }: Actions) => {
  const scan = undoable(session, ticket)
  const { reason } = session.look(ticket)
  const standing = standingOf(session, ticket)
  const due = payable(session, ticket) ? ticket.order : null
  return html`
    <div class="person">
      <p class="chip">${session.typeOf(ticket)}</p>
      <p>${[ticket.company, ticket.reference].filter(Boolean).join(' · ')}</p>
      ${answersOf(ticket).map((each) => html`<p>${each}</p>`)}
      <p>${standing === nothing ? words.notYet : standing}</p>
      ${reason === null ? nothing : html`<p class="notice">${signOf(reason)} ${words.verdicts[reason].filter(Boolean).join('. ')}</p>`}
      ${due ? html`<p>${whyNoPayment(session)}</p>` : nothing}
    </div>
    <div class="thumb">
      ${due && session.isOnline ? html`<button class="main" @click=${() => pay(ticket)}>${words.pay}: ${money(due.amount_due, due.currency)}</button>` : nothing}
      <button class=${reason === null ? 'main' : ''} @click=${() => pick(ticket, 'person')}>
        ${reason !== null ? words.askAnyway : session.place.direction === 'entry' ? words.letIn : words.letOut}</button>
      ${scan === null ? nothing : html`<button @click=${() => takeBack(ticket, scan)}>${scan.direction === 'exit' ? words.undo : words.undoCheckIn}</button>`}
    </div>`
}

const typing = ({ code }: Actions) => {
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    code(((event.target as HTMLFormElement).elements.namedItem('code') as HTMLInputElement).value)
  }
  return html`
    <form @submit=${submit}>
      <label>${words.codeOfTicket} <input name="code" data-field autocomplete="off" autocapitalize="characters" spellcheck="false" required></label>
      <button class="main">${words.checkIn}</button>
    </form>`
}

const more = (session: Session, { open, stop, forget }: Actions) => {
  const { openConflicts, conflicts, refusedScans, log } = session
  const aside = conflicts.length - openConflicts.length
  return html`
    <button @click=${stop}>${words.changePoint}</button>
    <h3>${words.letInWrongly}</h3>
    ${openConflicts.length === 0 ? html`<p>${words.none}</p>` : html`<ul class="conflicts">${openConflicts.toSorted(inTime).map((each) => conflict(session, each))}</ul>`}
    ${aside > 0 ? html`<p class="help">${counted(words.putAsideCount, aside)}</p>` : nothing}
    ${
      refusedScans.length === 0
        ? nothing
        : html`<h3>${words.notAccepted}</h3>
          <ul class="refused">${refusedScans.map(({ name, code, scanned_at, refused }) => html`<li>${name ?? code}, ${moment(scanned_at)}: ${refused}</li>`)}</ul>`
    }
    ${
      log.length === 0
        ? nothing
        : html`<h3>${words.lastScans}</h3>
          <ul class="log">${log.map(({ at, name, reason }) => html`<li><span>${moment(at)}</span> ${signOf(reason)} ${words.verdicts[reason][0]}${name === null ? '' : ` · ${name}`}</li>`)}</ul>`
    }
    <h3>${words.thisDevice}</h3>
    <p>${session.settings?.device}</p>
    <button @click=${() => open('device')}>${words.change}</button>
    ${forgetting(session, forget)}`
}

const inTime = (a: Conflict, b: Conflict) => Date.parse(a.check_in.scanned_at) - Date.parse(b.check_in.scanned_at)

const conflict = (session: Session, { id, check_in, earlier }: Conflict) => {
  const scan = ({ scanned_at, check_in_point_id, device }: CheckIn) =>
    [momentAndSeconds(scanned_at), pointName(session, check_in_point_id), device].filter(Boolean).join(', ')
  const [reason] = words.verdicts[check_in.reason ?? 'not_found']
  const values = { reason, scan: scan(check_in), earlier: earlier === null ? '' : scan(earlier) }
  return html`
    <li><strong>${check_in.attendee?.name ?? words.unknownTicket}</strong>
      <p>${fill(earlier === null ? words.conflict : words.conflictEarlier, values)}</p>
      <button @click=${() => session.putAside(id)}>${words.putAside}</button></li>`
}

export const settingUp = (session: Session, { setUp }: Actions): TemplateResult => {
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const { elements } = event.target as HTMLFormElement
    const field = (name: string) => elements.namedItem(name) as HTMLInputElement
    setUp(field('device').value, field('keep').checked)
  }
  return html`
    <form @submit=${submit}>
      <label>${words.deviceName} <input name="device" maxlength="60" autocomplete="off" aria-describedby="device-hint" .value=${session.settings?.device ?? ''}></label>
      <p class="help" id="device-hint">${words.deviceHint}</p>
      <label class="choice"><input name="keep" type="checkbox" aria-describedby="keep-hint" .checked=${session.settings?.keep ?? true}> ${words.keep}</label>
      <p class="help" id="keep-hint">${words.keepHint}</p>
      <button class="main">${words.goOn}</button>
    </form>`
}

export const forgetting = (session: Session, forget: () => void): TemplateResult => html`
  <details>
    <summary>${words.forget}</summary>
    <p>${words.forgetHint} ${session.waiting.length > 0 ? html`<strong>${counted(words.wouldBeLost, session.waiting.length)}</strong>` : nothing}</p>
    <button class="final" @click=${forget}>${words.wipe}</button>
  </details>`
