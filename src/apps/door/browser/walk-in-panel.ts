// The panel in which somebody without a ticket is registered, and in which a guest pays.

import { html, nothing, type TemplateResult } from 'lit-html'
import { KeyRefused, type Refusal, type TicketType } from './api.ts'
import type { Ticket } from './offline-rules.ts'
import type { Session } from './session.ts'
import type { Order } from './store.ts'
import type { WalkIn } from './walk-in.ts'
import { fill, money, number, words } from './words/index.ts'

/** The server says what is due only where the link may take money. */
export const payable = ({ place }: Session, ticket: Ticket | undefined): boolean =>
  place.direction === 'entry' && ticket?.status === 'awaiting_payment' && Boolean(ticket.order)

export const whyNoPayment = ({ isOnline }: Session): string => (isOnline ? '' : words.payOffline)

/** Of somebody on the list. */
export const isPayment = (walkIn: WalkIn | null): boolean => walkIn?.order?.isListed === true

export function registering(session: Session, walkIn: WalkIn | null): TemplateResult {
  if (walkIn === null) return html`<p class="notice">${words.noPrices}</p>`
  if (walkIn.guest !== null) return entering(session, walkIn, walkIn.guest)
  if (walkIn.unanswered) {
    return html`
      <p class="notice" role="alert">${session.isOnline ? words.noAnswer : walkIn.step?.does === 'pay' ? words.payOffline : words.walkInOffline}</p>
      <button class="main" @click=${() => walkIn.again()}>${words.tryAgain}</button>`
  }
  if (walkIn.order !== null) return paying(session, walkIn, walkIn.order)
  if (walkIn.types === null) return refusal(walkIn.problem) ?? html`<p role="status">${words.checking}</p>`
  if (walkIn.types.length === 0) return html`<p class="notice">${words.nothingOnSale}</p>`
  return form(session, walkIn, walkIn.types)
}

const form = (session: Session, walkIn: WalkIn, types: readonly TicketType[]) => {
  const canSell = ({ price }: TicketType) => price === 0 || session.may('orders:write')
  const { typed } = walkIn
  const chosen = types.find((type) => type.id === typed.type && canSell(type)) ?? types.find(canSell)
  const read = (form: HTMLFormElement) => {
    const fields = new FormData(form)
    const text = (name: string) => String(fields.get(name) ?? '')
    return { name: text('name'), email: text('email'), type: text('type') }
  }
  const keep = (event: Event) => walkIn.type(read(event.currentTarget as HTMLFormElement))
  const submit = (event: SubmitEvent) => {
    event.preventDefault()
    const filled = read(event.target as HTMLFormElement)
    const type = types.find(({ id }) => id === filled.type)
    if (type !== undefined) walkIn.register(type, filled)
  }
  return html`
    <form class="walk-in" @submit=${submit} @input=${keep}>
      <label>${words.name} <input name="name" data-field required maxlength="200" pattern=".*\\S.*" autocomplete="off" autocapitalize="words" .value=${typed.name}></label>
      <label>${words.email} <input name="email" type="email" maxlength="254" autocomplete="off" aria-describedby="email-hint" .value=${typed.email}></label>
      <p class="help" id="email-hint">${words.emailHint}</p>
      <fieldset>
        <legend>${words.ticket}</legend>
        ${types.map(
          (type) => html`
            <label class="choice"><input type="radio" name="type" value=${type.id} required .checked=${type === chosen} ?disabled=${!canSell(type)}>
              <span>${type.name}</span> <strong>${type.price === 0 ? words.free : money(type.price, type.currency)}</strong></label>`,
        )}
      </fieldset>
      ${types.every(canSell) ? nothing : html`<p class="help">${words.noMoney}</p>`}
      <div class="thumb">
        ${refusal(walkIn.problem)}
        <button class="main" ?disabled=${walkIn.busy || chosen === undefined}>${words.register}</button>
      </div>
    </form>`
}

/** In the words of the page, or in the server's where it has none. */
const refusal = (problem: Refusal | null): TemplateResult | null => {
  if (problem === null) return null
  const known: Record<string, string> = words.refusals
  const isKey = problem instanceof KeyRefused && problem.code !== 'missing_scope'
  const text = isKey ? words.keyRefused : (known[`${problem.code} ${problem.param}`] ?? known[problem.code])
  return html`<p class="notice" role="alert">${text ?? html`${words.notAccepted}.<br><small lang="en">${problem.message}</small>`}</p>`
}

const paying = (session: Session, walkIn: WalkIn, order: Order) => {
  const price = money(order.amount_due, order.currency)
  const size = [...session.list.tickets].filter((ticket) => ticket.order?.id === order.id).length
  return html`
    <p class="cash">${fill(words.takeMoney, { price, name: order.attendees[0]?.name ?? '' })}</p>
    ${size > 1 ? html`<p class="notice">${fill(words.wholeOrder, { n: number(size) })}</p>` : nothing}
    ${refusal(walkIn.problem)}
    ${order.isListed ? nothing : html`<button ?disabled=${walkIn.busy} @click=${() => walkIn.drop(order)}>${words.dropOrder}</button>`}
    <div class="thumb">
      <button class="main" ?disabled=${walkIn.busy} @click=${() => walkIn.pay(order, 'cash')}>${fill(words.paidInCash, { price })}</button>
      <button ?disabled=${walkIn.busy} @click=${() => walkIn.pay(order, 'card')}>${fill(words.paidByCard, { price })}</button>
    </div>`
}

const entering = (session: Session, walkIn: WalkIn, guest: Ticket) => html`
  <p class="cash">${guest.name}</p>
  ${session.pointLost ? html`<p class="notice" role="alert">${words.pointLost}</p>` : nothing}
  <div class="thumb">
    <button class="main" ?disabled=${session.deciding} @click=${() => walkIn.letIn(guest)}>${words.letIn}</button>
  </div>`
