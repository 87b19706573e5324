// The pages between a client's request and its answer, and the page of what was allowed. A key is taken here and nowhere else; what a person
// allows becomes a grant, of which the client only gets tokens.

import express, { type Request, type Response, Router } from 'express'
import type { Provider } from 'oidc-provider'
import { ApiError } from '../../gateway/api-error.ts'
import type { GatewayRpc } from '../../gateway/gateway-rpc.ts'
import type { Principal } from '../../gateway/principals.ts'
import { type Addresses, oauthPath } from '../../http/addresses.ts'
import { noteRoute } from '../../http/middleware/log-requests.ts'
import type { SecretLookups } from '../../http/middleware/secret-lookups.ts'
import { type Scope, scopes } from '../../operations/operation.ts'
import { account } from './adapter.ts'
import { returnsTo } from './client-metadata.ts'
import {
  type Consent,
  consentPage,
  daysOffered,
  failurePage,
  grantsPage,
  loginPage,
  nameOfClient,
  type SignInPage,
} from './pages.ts'
import type { SignIn, SignIns } from './sign-in.ts'
import { signInWords } from './words.ts'

export type InteractionParts = {
  rpc: GatewayRpc
  signIns: SignIns
  /** Bounds who guesses keys, as for the header. */
  lookups: SecretLookups<Principal>
  addressesOf: (req: Request) => Addresses
  providerOf: (addresses: Addresses) => Promise<Provider>
}

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>

export const form = express.urlencoded({ extended: false, limit: '16kb', parameterLimit: 50 })

export const send = (res: Response, { html, policy }: SignInPage, status = 200): void =>
  void res.status(status).set('Content-Security-Policy', policy).type('html').send(html)

export const wordsFor = (req: Request) => signInWords((languages) => req.acceptsLanguages(languages))

/** Signs a browser in with the key of the form. @returns the sentence for a key that is refused. */
export const keyTaker =
  ({ signIns, lookups, addressesOf }: Pick<InteractionParts, 'signIns' | 'lookups' | 'addressesOf'>) =>
  async (req: Request, res: Response): Promise<string | undefined> => {
    const words = wordsFor(req)
    const key = String(bodyOf(req).key ?? '').trim()
    try {
      const { kind } = await lookups.resolve(key, req, res)
      if (kind !== 'person') return words.keyOfProgram
      await signIns.end(req, res, addressesOf(req))
      await signIns.start(key, req, res, addressesOf(req))
      return undefined
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return words.keyRefused
      if (error instanceof ApiError && error.status === 429) return words.keyTriedTooOften
      throw error
    }
  }

