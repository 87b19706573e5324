// The form in which people are searched: the page's, for its list without a network, and the database's are one.

import { expect, test } from 'vitest'
import { line } from '../../src/operations/inputs.ts'
import { row } from '../support/database.ts'

const folder = new URL('../../src/apps/door/browser/', import.meta.url)
const { searchForm } = (await import(new URL('search-form.ts', folder).href)) as { searchForm(text: string): string }

const cases: [text: string, form: string][] = [
  ['Ada  Lovelace ', 'ada lovelace'],
  ['Zo\u00eb', 'zoe'],
  ['ZOE\u0308', 'zoe'],
  ['\u200bZo\u00eb\u00a0\u2003M\u00fcller\u2060', 'zoe muller'],
  ['O\u2019Leary', "o'leary"],
  ...[...'`\u00b4\u02bb\u02bc\u2018\u201b\u2032\uff07\uff40'].map(
    (sign) => [`O${sign}Leary`, "o'leary"] as [string, string],
  ),
  ...[...'\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d'].map(
    (sign) => [`Smith${sign}Wesson`, 'smith-wesson'] as [string, string],
  ),
  ['Kal\u0117din\u0117 \u0141\u00f3d\u017a', 'kaledine lodz'],
  ['\u00d8rsted, \u00c6gir & Stra\u00dfe', 'orsted, aegir & strasse'],
  ['\u00de\u00f3r \u0152uvre \u0110oan \u0126al \u0131', 'thor oeuvre doan hal i'],
  ['\uff2a\uff4f\uff48\uff4e \ufb01n', 'john fin'],
  ['\u0416\u0423\u041a\u041e\u0412', '\u0436\u0443\u043a\u043e\u0432'],
  ['\u0639\u0644\u06cc\u200c\u0631\u0636\u0627', '\u0639\u0644\u06cc\u0631\u0636\u0627'],
  ['sil\u00adben\u00adweise', 'silbenweise'],
  ['\u3164\u2800\u00ad\u200e', ''],
]

test.each(cases)('%j is %j, for the page as for the database', async (text, form) => {
  const { sql } = await row<{ sql: string }>('select private.search_form($1) as sql', [text])
  expect([searchForm(text), sql]).toEqual([form, form])
})

test('what nobody sees has no form and is no name, in the page and in requests as in the database', async () => {
  // Where there are blanks, marks and signs, and nothing else but letters.
  const [first, last] = [
    [1, 0xa000, 0xf900, 0x1bc00, 0xe0000],
    [0x33ff, 0xabff, 0xffff, 0x1d1ff, 0xe0fff],
  ] as const
  const codes = first.flatMap((from, i) => Array.from({ length: (last[i] ?? 0) - from + 1 }, (_, n) => from + n))
  const found = await row<{ unseen: number[]; nameless: number[] }>(
    `select array_agg(i order by i) filter (where private.search_form(chr(i)) = '') as unseen,
       array_agg(i order by i) filter (where not private.is_one_line(chr(i), 1)) as nameless
     from unnest($1::integer[], $2::integer[]) r (first, last) cross join lateral generate_series(r.first, r.last) i`,
    [first, last],
  )
  const textOf = (code: number) => String.fromCodePoint(code)
  expect(codes.filter((code) => searchForm(textOf(code)) === '')).toEqual(found.unseen)
  expect(codes.filter((code) => !line(1).safeParse(textOf(code)).success)).toEqual(found.nameless)
})
