// The name of a Supabase project, by its address.

import { expect, test } from 'vitest'
import { namesOfProject } from '../../src/courier/installation.ts'

test.each([
  ['a hosted project', 'https://abcdefghijklmnopqrst.supabase.co/', 'project:abcdefghijklmnopqrst'],
  ['a domain of its own', 'https://Supabase.example.com/', 'project:https://supabase.example.com'],
  ['a path behind a proxy', 'https://example.com/supabase/', 'project:https://example.com/supabase'],
  ['inside docker compose', 'http://kong:8000', 'address:http://kong:8000'],
  ['on this machine', 'http://127.0.0.1:54321', 'address:http://127.0.0.1:54321'],
  ['by a number', 'https://10.0.0.5:8443', 'address:https://10.0.0.5:8443'],
  ['in a private network', 'https://supabase.internal', 'address:https://supabase.internal'],
  ['without TLS', 'http://supabase.example.com', 'address:http://supabase.example.com'],
])('%s', (_, url, name) => {
  expect(namesOfProject(url)).toEqual([name])
})
