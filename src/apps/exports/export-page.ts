// The page of a link to an export, at /exports/TOKEN: for whoever has the link, without a key. Opening it spends nothing, for previews and
// crawlers open links; its button sends a POST, which is the file. Must log no token.

import { type Request, type Response, Router } from 'express'
import { hashOf } from '../../gateway/api-key.ts'
import type { Gateway } from '../../gateway/calls.ts'
import { openExport } from '../../gateway/exports.ts'
import type { Principal } from '../../gateway/principals.ts'
import type { Source } from '../../gateway/tokens.ts'
import { html } from '../../guests/html.ts'
import { paletteOf } from '../../guests/look.ts'
import { wordsOf } from '../../guests/words/index.ts'
import { sendCsv } from '../../http/csv.ts'
import { createLookups } from '../../http/middleware/secret-lookups.ts'
import type { Operation } from '../../operations/operation.ts'
import { allowOnly, isToken, notFound, type SecretPageParts, secretPages, sendPage } from '../secret-page.ts'
import { head, onlySaying, type SentPage, stillPage } from '../tickets/ticket-page-html.ts'

/** As `api.get_export_link` returns it. */
type Link = {
  id: string
  operation: string
  arguments: Record<string, unknown>
  source: Source
  expires_at: string
  organisation: { name: string; accent_colour: string | null; is_test: boolean }
  event: string | null
  principal: Principal
}
type Found = Link & { declared: Operation }

export type ExportPageParts = SecretPageParts & { operations: readonly Operation[]; gateway: Gateway }

export function exportPageRouter({ operations, dataApi, tokens, gateway, countFailure }: ExportPageParts): Router {
  const lookups = createLookups<Found>(
    {
      isWellFormed: isToken,
      async resolve(token) {
        if (!isToken(token)) throw notFound()
        const args = { token_hash: hashOf(token) }
        const link = (await dataApi.rpc('get_export_link', args, await tokens.forGateway())) as Link | null
        const declared = operations.find(({ name, csv }) => name === link?.operation && csv !== undefined)
        // Without its scope the key could not make the link.
        if (!link || !declared?.scope || !link.principal.scopes.includes(declared.scope)) throw notFound()
        return { ...link, declared }
      },
    },
    countFailure,
  )
  const find = async (req: Request, res: Response) => {
    const link = await lookups.resolve(req.params.token as string, req, res)
    res.locals.operation = link.operation
    return link
  }

  const router = Router()
  router.get('/exports/:token', async (req, res) => {
    sendPage(res, exportPage(await find(req, res)))
  })
  router.post('/exports/:token', async (req, res) => {
    const { declared, principal, source, id, arguments: args } = await find(req, res)
    // People open it in a spreadsheet, and Excel takes it for another encoding without the mark.
    await sendCsv(res, await openExport(gateway, declared, principal, source, args, { id }), true)
  })
  router.all('/exports/:token', allowOnly('GET, HEAD, POST', 'A link to an export is opened, or its file downloaded.'))
  // A key that is no longer valid leaves a link that is none.
  return secretPages('/exports', router, noExportPage)
}

/** A form with one button, without a script. It is in English, as the API is. */
function exportPage({ declared: { title }, organisation, event, expires_at }: Found): SentPage {
  const words = wordsOf('en')
  const main = html`<main class="ticket">
      ${head({ organisation: organisation.name, event: title, test: organisation.is_test ? words.test : undefined })}
      <dl>
        ${event !== null && html`<div><dt>Event</dt><dd dir="auto">${event}</dd></div>`}
        <div><dt>File</dt><dd>CSV, for a spreadsheet</dd></div>
        <div><dt>The link expires at</dt><dd>${expires_at.slice(11, 16)} UTC</dd></div>
      </dl>
      <form class="actions" method="post"><button class="main">Download</button></form>
      <p class="contact">The file contains personal data. Share it only with people who need it.</p>
    </main>`
  return stillPage(title, main, words, paletteOf(organisation.accent_colour))
}

/** For a link that leads to no file, the same for each, and for one whose file cannot be sent now. */
function noExportPage(kind: 'unknown' | 'busy'): SentPage {
  const [title, sentence] =
    kind === 'unknown'
      ? ['No such export', 'This link has expired or is not valid. Ask for a new one.']
      : ['Not available right now', 'Usher cannot send the file right now. Go back and try again in a minute.']
  return stillPage(title, onlySaying(title, sentence), wordsOf('en'))
}
