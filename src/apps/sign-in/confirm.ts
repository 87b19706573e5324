// The page on which a person confirms what a client asked for over MCP. Whoever has its link is signed in here first, and only the button
// changes anything. It is served where clients do not sign in by OAuth, too.

import { type Request, type Response, Router } from 'express'
import { gatewayRpc } from '../../gateway/gateway-rpc.ts'
import { createAddresses } from '../../http/addresses.ts'
import { confirmPath } from '../../http/mcp/confirmations.ts'
import { isUuid, noteRoute } from '../../http/middleware/log-requests.ts'
import { type Confirmation, confirmationPage, unknownPage } from './confirm-html.ts'
import { formOutdated, send } from './page.ts'
import {
  addressesOfPage,
  answerError,
  beginPage,
  bodyOf,
  form,
  limitTo,
  type PageParts,
  stepsPerMinute,
} from './page-requests.ts'
import { loginPage } from './pages.ts'
import { createSignIns } from './sign-in.ts'

export function confirmRouter(parts: PageParts): Router {
  const rpc = gatewayRpc(parts.dataApi, parts.tokens)
  const signIns = createSignIns(parts)

  /** A form is of one request: what was shown of another does not count. */
  const purposeOf = ({ params }: Request) => `confirm ${params.id}`

  /** @returns null for one of another organisation, and for one that was never there. */
  async function ask<T>(fn: 'get_confirmation' | 'decide_confirmation', req: Request, more = {}): Promise<T | null> {
    const { id } = req.params
    if (!isUuid(id)) return null
    return (await rpc(fn, { secret_hash: signIns.hash(req), confirmation_id: id, ...more })) as T | null
  }

  async function show(req: Request, res: Response, error?: string): Promise<void> {
    const signIn = await signIns.current(req)
    const shown = { error, formToken: signIns.formToken(req, res, purposeOf(req)) }
    const status = error === undefined ? 200 : 400
    // Before anybody is signed in, the page does not tell whether there is such a request.
    if (signIn === undefined) {
      const lead = 'An assistant asks for your confirmation. Sign in to see what it wants to do.'
      return send(res, loginPage(shown, lead), status)
    }
    const asked = await ask<Confirmation>('get_confirmation', req)
    if (asked === null) return send(res, unknownPage(shown), 404)
    send(res, confirmationPage(asked, signIn, shown), status)
  }

  const router = Router({ caseSensitive: true, strict: true })
  router.use(confirmPath, beginPage(createAddresses(parts.publicUrl)), limitTo(stepsPerMinute, parts.log))
  router
    .route(`${confirmPath}/:id`)
    .all((req, res, next) => {
      noteRoute(req, res, `${confirmPath}/{id}`)
      next()
    })
    .get((req, res) => show(req, res))
    .post(form, async (req, res) => {
      if (!signIns.isOwnForm(req, purposeOf(req))) return show(req, res, formOutdated)
      const { action } = bodyOf(req)
      if (action === 'confirm' || action === 'refuse') {
        // What came of it, the page says.
        await ask('decide_confirmation', req, { confirmed: action === 'confirm' })
      } else {
        const refused = await signIns.change(req, res)
        if (refused !== undefined) return show(req, res, refused)
      }
      res.redirect(303, `${addressesOfPage(req).path}${confirmPath}/${req.params.id}`)
    })
  router.use(confirmPath, answerError)
  return router
}
