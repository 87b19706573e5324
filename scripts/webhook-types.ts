// Writes the types of webhooks for receivers, from the OpenAPI document: `npm run webhook-types`. A test says when they are out of date.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import openapiTs, { astToString } from 'openapi-typescript'
import { describeApi } from '../src/http/openapi/document.ts'
import { operations } from '../src/operations/index.ts'

export const webhookTypes = join(import.meta.dirname, '../supabase/functions/webhook-consumer/usher-webhooks.ts')

const head = `// The payloads of Usher's webhooks: import type { UsherWebhook } from './usher-webhooks.ts'. Its \`type\` says what its \`data\` is.
// Generated from the OpenAPI document by \`npm run webhook-types\`.

`

type Schema = Record<string, unknown>

export async function generateWebhookTypes(): Promise<string> {
  const { webhooks = {}, components } = JSON.parse(JSON.stringify(describeApi(operations)))
  const UsherWebhook = {
    oneOf: Object.values<{ post: { requestBody: { content: Record<string, { schema: Schema }> } } }>(webhooks).map(
      ({ post }) => post.requestBody.content['application/json']?.schema,
    ),
  }
  const document = {
    openapi: '3.1.0',
    info: { title: 'Webhooks', version: '1' },
    components: { schemas: { UsherWebhook, ...usedBy(UsherWebhook, components.schemas) } },
  }
  const options = { rootTypes: true, rootTypesNoSchemaPrefix: true, rootTypesKeepCasing: true }
  const text = astToString(await openapiTs(JSON.stringify(document), options))
  return head + text.replace(/^export (type paths|type webhooks|type \$defs|type operations) = .+\n/gm, '')
}

/** The named schemas that a schema refers to, directly or through others. */
function usedBy(schema: unknown, all: Record<string, Schema>, used: Record<string, Schema> = {}) {
  for (const [, name = ''] of JSON.stringify(schema).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    if (name in used) continue
    used[name] = all[name] as Schema
    usedBy(used[name], all, used)
  }
  return used
}

if (import.meta.main) writeFileSync(webhookTypes, await generateWebhookTypes())
