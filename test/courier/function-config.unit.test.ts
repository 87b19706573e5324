// What the courier as an edge function needs to be told, and the names that it calls what is missing by.

import { expect, test } from 'vitest'
import { readFunctionConfig } from '../../supabase/functions/courier/config.ts'

const complete = {
  SUPABASE_URL: 'http://127.0.0.1:9',
  SUPABASE_PUBLISHABLE_KEYS: JSON.stringify({ default: 'sb_publishable_test' }),
  USHER_JWT_SECRET: 'a secret of at least 32 characters',
  COURIER_SECRET: 'a-secret-of-this-function',
  SMTP_URL: 'smtp://127.0.0.1:9',
  MAIL_FROM: 'tickets@example.com',
}

test('all that is needed is enough', () => {
  expect(readFunctionConfig(complete)).toMatchObject({
    secret: complete.COURIER_SECRET,
    database: { kind: 'supabase' },
  })
})

test.each([
  [{ COURIER_SECRET: 'short' }, 'COURIER_SECRET must be set, to at least 16 letters'],
  [{ SUPABASE_URL: '' }, 'SUPABASE_URL must be set.'],
  [{ SUPABASE_PUBLISHABLE_KEYS: 'sb_publishable_x' }, 'SUPABASE_PUBLISHABLE_KEYS must be a JSON object'],
  [{ SUPABASE_PUBLISHABLE_KEYS: '' }, 'SUPABASE_PUBLISHABLE_KEY must be set'],
  [{ USHER_JWT_SECRET: '' }, 'USHER_JWT_SECRET or USHER_SIGNING_KEY must be set'],
  [{ SMTP_URL: '' }, 'POSTMARK_SERVER_TOKEN or SMTP_URL must be set'],
  [{ MAIL_FROM: '' }, 'MAIL_FROM must be set'],
])('with %j it says what is wrong', (environment, reason) => {
  expect(() => readFunctionConfig({ ...complete, ...environment })).toThrow(reason)
})
