// What staff are asked of this device, and how it forgets.

import { html, nothing, type TemplateResult } from 'lit-html'
import type { Actions } from './page.ts'
import type { Session } from './session.ts'
import { counted, words } from './words/index.ts'

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
      <p class="hint" id="device-hint">${words.deviceHint}</p>
      <label class="choice"><input name="keep" type="checkbox" aria-describedby="keep-hint" .checked=${session.settings?.keep ?? true}> ${words.keep}</label>
      <p class="hint" id="keep-hint">${words.keepHint}</p>
      <button class="primary">${words.goOn}</button>
    </form>`
}

export const forgetting = (session: Session, forget: () => void): TemplateResult => html`
  <details>
    <summary>${words.forget}</summary>
    <p>${words.forgetHint} ${session.waiting.length > 0 ? html`<strong>${counted(words.wouldBeLost, session.waiting.length)}</strong>` : nothing}</p>
    <button class="danger" @click=${forget}>${words.wipe}</button>
  </details>`
