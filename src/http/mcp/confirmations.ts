// What a model is told where a person has to confirm: the link of a page of Usher's. Whether they have to, and whether they did, is decided
// in SQL (supabase/schemas/16-confirmations); nothing that a client answers here confirms anything.

import { CLIENT_CAPABILITIES_META_KEY, type InputRequiredResult, inputRequired } from '@modelcontextprotocol/server'
import { ApiError } from '../../gateway/api-error.ts'
import type { Caller } from '../../gateway/caller.ts'
import type { GatewayRpc } from '../../gateway/gateway-rpc.ts'
import type { Operation } from '../../operations/operation.ts'

/** Below PUBLIC_URL. */
export const confirmPath = '/confirm'

/**
 * Keeps what was refused as a request for a confirmation.
 *
 * @param sent the arguments of the call, of which the refusal leaves out what is personal.
 * @param pages the URL that they are below; undefined where nobody could sign in.
 * @returns the refusal, with the link.
 */
export type AskPerson = (
  operation: Operation,
  caller: Caller,
  sent: Record<string, unknown>,
  refusal: ApiError,
  pages: string | undefined,
) => Promise<ApiError>

/** As `private.assert_confirmed` refuses. `hidden` is of the effect, too, and not for the key that asks. */
type Refused = {
  operation: string
  arguments: string
  of_call: string[]
  effect: Record<string, unknown>
  hidden: Record<string, unknown>
  fingerprint: string
}

export const createAskPerson =
  (rpc: GatewayRpc): AskPerson =>
  async ({ scope }, { principal }, sent, refusal, pages) => {
    const { operation, arguments: args, of_call, effect, hidden, fingerprint } = refusal.details as Refused
    const { dry_run: _, ...counted } = effect
    const answer = (details: Record<string, unknown>, hint: string, retryable: boolean) =>
      new ApiError(428, 'confirmation_required', refusal.message, {
        details: { ...details, effect: counted },
        hint,
        retryable,
        cause: refusal,
      })
    if (pages === undefined) {
      const hint = 'There is no page for it, because PUBLIC_URL is not https.'
      return answer({}, `${hint} A key with confirmations none needs no confirmation.`, false)
    }
    const { id, expires_at } = (await rpc('ask_confirmation', {
      api_key_id: principal.api_key_id,
      scope,
      operation,
      arguments: { ...Object.fromEntries(of_call.map((name) => [name, sent[name]])), ...JSON.parse(args) },
      fingerprint,
      effect: { ...counted, ...hidden },
    })) as { id: string; expires_at: string }
    return answer(
      { url: `${pages}${confirmPath}/${id}`, expires_at },
      'Give the person the url, where they sign in, review the effect and confirm. When they have confirmed, repeat the same call.',
      true,
    )
  }

/** The parameters of a tool call. */
export type CallParams = {
  arguments?: Record<string, unknown>
  _meta?: Record<string, unknown>
  inputResponses?: unknown
}

/**
 * The same for a host that opens links itself, from revision 2026-07-28 on, or shows its person a form, with the link in its text: what they
 * answer there counts for nothing. Undefined where it does neither, or has just done so: then the model is told, and repeats the call when
 * the person has confirmed.
 */
export function inputForPerson(
  refusal: ApiError,
  title: string,
  { _meta = {}, inputResponses }: CallParams,
): InputRequiredResult | undefined {
  const capabilities = _meta[CLIENT_CAPABILITIES_META_KEY] as { elicitation?: { url?: object } } | undefined
  const elicitation = capabilities?.elicitation
  const { url } = refusal.details as { url?: string }
  if (url === undefined || inputResponses !== undefined || elicitation === undefined) return undefined
  const message = `${title}: review the effect and confirm it on Usher's page`
  return inputRequired({
    inputRequests: {
      confirmation: elicitation.url
        ? inputRequired.elicitUrl({ message: `${message}.`, url })
        : // Without a mode: forms, as of the revisions that had no other.
          inputRequired.elicit({
            message: `${message}: ${url} Then accept here.`,
            requestedSchema: { type: 'object', properties: {} },
          }),
    },
  })
}
