// The panel in which somebody without a ticket is registered.

import { html, nothing, type TemplateResult } from 'lit-html'
import type { TicketType } from './api.ts'
import type { Ticket } from './offline-rules.ts'
import type { Session } from './session.ts'
import type { WalkIn } from './walk-in.ts'
import { fill, money, words } from './words/index.ts'

export function registering(session: Session, walkIn: WalkIn | null): TemplateResult {
  if (!session.may('events:read')) return html`<p class="notice">${words.noPrices}</p>`
  if (walkIn === null) return html``
  if (walkIn.guest !== null) return entering(session, walkIn, walkIn.guest)
  if (walkIn.again !== null) {
    return html`
      <p class="notice" role="alert">${session.isOnline ? words.noAnswer : words.walkInOffline}</p>
      <button class="primary" @click=${walkIn.again}>${words.tryAgain}</button>`
  }
  if (walkIn.order !== null) return paying(walkIn, walkIn.order)
  if (walkIn.types === null) return html`<p role="status">${walkIn.problem ?? words.checking}</p>`
  if (walkIn.types.length === 0) return html`<p class="notice">${words.nothingOnSale}</p>`
  return form(session, walkIn, walkIn.types)
}

const form = (session: Session, walkIn: WalkIn, types: readonly TicketType[]) => {
  const canSell = ({ price }: TicketType) => price === 0 || session.may('orders:write')
  const first = types.find(canSell)
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const fields = new FormData(event.target as HTMLFormElement)
    const text = (name: string) => String(fields.get(name) ?? '').trim()
    const type = types.find(({ id }) => id === text('type'))
    if (type !== undefined) walkIn.register({ type, name: text('name'), email: text('email') })
  }
  return html`
    <form class="walk-in" @submit=${submit}>
      <label>${words.name} <input name="name" required maxlength="200" pattern=".*\\S.*" autocomplete="off" autocapitalize="words"></label>
      <label>${words.email} <input name="email" type="email" maxlength="254" autocomplete="off" aria-describedby="email-hint"></label>
      <p class="hint" id="email-hint">${words.emailHint}</p>
      <fieldset>
        <legend>${words.ticket}</legend>
        ${types.map(
          (type) => html`
            <label class="choice"><input type="radio" name="type" value=${type.id} required ?checked=${type === first} ?disabled=${!canSell(type)}>
              <span>${type.name}</span> <strong>${type.price === 0 ? words.free : money(type.price, type.currency)}</strong></label>`,
        )}
      </fieldset>
      ${types.every(canSell) ? nothing : html`<p class="hint">${words.noMoney}</p>`}
      ${walkIn.problem === null ? nothing : html`<p class="notice" role="alert">${walkIn.problem}</p>`}
      <button class="primary" ?disabled=${walkIn.busy || first === undefined}>${words.register}</button>
    </form>`
}

const paying = (walkIn: WalkIn, order: NonNullable<WalkIn['order']>) => {
  const price = money(order.amount_due, order.currency)
  return html`
    <p class="cash">${fill(words.takeCash, { price, name: order.attendees[0]?.name ?? '' })}</p>
    ${walkIn.problem === null ? nothing : html`<p class="notice" role="alert">${walkIn.problem}</p>`}
    <button ?disabled=${walkIn.busy} @click=${() => walkIn.drop(order)}>${words.dropOrder}</button>
    <div class="thumb">
      <button class="primary" ?disabled=${walkIn.busy} @click=${() => walkIn.takeCash(order)}>${fill(words.cashReceived, { price })}</button>
    </div>`
}

const entering = (session: Session, walkIn: WalkIn, guest: Ticket) => html`
  <p class="cash">${guest.name}</p>
  ${session.pointLost ? html`<p class="notice" role="alert">${words.pointLost}</p>` : nothing}
  <div class="thumb">
    <button class="primary" ?disabled=${session.deciding} @click=${() => walkIn.letIn(guest)}>${words.letIn}</button>
  </div>`
