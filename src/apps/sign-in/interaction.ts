// The pages between a client's request and its answer, and the page of what was allowed. A key is taken here and on the page of a
// confirmation, and nowhere else; what a person allows becomes a grant, of which the client only gets tokens.

import { type Request, type Response, Router } from 'express'
import type { Provider } from 'oidc-provider'
import { ApiError } from '../../gateway/api-error.ts'
import type { GatewayRpc } from '../../gateway/gateway-rpc.ts'
import { oauthPath } from '../../http/addresses.ts'
import { isUuid, noteRoute } from '../../http/middleware/log-requests.ts'
import { scopes } from '../../operations/operation.ts'
import { account } from './adapter.ts'
import { returnsTo } from './client-metadata.ts'
import { failurePage, formOutdated, send } from './page.ts'
import { addressesOfPage, bodyOf, form } from './page-requests.ts'
import {
  type Consent,
  clientLoginPage,
  consentPage,
  daysOffered,
  grantsPage,
  loginPage,
  nameOfClient,
} from './pages.ts'
import type { ProviderOf } from './provider.ts'
import type { SignIn, SignIns } from './sign-in.ts'

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>

/** The request of a client that this browser is in the middle of. */
type Step = { provider: Provider; interaction: Interaction; req: Request; res: Response }

export function interactionRouter(rpc: GatewayRpc, signIns: SignIns, providerOf: ProviderOf): Router {
  /** Answers itself where there is no such request. */
  async function stepOf(req: Request, res: Response): Promise<Step | undefined> {
    noteRoute(req, res, `${oauthPath}/sign-in/{uid}`)
    const provider = await providerOf(addressesOfPage(req))
    // Throws where the cookie is missing, not signed by Usher, or of something that is over.
    const interaction = await provider.interactionDetails(req, res).catch(unlessUnavailable)
    if (interaction?.uid === req.params.uid) return { provider, interaction: interaction as Interaction, req, res }
    const expired = 'This sign-in has expired, or began in another browser. Go back to the client and start again.'
    return void send(res, failurePage(expired), 400)
  }

  /** Undefined where the person has to sign in: the key may have ended while the page was open. */
  async function signInFor({ interaction, req }: Step): Promise<SignIn | undefined> {
    const signIn = await signIns.current(req)
    return signIn && hasToSignInAgain(interaction, signIn) ? undefined : signIn
  }

  /** The page that the person is at, with what went wrong at it. */
  async function show(step: Step, error?: string): Promise<void> {
    const { interaction, req, res } = step
    const signIn = await signInFor(step)
    const shown = { error, formToken: signIns.formToken(req, res, interaction.uid) }
    const page =
      signIn === undefined
        ? clientLoginPage((await clientOf(step)).client, shown)
        : consentPage(await consentOf(step, signIn), shown)
    send(res, page, error === undefined ? 200 : 400)
  }

  async function allow(step: Step): Promise<void> {
    const { interaction, req } = step
    const signIn = await signInFor(step)
    if (signIn === undefined) return show(step)
    const consent = await consentOf(step, signIn)
    const ticked = [bodyOf(req).scope].flat()
    const chosen = consent.asked.filter((scope) => ticked.includes(scope))
    if (chosen.length === 0 && consent.before.length === 0) return show(step, 'Tick at least one box, or refuse.')
    const grant = (await rpc('allow_client', {
      secret_hash: signIns.hash(req),
      client_id: interaction.params.client_id,
      name: consent.client,
      returns_to: consent.returnsTo.host,
      // Letter by letter as the client asked, for the library looks it up so: the audience of its tokens is ours all the same.
      resource: interaction.params.resource ?? addressesOfPage(req).resource,
      scopes: [...chosen, ...consent.before],
      days: daysOffered.find((days) => String(days) === bodyOf(req).days) ?? Math.max(...daysOffered),
    }).catch(unlessTooMany)) as { id: string } | undefined
    if (grant === undefined)
      return show(step, 'Too many clients use this key. Revoke one of them at the link below, or use another key.')
    await finish(step, { login: { accountId: account, remember: false }, consent: { grantId: grant.id } })
  }

  const router = Router()

  router.get('/sign-in/:uid', async (req, res) => {
    const step = await stepOf(req, res)
    if (step !== undefined) await show(step)
  })
  router.post('/sign-in/:uid', form, async (req, res) => {
    const step = await stepOf(req, res)
    if (step === undefined) return
    if (!signIns.isOwnForm(req, step.interaction.uid)) return show(step, formOutdated)
    const { action } = bodyOf(req)
    if (action === 'allow') return allow(step)
    if (action === 'deny') return finish(step, { error: 'access_denied', error_description: 'the person refused' })
    const refused = await signIns.change(req, res)
    if (refused !== undefined) return show(step, refused)
    res.redirect(303, `${addressesOfPage(req).path}${oauthPath}/sign-in/${step.interaction.uid}`)
  })

  async function showGrants(req: Request, res: Response, error?: string): Promise<void> {
    const signIn = await signIns.current(req)
    const shown = { error, formToken: signIns.formToken(req, res, 'grants') }
    const page = signIn === undefined ? loginPage(shown) : grantsPage(signIn, shown)
    send(res, page, error === undefined ? 200 : 400)
  }
  router.get('/grants', async (req, res) => {
    noteRoute(req, res, `${oauthPath}/grants`)
    await showGrants(req, res)
  })
  router.post('/grants', form, async (req, res) => {
    noteRoute(req, res, `${oauthPath}/grants`)
    if (!signIns.isOwnForm(req, 'grants')) return showGrants(req, res, formOutdated)
    const { action, grant_id } = bodyOf(req)
    if (action === 'end') {
      if (isUuid(grant_id)) await rpc('end_grant', { secret_hash: signIns.hash(req), grant_id })
    } else {
      const refused = await signIns.change(req, res)
      if (refused !== undefined) return showGrants(req, res, refused)
    }
    res.redirect(303, `${addressesOfPage(req).path}${oauthPath}/grants`)
  })
  return router
}

