// The page on which a person confirms what a client asked for over MCP. Whoever has its link is signed in here first, and only the button
// changes anything. It is served where clients do not sign in by OAuth, too.

import { type Request, type Response, Router } from 'express'
import type { Logger } from 'pino'
import type { DataApi } from '../../gateway/data-api.ts'
import { gatewayRpc } from '../../gateway/gateway-rpc.ts'
import type { Principal } from '../../gateway/principals.ts'
import type { Tokens } from '../../gateway/tokens.ts'
import { createAddresses } from '../../http/addresses.ts'
import { confirmPath } from '../../http/mcp/confirmations.ts'
import { noteRoute } from '../../http/middleware/log-requests.ts'
import type { SecretLookups } from '../../http/middleware/secret-lookups.ts'
import { type Confirmation, confirmationPage, unknownPage } from './confirm-html.ts'
import { confirmWords } from './confirm-words.ts'
import { bodyOf, form, isUuid, keyTaker, send, wordsFor } from './interaction.ts'
import { addressesOfPage, answerError, beginPage, limitTo, stepsPerMinute } from './oauth.ts'
import { loginPage } from './pages.ts'
import { createSignIns } from './sign-in.ts'

export type ConfirmParts = {
  dataApi: DataApi
  tokens: Tokens
  log: Logger
  publicUrl: string | undefined
  /** Of keys. */
  lookups: SecretLookups<Principal>
}

export function confirmRouter({ dataApi, tokens, log, publicUrl, lookups }: ConfirmParts): Router {
  const rpc = gatewayRpc(dataApi, tokens)
  const signIns = createSignIns(rpc, tokens.secretFor('forms of sign-ins'), addressesOfPage)
  const takeKey = keyTaker({ signIns, lookups, addressesOf: addressesOfPage })

  /** A form is of one request: what was shown of another does not count. */
  const purposeOf = ({ params }: Request) => `confirm ${params.id}`

  async function show(req: Request, res: Response, error?: string): Promise<void> {
    const [words, said] = [wordsFor(req), confirmWords((languages) => req.acceptsLanguages(languages))]
    const signIn = await signIns.current(req)
    const formToken = signIns.formToken(req, res, addressesOfPage(req), purposeOf(req))
    const status = error === undefined ? 200 : 400
    // Before anybody is signed in, the page does not tell whether there is such a request.
    if (signIn === undefined) return send(res, loginPage(words, { lead: said.signInFirst, error, formToken }), status)
    const asked = isUuid(req.params.id)
      ? ((await rpc('get_confirmation', {
          secret_hash: signIns.hash(req),
          confirmation_id: req.params.id,
        })) as Confirmation | null)
      : null
    if (asked === null) return send(res, unknownPage(words, said, { error, formToken }), 404)
    send(res, confirmationPage(words, said, asked, signIn, { error, formToken }), status)
  }

  const router = Router({ caseSensitive: true, strict: true })
  router.use(confirmPath, beginPage(createAddresses(publicUrl)), limitTo(stepsPerMinute, log))
  router
    .route(`${confirmPath}/:id`)
    .all((req, res, next) => {
      noteRoute(req, res, `${confirmPath}/{id}`)
      next()
    })
    .get((req, res) => show(req, res))
    .post(form, async (req, res) => {
      if (!signIns.isOwnForm(req, purposeOf(req))) return show(req, res, wordsFor(req).formOutdated)
      const { action } = bodyOf(req)
      if (action === 'confirm' || action === 'refuse') {
        // What came of it, the page says.
        if (isUuid(req.params.id)) {
          await rpc('decide_confirmation', {
            secret_hash: signIns.hash(req),
            confirmation_id: req.params.id,
            confirmed: action === 'confirm',
          })
        }
      } else if (action === 'sign_out') await signIns.end(req, res, addressesOfPage(req))
      else {
        const refused = await takeKey(req, res)
        if (refused !== undefined) return show(req, res, refused)
      }
      res.redirect(303, `${addressesOfPage(req).path}${confirmPath}/${req.params.id}`)
    })
  router.use(confirmPath, answerError)
  return router
}
