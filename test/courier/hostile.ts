// Names that somebody might register under to do mischief, and the checks that they did none.

export const hostileNames = {
  'a script': '<script>alert(1)</script>',
  'an attribute': '" onmouseover="alert(1)" style="display:none',
  'single quotes': "' onclick='alert(1)'",
  'the end of everything': '--></td></table></body></html><style>*{display:none}</style>',
  'an entity': '&lt;b&gt; &amp; &#60;',
  'a picture from elsewhere': '<img src=https://evil.example/p.gif>',
  'a header': 'Ada\r\nBcc: everybody@evil.example',
  'a bare line feed': 'Ada\nX-Evil: yes',
  'an address': '"Ada" <evil@evil.example>, other@evil.example',
  'an encoded word': '=?utf-8?q?=0D=0ABcc:_everybody@evil.example?=',
  'an end of calendar': 'Ada\r\nEND:VEVENT\r\nATTACH:https://evil.example',
  'a calendar parameter': 'Ada";SENT-BY="mailto:evil@evil.example:x;,\\',
  emoji: 'Ada 👩🏽‍💻🏳️‍🌈 & 🎉',
  'half an emoji': 'Ada \ud83c',
  'right to left': 'مؤتمر البرمجيات',
  'an override': 'Ada \u202egnp.exe\u2066',
  'control characters': 'A\u0000d\u0007a\u2028b\u0085',
  'a very long word': 'x'.repeat(5000),
  'very many emoji': '🎉'.repeat(1000),
} as const

/** Tags and the names of their attributes, in order: what user text must never change. */
export function structureOf(html: string): string[] {
  return Array.from(html.matchAll(/<(?:"[^"]*"|'[^']*'|[^'">])*>/g), ([tag]) => tag.replace(/"[^"]*"|'[^']*'/g, '""'))
}

const named: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: ' ' }

/** What a reader sees of it. */
export const visibleText = (html: string) =>
  html
    .replace(/<style>[^<]*<\/style>/, '')
    .replace(/<[^>]*>/g, '\n')
    .replace(/&([a-z]+|#39);/g, (_, name) => named[name] ?? '')
