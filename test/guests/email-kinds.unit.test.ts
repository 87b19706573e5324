// The kinds of e-mail are the keys of the English words. What lists them elsewhere is written from these.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { en } from '../../src/guests/words/en.ts'

const root = join(import.meta.dirname, '..', '..')
const kinds = Object.keys(en.kinds)
const note =
  'The kinds of e-mail: the keys of `kinds` in src/guests/words/en.ts, written by\n' +
  '`npx vitest run test/guests/email-kinds.unit.test.ts -u`.'

/** A list of all kinds: each on a line. */
const listed = (end: string) => kinds.map((kind, i) => `  '${kind}'${i < kinds.length - 1 ? ',' : end}\n`).join('')

test.each([
  [
    'supabase/schemas/90-outbox/email-kinds.sql',
    `${note.replace(/^/gm, '-- ')}\n\ncreate type public.email_kind as enum (\n${listed('')});\n`,
  ],
  [
    'src/operations/email-kinds.ts',
    `${note.replace(/^/gm, '// ')}\n\nexport const emailKinds = [\n${listed(',')}] as const\n\nexport type EmailKind = (typeof emailKinds)[number]\n`,
  ],
])('%s has the kinds that have words', async (path, text) => {
  const command = 'Run: npx vitest run test/guests/email-kinds.unit.test.ts -u'
  await expect(text, command).toMatchFileSnapshot(join(root, path))
})

test('organisers are told of each kind to whom it goes, and when', () => {
  const guide = readFileSync(join(root, 'docs/guides/tickets-and-badges.md'), 'utf8')
  const told = guide
    .split('\n')
    .filter((line) => /^\| \[`/.test(line))
    .map((line) => line.split('|')[1] ?? '')
    .join()
  expect(kinds.filter((kind) => !told.includes(`\`${kind}\``))).toEqual([])
})
