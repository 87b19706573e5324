// HTML of the list at /mail: readable from 320 pixels up, in light and dark, without a script. Loads nothing but its icon, and
// escapes everything that comes from an e-mail.

import type { Email } from 'postal-mime'
import { type Html, html } from '../../guests/html.ts'
import { paletteOf, propertiesOf } from '../../guests/look.ts'

export type ListedEmail = { name: string; email: Email }

/** @param total number of e-mails in the folder, of which `emails` are the newest. */
export function mailPreviewList(emails: ListedEmail[], total: number): string {
  return html`<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>Mail preview</title>
    <link rel="icon" href="/docs/favicon.svg" type="image/svg+xml">
    <style>${styles}
    </style>
  </head>
  <body>
    <main>
      <div class="head">
        <h1>Mail preview</h1>
        <a href="/mail">Reload</a>
      </div>
      <p class="soft">No mail service is configured: e-mails are written to files, not sent. To send them, set <code>SMTP_URL</code>
      or <code>POSTMARK_SERVER_TOKEN</code>.</p>
      ${emails.length === 0 ? nothingYet : table(emails, total)}
    </main>
  </body>
</html>`.toString()
}

const nothingYet = html`<div class="card">
        <h2>No e-mails yet</h2>
        <p>Register a person for a published event; <a href="/docs#/Orders/register_attendee">the documentation</a> lets you
        try it with your API key:</p>
        <p><code>POST /api/v1/events/{event_id}/registrations</code></p>
        <p>The e-mails that follow are listed here. Reload this page to see them.</p>
      </div>`

// Without roles, which validators refuse: browsers keep those of a table, however it is displayed.
const table = (emails: ListedEmail[], total: number) => html`<p class="soft">${counted(emails.length, total)}</p>
      <table>
        <thead>
          <tr>
            <th scope="col">Subject</th>
            <th scope="col">To</th>
            <th scope="col">Written</th>
            <th scope="col">File</th>
          </tr>
        </thead>
        <tbody>${emails.map(row)}
        </tbody>
      </table>`

const row = ({ name, email }: ListedEmail) => html`
          <tr>
            <th scope="row"><a href="/mail/${encodeURIComponent(name)}" dir="auto">${email.subject?.trim() || '(no subject)'}</a></th>
            <td>${email.to?.flatMap((to) => to.group ?? to).map(recipient)}</td>
            <td class="time">${written(email.date)}</td>
            <td><a href="/mail/${encodeURIComponent(name)}/source">Download .eml</a></td>
          </tr>`

const recipient = ({ name, address }: { name: string; address: string }) =>
  html`<div>${name.trim() !== '' && html`<bdi>${name}</bdi>`}<span class="soft">${address}</span></div>`

function counted(here: number, total: number): string {
  if (total > here)
    return `The newest ${here} of ${total} e-mails. All of them are in the folder mail in USHER_DATA_DIR.`
  return total === 1 ? 'One e-mail.' : `${total} e-mails, newest first.`
}

const minute = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' })

function written(date: string | undefined): Html | string {
  const time = new Date(date ?? '')
  if (Number.isNaN(time.getTime())) return date ?? ''
  return html`<time datetime="${time.toISOString()}">${minute.format(time)} UTC</time>`
}

const styles = html`
      ${propertiesOf(paletteOf(null))}
      * { box-sizing: border-box; }
      body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
      main { max-width: 72rem; margin: 0 auto; padding: 2.5rem 1.5rem 4rem; }
      .head { display: flex; flex-wrap: wrap; align-items: baseline; justify-content: space-between; gap: 0 1.5rem; }
      h1 { margin: 0; font-size: 2rem; line-height: 1.25; }
      h2 { margin: 0 0 0.5rem; font-size: 1.25rem; }
      p { margin: 0.5rem 0; max-width: 52rem; }
      a { color: var(--link); text-underline-offset: 0.15em; }
      a:hover { text-decoration-thickness: 2px; }
      a:focus-visible { outline: 2px solid var(--link); outline-offset: 3px; border-radius: 3px; }
      code { font-size: 0.9em; }
      .soft { color: var(--soft); }
      .card, table { margin-top: 1.5rem; border: 1px solid var(--line); border-radius: 12px; background: var(--card); }
      .card { padding: 1.5rem; }
      table { width: 100%; border-spacing: 0; table-layout: fixed; }
      th, td { padding: 0.85rem 1.25rem; text-align: start; vertical-align: top; }
      thead th { color: var(--soft); font-size: 0.875rem; font-weight: 600; }
      tbody th { font-weight: 600; }
      tbody :is(th, td) { border-top: 1px solid var(--line); }
      thead th:nth-child(3) { width: 14rem; }
      thead th:nth-child(4) { width: 11rem; }
      bdi, td .soft { display: block; text-align: left; }
      td .soft, .time { font-size: 0.9375rem; }
      @media (max-width: 52rem) {
        main { padding: 1.5rem 1rem 3rem; }
        table, tbody { display: block; }
        table { border: 0; background: none; }
        thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
        tbody tr { display: block; margin-bottom: 0.75rem; padding: 1rem; border: 1px solid var(--line); border-radius: 12px; background: var(--card); }
        tbody :is(th, td) { display: block; padding: 0; border: 0; }
        tbody td { padding-top: 0.5rem; }
      }`
