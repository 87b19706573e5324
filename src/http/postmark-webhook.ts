// Records Postmark's delivery and bounce webhooks, authenticated by the secret in their address
// (https://usher:SECRET@…/webhooks/postmark). Other record types are answered 200 and ignored: Postmark would repeat them.

import { type RequestHandler, Router } from 'express'
import * as z from 'zod'
import { ApiError } from '../gateway/api-error.ts'
import type { CourierRpc } from '../gateway/courier-rpc.ts'
import { readJson } from './middleware/json-body.ts'
import { sharedSecret } from './middleware/shared-secret.ts'

// The bounce types after which the e-mail will not arrive; an auto-reply or a full mailbox is not one of them.
const permanentBounces = [
  'HardBounce',
  'BadEmailAddress',
  'Blocked',
  'SpamNotification',
  'ManuallyDeactivated',
  'DMARCPolicy',
] as const

const identifiers = {
  MessageID: z.string().max(200),
  // As src/courier/mail/postmark.ts sent it.
  Metadata: z
    .object({ email_id: z.uuid(), attempt: z.coerce.number().int().min(1).max(1000) })
    .optional()
    .catch(undefined),
}
const DeliveryEvent = z.discriminatedUnion('RecordType', [
  z.object({ RecordType: z.literal('Delivery'), ...identifiers }),
  z.object({
    RecordType: z.literal('Bounce'),
    Type: z.enum(permanentBounces),
    Description: z.string().optional(),
    ...identifiers,
  }),
])

/** @param countFailure of `limitFailures`, shared with the API. */
export function postmarkRouter(secret: string, rpc: CourierRpc, countFailure: RequestHandler): Router {
  const router = Router()
  router.post('/webhooks/postmark', authenticate(secret, countFailure), readJson(), async (req, res) => {
    const event = DeliveryEvent.safeParse(req.body)
    if (event.success) {
      await rpc('record_email_event', {
        message_id: event.data.MessageID,
        ...event.data.Metadata,
        ...(event.data.RecordType === 'Delivery'
          ? { status: 'delivered' }
          : { status: 'bounced', error: event.data.Description?.slice(0, 300) ?? 'It bounced.' }),
      })
    }
    res.json({ status: 'ok' })
  })
  return router
}

function authenticate(secret: string, countFailure: RequestHandler): RequestHandler {
  const isSecret = sharedSecret(secret)
  return (req, res, next) => {
    const [, credentials = ''] = /^Basic ([A-Za-z0-9+/=]+)$/.exec(req.headers.authorization ?? '') ?? []
    const given = Buffer.from(credentials, 'base64')
      .toString()
      .replace(/^[^:]*:/, '')
    if (isSecret(given)) return next()
    countFailure(req, res, (limited?: unknown) => next(limited ?? invalidCredentials()))
  }
}

const invalidCredentials = () =>
  new ApiError(401, 'invalid_credentials', 'The password in the address of the webhook is not valid.', {
    headers: { 'WWW-Authenticate': 'Basic realm="Postmark webhook"' },
  })
