// docs/reference/notifications.md: the types of notifications, from their declarations and a recorded list.

import type pg from 'pg'
import { describeApi } from '../../src/http/openapi/document.ts'
import { operations } from '../../src/operations/index.ts'
import { effects } from '../../src/operations/notification-effects.ts'
import { notificationExamples } from '../../src/operations/notification-examples.ts'
import { notifications } from '../../src/operations/webhook-endpoints.ts'
import { code, json, page, table } from './markdown.ts'
import { linkTo, nameOf, type Schema } from './schema.ts'

type Webhook = { post: { requestBody: { content: Record<string, { schema: Schema }> } } }

export async function notificationsPage(client: Pick<pg.ClientBase, 'query'>): Promise<string> {
  const { rows } = await client.query<{ type: keyof typeof notifications; scope: string }>(
    "select type, private.scope_to_read(type) as scope from unnest(enum_range(null::public.notification_type)) type where type <> '*'",
  )
  const { webhooks = {} }: { webhooks?: Record<string, Webhook> } = JSON.parse(JSON.stringify(describeApi(operations)))
  const dataOf = (type: string) => {
    const { $ref = '' } = webhooks[type]?.post.requestBody.content['application/json']?.schema.properties?.data ?? {}
    return linkTo(nameOf($ref), 'operations.md')
  }
  const types = rows.map(({ type, scope }) => [code(type), notifications[type], dataOf(type), code(scope)])
  const changes = Object.entries(effects).map(([what, types]) => [what, types.map(code).join(', ') || 'none'])
  return page(
    '# Notifications',
    'Usher logs each change as a notification and sends it to every webhook endpoint that subscribes to its type. `data` is the object at that time, as the API answers it; orders come without ticket codes. A key subscribes to what its scopes can read.',
    table('type | sent when | data | scope', types),
    '## Changes and their notifications',
    'A change over REST, over MCP or in Studio sends the same.',
    table('change | notifications', changes),
    '## Examples',
    'test_webhook_endpoint sends the example of a type, with `livemode` `false` and the time of the test.',
    ...Object.entries(notificationExamples).map(
      ([type, { timestamp, data }]) => `### ${type}\n\n${json({ type, timestamp, livemode: true, data })}`,
    ),
  )
}