export function interactionRouter({ rpc, signIns, lookups, addressesOf, providerOf }: InteractionParts): Router {
  /** The request of a client that this browser is in the middle of. */
  async function interactionOf(req: Request, res: Response): Promise<Interaction | undefined> {
    const provider = await providerOf(addressesOf(req))
    // Throws where the cookie is missing, not signed by Usher, or of something that is over.
    const interaction = await provider.interactionDetails(req, res).catch(unlessUnavailable)
    return interaction?.uid === req.params.uid ? interaction : undefined
  }

  async function consentOf(interaction: Interaction, signIn: SignIn, provider: Provider): Promise<Consent> {
    const { client_id, redirect_uri, scope } = interaction.params as Record<string, string>
    const client = await provider.Client.find(client_id as string)
    const place = returnsTo(redirect_uri as string)
    const requested = scopes.filter((each) => scope?.split(' ').includes(each) && signIn.api_key.scopes.includes(each))
    const grant = signIn.grants.find(
      (each) => each.is_of_this_browser && each.client_id === client_id && each.returns_to === place.host,
    )
    const allowed = grant?.scopes ?? []
    const asked = requested.filter((each) => !allowed.includes(each))
    return {
      client: nameOfClient(client?.clientName, place.host),
      describedAt: client_id?.startsWith('https://') ? client_id : undefined,
      returnsTo: place,
      redirectUri: redirect_uri as string,
      signIn,
      asked,
      ticked: asked.filter((each) => each.endsWith(':read')),
      before: requested.filter((each) => allowed.includes(each)),
      isExtended: grant !== undefined,
    }
  }

  /** The step that the person is at, with what went wrong at it. */
  async function show(req: Request, res: Response, interaction: Interaction, error?: string): Promise<void> {
    const [addresses, words] = [addressesOf(req), wordsFor(req)]
    const provider = await providerOf(addresses)
    const signIn = await signIns.current(req)
    const formToken = signIns.formToken(req, res, addresses, interaction.uid)
    if (signIn === undefined || hasToSignInAgain(interaction, signIn)) {
      const { client_id, redirect_uri } = interaction.params as Record<string, string>
      const named = await provider.Client.find(client_id as string)
      const client = nameOfClient(named?.clientName, returnsTo(redirect_uri as string).host)
      return send(res, loginPage(words, { client, error, formToken }), error === undefined ? 200 : 400)
    }
    const consent = await consentOf(interaction, signIn, provider)
    send(res, consentPage(words, consent, { error, formToken }), error === undefined ? 200 : 400)
  }

  const takeKey = keyTaker({ signIns, lookups, addressesOf })

  async function allow(req: Request, res: Response, interaction: Interaction): Promise<void> {
    const provider = await providerOf(addressesOf(req))
    const signIn = await signIns.current(req)
    // The key may have ended, or lost scopes, while the page was open.
    if (signIn === undefined || hasToSignInAgain(interaction, signIn)) return show(req, res, interaction)
    const consent = await consentOf(interaction, signIn, provider)
    const ticked = [bodyOf(req).scope].flat()
    const chosen = consent.asked.filter((scope) => ticked.includes(scope))
    if (chosen.length === 0 && consent.before.length === 0)
      return show(req, res, interaction, wordsFor(req).nothingTicked)
    const grant = (await rpc('allow_client', {
      secret_hash: signIns.hash(req),
      client_id: interaction.params.client_id,
      name: consent.client,
      returns_to: consent.returnsTo.host,
      // Letter by letter as the client asked, for the library looks it up so: the audience of its tokens is ours all the same.
      resource: interaction.params.resource ?? addressesOf(req).resource,
      scopes: [...chosen, ...consent.before] satisfies Scope[],
      days: daysOffered.find((days) => String(days) === bodyOf(req).days) ?? Math.max(...daysOffered),
    }).catch(unlessTooMany)) as { id: string } | undefined
    if (grant === undefined) return show(req, res, interaction, wordsFor(req).tooManyGrants)
    await finish(provider, req, res, { login: { accountId: account, remember: false }, consent: { grantId: grant.id } })
  }

  const finish = (
    provider: Provider,
    req: Request,
    res: Response,
    result: Parameters<Provider['interactionFinished']>[2],
  ) => provider.interactionFinished(req, res, result, { mergeWithLastSubmission: false })

  const router = Router()

  router.get('/sign-in/:uid', async (req, res) => {
    noteRoute(req, res, `${oauthPath}/sign-in/{uid}`)
    const interaction = await interactionOf(req, res)
    if (interaction === undefined) return send(res, failurePage(wordsFor(req), wordsFor(req).expired), 400)
    await show(req, res, interaction)
  })
  router.post('/sign-in/:uid', form, async (req, res) => {
    noteRoute(req, res, `${oauthPath}/sign-in/{uid}`)
    const interaction = await interactionOf(req, res)
    if (interaction === undefined) return send(res, failurePage(wordsFor(req), wordsFor(req).expired), 400)
    if (!signIns.isOwnForm(req, interaction.uid)) return show(req, res, interaction, wordsFor(req).formOutdated)
    const addresses = addressesOf(req)
    const again = () => res.redirect(303, `${addresses.path}${oauthPath}/sign-in/${interaction.uid}`)
    switch (bodyOf(req).action) {
      case 'allow':
        return allow(req, res, interaction)
      case 'deny':
        return finish(await providerOf(addresses), req, res, {
          error: 'access_denied',
          error_description: 'the person refused',
        })
      case 'sign_out':
        await signIns.end(req, res, addresses)
        return again()
      default: {
        const refused = await takeKey(req, res)
        return refused === undefined ? again() : show(req, res, interaction, refused)
      }
    }
  })

  async function showGrants(req: Request, res: Response, error?: string): Promise<void> {
    const signIn = await signIns.current(req)
    const formToken = signIns.formToken(req, res, addressesOf(req), 'grants')
    const page =
      signIn === undefined
        ? loginPage(wordsFor(req), { error, formToken })
        : grantsPage(wordsFor(req), signIn, { error, formToken })
    send(res, page, error === undefined ? 200 : 400)
  }
  router.get('/grants', async (req, res) => {
    noteRoute(req, res, `${oauthPath}/grants`)
    await showGrants(req, res)
  })
  router.post('/grants', form, async (req, res) => {
    noteRoute(req, res, `${oauthPath}/grants`)
    if (!signIns.isOwnForm(req, 'grants')) return showGrants(req, res, wordsFor(req).formOutdated)
    const { action, grant_id } = bodyOf(req)
    if (action === 'sign_out') await signIns.end(req, res, addressesOf(req))
    else if (action === 'end') {
      if (isUuid(grant_id)) await rpc('end_grant', { secret_hash: signIns.hash(req), grant_id })
    } else {
      const refused = await takeKey(req, res)
      if (refused !== undefined) return showGrants(req, res, refused)
    }
    res.redirect(303, `${addressesOf(req).path}${oauthPath}/grants`)
  })
  return router
}

/** A client may ask for a person who signs in now (`prompt=login`). */
const hasToSignInAgain = ({ params, iat }: Interaction, { created_at }: SignIn): boolean =>
  String(params.prompt ?? '')
    .split(' ')
    .includes('login') && Date.parse(created_at) < iat * 1000

export const bodyOf = (req: Request): Record<string, unknown> => (req.body as Record<string, unknown> | undefined) ?? {}

export const isUuid = (text: unknown): boolean =>
  typeof text === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)

function unlessTooMany(error: unknown): undefined {
  if (!(error instanceof ApiError && error.code === 'too_many_grants')) throw error
}

function unlessUnavailable(error: unknown): undefined {
  if (error instanceof ApiError) throw error
}
