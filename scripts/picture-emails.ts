// Takes pictures of an e-mail of each kind, or of one: `npm run picture KIND`. As the courier composes them, as wide as a telephone.

import { join } from 'node:path'
import { composeEmail } from '../src/courier/emails/compose.ts'
import { pendingEmails } from '../test/courier/pending-emails.ts'
import { openBrowser } from './support/browser.ts'

const only = process.argv.slice(2)
const browser = await openBrowser()
try {
  const page = await browser.newPage({ viewport: { width: 420, height: 700 } })
  for (const [kind, pending] of Object.entries(pendingEmails())) {
    if (only.length > 0 && !only.includes(kind)) continue
    const { html, attachments } = await composeEmail(pending, 'tickets@usher.example')
    const shown = attachments.reduce(
      (text, { cid, contentType, content }) =>
        text.replace(`cid:${cid}`, `data:${contentType};base64,${content.toString('base64')}`),
      html,
    )
    await page.setContent(shown)
    const path = join(import.meta.dirname, `../docs/guides/pictures/emails/${kind}.png`)
    await page.screenshot({ path, fullPage: true })
  }
} finally {
  await browser.close()
}
