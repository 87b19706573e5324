// Postmark's delivery events update the attendee's ticket e-mail, for callers that know the secret only.

import { randomUUID } from 'node:crypto'
import { expect, inject, onTestFinished, test } from 'vitest'
import { serveApp } from '../../scripts/support/serve-app.ts'
import { createCourierRpc } from '../../src/gateway/courier-rpc.ts'
import { DataApi } from '../../src/gateway/data-api.ts'
import { createTokens } from '../../src/gateway/tokens.ts'
import { createLog } from '../../src/process/log.ts'
import { row } from '../support/database.ts'
import { createOrganisation } from '../support/organisation.ts'
import { edit } from '../support/studio.ts'

const secret = 'a secret of Postmark'

/** A ticket that was sent, and a way to tell of it. */
async function arrange({ claimed = false } = {}) {
  const [dataApiUrl, jwtSecret] = [inject('dataApiUrl'), inject('jwtSecret')]
  const tokens = await createTokens({ secret: jwtSecret })
  const rpc = createCourierRpc(new DataApi({ url: dataApiUrl }, tokens), tokens)
  const app = await serveApp({
    dataApiUrl,
    jwtSecret,
    log: createLog('silent'),
    postmark: { secret, rpc },
  })
  onTestFinished(() => app.close())

  const { attendeeId } = await (await (await createOrganisation()).event()).guest()
  const messageId = randomUUID()
  const { id: emailId } = await row<{ id: string }>(
    claimed
      ? `update public.emails set attempts = 1, claim = gen_random_uuid(), claimed_until = now() + interval '1 hour',
           next_attempt_at = now() + interval '1 hour', sent_to = a.email, sent_code = a.ticket_code
         from public.attendees a where attendee_id = $1 and a.id = $1 returning emails.id`
      : `update public.emails set status = 'sent', next_attempt_at = null, sent_at = now(), sent_to = a.email, message_id = '${messageId}'
         from public.attendees a where attendee_id = $1 and a.id = $1 returning emails.id`,
    [attendeeId],
  )
  if (!claimed) await edit('attendees', attendeeId, "ticket_email_status = 'sent'")
  return {
    emailId,
    messageId,
    tell: (body: unknown, password = secret) =>
      fetch(`${app.url}/webhooks/postmark`, {
        method: 'POST',
        headers: {
          'Content-Type': 'application/json',
          Authorization: `Basic ${Buffer.from(`usher:${password}`).toString('base64')}`,
        },
        body: JSON.stringify(body),
      }),
    shown: () =>
      row(
        'select ticket_email_status as status, ticket_email_last_error as error from public.attendees where id = $1',
        [attendeeId],
      ),
  }
}

test('a delivery is shown on the attendee, and a bounce with its reason', async () => {
  const { messageId, tell, shown } = await arrange()
  expect((await tell({ RecordType: 'Delivery', MessageID: messageId, Recipient: 'guest@example.com' })).status).toBe(
    200,
  )
  expect(await shown()).toEqual({ status: 'delivered', error: null })
  await tell({ RecordType: 'Bounce', Type: 'HardBounce', MessageID: messageId, Description: 'No such mailbox.' })
  expect(await shown()).toEqual({ status: 'bounced', error: 'No such mailbox.' })
})

test('an e-mail is known by the id that was sent along, also before its MessageID is', async () => {
  const { emailId, tell, shown } = await arrange({ claimed: true })
  const Metadata = { email_id: emailId, attempt: '1' }
  await tell({ RecordType: 'Delivery', MessageID: randomUUID(), Metadata })
  expect(await shown()).toEqual({ status: 'delivered', error: null })
})

test('an event of another e-mail, or of another kind, is taken and changes nothing', async () => {
  const { messageId, tell, shown } = await arrange()
  for (const body of [
    { RecordType: 'Delivery', MessageID: randomUUID() },
    { RecordType: 'Open', MessageID: messageId },
    { RecordType: 'Bounce', Type: 'HardBounce', MessageID: 7 },
    { RecordType: 'Bounce', Type: 'AutoResponder', MessageID: messageId },
    [],
  ]) {
    expect((await tell(body)).status).toBe(200)
  }
  expect(await shown()).toEqual({ status: 'sent', error: null })
})

test('whoever does not know the secret is refused', async () => {
  const { messageId, tell, shown } = await arrange()
  for (const password of ['', 'wrong', `${secret} `]) {
    const answer = await tell({ RecordType: 'Bounce', Type: 'HardBounce', MessageID: messageId }, password)
    expect([answer.status, answer.headers.get('www-authenticate')]).toEqual([401, 'Basic realm="Postmark webhook"'])
  }
  expect(await shown()).toEqual({ status: 'sent', error: null })
})

test('whoever goes on guessing is told to stop, and Postmark is still heard', async () => {
  const { messageId, tell, shown } = await arrange()
  const statuses = await Promise.all(Array.from({ length: 61 }, () => tell({}, 'wrong').then(({ status }) => status)))
  expect(statuses.filter((status) => status === 401)).toHaveLength(60)
  expect(statuses.filter((status) => status === 429)).toHaveLength(1)
  expect((await tell({ RecordType: 'Delivery', MessageID: messageId })).status).toBe(200)
  expect(await shown()).toEqual({ status: 'delivered', error: null })
})
