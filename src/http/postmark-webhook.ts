// What Postmark tells of e-mails it took: delivered, or bounced and why. In come its webhooks, authenticated by the secret that
// stands in their address (https://usher:SECRET@…/webhooks/postmark), out go events for the database. What it tells besides
// is taken and forgotten, or it would be sent again and again.

import { type RequestHandler, Router } from 'express'
import * as z from 'zod'
import type { CourierRpc } from '../courier/courier-rpc.ts'
import { ApiError } from '../gateway/api-error.ts'
import { readJson } from './json-body.ts'
import { sharedSecret } from './shared-secret.ts'

// Of Postmark's bounce types those after which the e-mail will not arrive; a holiday notice or a full mailbox is not among them.
const forGood = [
  'HardBounce',
  'BadEmailAddress',
  'Blocked',
  'SpamNotification',
  'ManuallyDeactivated',
  'DMARCPolicy',
] as const

const which = {
  MessageID: z.string().max(200),
  // What src/courier/mail/postmark.ts sent along.
  Metadata: z
    .object({ ticket_email_id: z.uuid(), attempt: z.coerce.number().int().min(1).max(1000) })
    .optional()
    .catch(undefined),
}
const Told = z.discriminatedUnion('RecordType', [
  z.object({ RecordType: z.literal('Delivery'), ...which }),
  z.object({ RecordType: z.literal('Bounce'), Type: z.enum(forGood), Description: z.string().optional(), ...which }),
])

/** @param countFailure see `limitFailures`: one for all doors. */
export function postmarkRouter(secret: string, outbox: CourierRpc, countFailure: RequestHandler): Router {
  const router = Router()
  router.post('/webhooks/postmark', authenticate(secret, countFailure), readJson, async (req, res) => {
    const told = Told.safeParse(req.body)
    if (told.success) {
      await outbox('record_ticket_email_event', {
        message_id: told.data.MessageID,
        ...told.data.Metadata,
        ...(told.data.RecordType === 'Delivery'
          ? { status: 'delivered' }
          : { status: 'bounced', error: told.data.Description?.slice(0, 300) ?? 'It bounced.' }),
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
    const refusal = new ApiError(
      401,
      'invalid_credentials',
      'The password in the address of the webhook is not valid.',
      {
        headers: { 'WWW-Authenticate': 'Basic realm="Postmark webhook"' },
      },
    )
    countFailure(req, res, (limited?: unknown) => next(limited ?? refusal))
  }
}