async function clientOf({ provider, interaction }: Step) {
  const { client_id: id = '', redirect_uri: redirectUri = '' } = interaction.params as Record<string, string>
  const place = returnsTo(redirectUri)
  const registered = await provider.Client.find(id)
  return { id, client: nameOfClient(registered?.clientName, place.host), returnsTo: place, redirectUri }
}

async function consentOf(step: Step, signIn: SignIn): Promise<Consent> {
  const { id, ...client } = await clientOf(step)
  const wanted = String(step.interaction.params.scope ?? '').split(' ')
  const requested = scopes.filter((scope) => wanted.includes(scope) && signIn.api_key.scopes.includes(scope))
  const grant = signIn.grants.find(
    (each) => each.is_of_this_browser && each.client_id === id && each.returns_to === client.returnsTo.host,
  )
  const allowed = grant?.scopes ?? []
  return {
    ...client,
    describedAt: id.startsWith('https://') ? id : undefined,
    signIn,
    asked: requested.filter((scope) => !allowed.includes(scope)),
    before: requested.filter((scope) => allowed.includes(scope)),
    isExtended: grant !== undefined,
  }
}

const finish = ({ provider, req, res }: Step, result: Parameters<Provider['interactionFinished']>[2]) =>
  provider.interactionFinished(req, res, result, { mergeWithLastSubmission: false })

/** A client may ask for a person who signs in now (`prompt=login`). */
const hasToSignInAgain = ({ params, iat }: Interaction, { created_at }: SignIn): boolean =>
  String(params.prompt ?? '')
    .split(' ')
    .includes('login') && Date.parse(created_at) < iat * 1000

function unlessTooMany(error: unknown): undefined {
  if (!(error instanceof ApiError && error.code === 'too_many_grants')) throw error
}

function unlessUnavailable(error: unknown): undefined {
  if (error instanceof ApiError) throw error
}
