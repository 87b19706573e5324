// The HTML part of an e-mail: one card, readable from 320 pixels up, made of tables and inline styles, which is what mail clients
// support. It must load nothing but the logo, run nothing, and escape every value.

import type { Facts } from '../../guests/facts.ts'
import { type Html, html } from '../../guests/html.ts'
import { base, type Palette, sizes } from '../../guests/look.ts'
import { notesHtml } from '../../guests/notes.ts'
import { ibansIn } from '../../guests/plain-text.ts'
import { fill, type Words } from '../../guests/words/index.ts'
import type { Block, Detail } from './blocks.ts'
import type { Content, Tone } from './content.ts'

// Light colours are inline, for clients that drop <style>; dark ones are for clients that support the media query. The QR code keeps
// its white background in both, because scanners need dark on light.
const darkStyle = ({ dark }: Palette) => html`
    :root { color-scheme: light dark; supported-color-schemes: light dark; }
    @media (prefers-color-scheme: dark) {
      .page { background-color: ${dark.page} !important; }
      .card { background-color: ${dark.card} !important; }
      .text { color: ${dark.text} !important; }
      .soft { color: ${dark.soft} !important; }
      .link { color: ${dark.link} !important; }
      .line { border-color: ${dark.line} !important; }
      .good { background-color: ${dark.good} !important; color: ${dark.onGood} !important; }
      .notice { background-color: ${dark.notice} !important; color: ${dark.onNotice} !important; }
      .bad { background-color: ${dark.bad} !important; color: ${dark.onBad} !important; }
    }`

const { page, card, paper, text, soft, line, good, onGood, notice, onNotice, bad, onBad } = base.light
const type = (pixels: number) => `font-size:${pixels}px;line-height:${Math.round(pixels * 1.4)}px;`
const [small, medium, large] = [type(sizes.small), type(sizes.medium), type(sizes.large)]
const font = "font-family:-apple-system,BlinkMacSystemFont,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;"
// A name of two hundred characters without a space must not widen the card.
const wrap = 'overflow-wrap:anywhere;word-break:break-word;'
const styles = {
  page: `margin:0;padding:0;background-color:${page};`,
  card: `background-color:${card};border-radius:${sizes.cardRadius}px;border-collapse:separate;overflow:hidden;`,
  head: 'padding:28px 28px 26px;',
  from: `${font}${wrap}margin:0 0 8px;text-align:left;${small}`,
  title: `${font}${wrap}margin:0;text-align:left;${type(sizes.title)}font-weight:700;`,
  headline: `${font}${wrap}margin:0;text-align:left;${large}font-weight:700;`,
  label: `${font}margin:0 0 3px;${small}color:${soft};`,
  value: `${font}${wrap}margin:0;${medium}color:${text};`,
  strong: `${font}${wrap}margin:0;${medium}font-weight:600;color:${text};`,
  soft: `${font}${wrap}margin:0;${small}color:${soft};`,
  // With its padding 44 pixels high, for thumbs.
  link: `${font}${wrap}display:inline-block;padding:11px 0;${medium}`,
  smaller: `font-size:${sizes.small}px;`,
  // A border, for where the accent is as dark as the card.
  button: `padding:0 24px;border:1px solid ${line};border-radius:${sizes.radius}px;text-align:center;`,
  // Two of these are side by side where there is room, otherwise stacked.
  column: 'display:inline-block;width:100%;max-width:251px;vertical-align:top;',
  whole: 'display:block;',
  cell: 'padding:0 12px 18px 0;text-align:left;',
  tear: `border-top:2px dashed ${line};font-size:0;line-height:0;height:0;`,
  notch: `width:10px;height:20px;font-size:0;line-height:0;background-color:${page};`,
  quote: `margin:0;padding:0 0 0 12px;border-left:3px solid ${line};`,
  line: `border-bottom:1px solid ${line};`,
  code: `margin:0;font-family:Menlo,Consolas,'Liberation Mono',monospace;${large}color:${text};`,
  // The old value of something that changed.
  old: `${font}${wrap}margin:0;${medium}color:${soft};text-decoration:line-through;`,
  amount: `${font}white-space:nowrap;${medium}color:${text};`,
  logoFrame: `background-color:${paper};border-radius:${sizes.radius}px;padding:8px;`,
  // Outlook takes the height of the attribute.
  logo: 'display:block;border:0;width:auto;height:auto;max-width:180px;max-height:56px;',
  holder: `${font}${wrap}margin:0;${large}font-weight:700;color:${text};`,
} as const

// Those of the ticket page.
const tones: Record<Tone, string> = {
  plain: `color:${text};`,
  good: `background-color:${good};color:${onGood};`,
  notice: `background-color:${notice};color:${onNotice};`,
  bad: `background-color:${bad};color:${onBad};`,
}

/** @param cidOf Content-ID of the attachment with the QR code of a ticket, by its number. */
export function emailHtml(
  { subject, headline, tone, preview, blocks, closing, contact, optOut }: Content,
  facts: Facts,
  logo: string | null,
  cidOf: (number: number) => string,
): string {
  const { words, palette } = facts
  const { accent, onAccent, softOnAccent } = palette.light
  return html`<!DOCTYPE html>
<html lang="${words.locale.slice(0, 2)}">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <meta name="supported-color-schemes" content="light dark">
  <meta name="format-detection" content="telephone=no, date=no, address=no, email=no">
  <title>${subject}</title>
  <style>${darkStyle(palette)}
  </style>
</head>
<body class="page" style="${styles.page}">
<div style="display:none;max-height:0;overflow:hidden;opacity:0;">${preview}</div>
<table role="presentation" class="page" width="100%" cellpadding="0" cellspacing="0" border="0" style="${styles.page}">
<tr><td align="center" style="padding:24px 12px;">
<!--[if mso]><table role="presentation" width="560" cellpadding="0" cellspacing="0" border="0"><tr><td><![endif]-->
<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0" style="max-width:560px;">
<tr><td>
<table role="presentation" class="card" width="100%" cellpadding="0" cellspacing="0" border="0" style="${styles.card}">
<tr><td style="${styles.head}background-color:${accent};">
  ${logo !== null && picture(logo)}<p dir="auto" style="${styles.from}color:${softOnAccent};">${facts.organisation}</p>
  <h1 dir="auto" style="${styles.title}color:${onAccent};">${facts.event}</h1>
</td></tr>
${facts.test !== undefined && band(facts.test)}<tr><td class="${tone === 'plain' ? 'text' : tone}" style="padding:${tone === 'plain' ? '22px 28px 0' : '13px 28px'};${tones[tone]}">
  <p style="${styles.headline}">${headline}</p>
</td></tr>
${blocks.map((block, index) => row(block, index === 0, facts, cidOf))}
<tr><td style="font-size:0;line-height:0;height:6px;">&nbsp;</td></tr>
</table>
</td></tr>
<tr><td style="padding:18px 16px 0;">
  ${closing.map((sentence) => html`<p class="soft" style="${styles.soft}padding-bottom:8px;">${sentence}</p>`)}
  <p class="soft" style="${styles.soft}">${contact.sentence}</p>
  ${contact.address !== undefined && footLink(`mailto:${contact.address}`, contact.address, palette)}
  ${optOut && footLink(optOut.url, optOut.label, palette)}
</td></tr>
</table>
<!--[if mso]></td></tr></table><![endif]-->
</td></tr>
</table>
</body>
</html>
`.toString()
}

function row(block: Block, isFirst: boolean, { words, palette }: Facts, cidOf: (number: number) => string): Html {
  const top = isFirst ? '20px' : '0'
  switch (block.type) {
    case 'details':
      return html`<tr><td style="padding:${top} 16px 0 28px;font-size:0;">
  ${pairs(block.details.map((each) => detail(each, palette, block.details.length > 1 ? styles.column : styles.whole)))}
</td></tr>
`
    case 'ticket':
      return html`<tr><td>${tear}</td></tr>
<tr><td align="center" style="padding:14px 20px 22px;">
  ${stub(block, words, cidOf(block.number))}
</td></tr>
`
    case 'changes':
      return html`${block.changes.map(
        (
          { label, before, now },
          index,
        ) => html`<tr><td style="padding:${index === 0 ? top : '0'} 16px 0 28px;font-size:0;">
  ${columns(
    column(
      `${label} – ${words.before}`,
      html`${before.map((line) => html`<p class="soft" dir="auto" style="${styles.old}">${line}</p>`)}`,
    ),
    column(`${label} – ${words.now}`, html`${now.map(strong)}`),
  )}
</td></tr>
`,
      )}`
    case 'amounts':
      return html`<tr><td style="padding:${isFirst ? '20px' : '2px'} 28px 20px;">
  <table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0">
  ${block.rows.map(
    ({ label, amount, isTotal }) => html`<tr>
    <td class="text line" style="${isTotal ? styles.strong : styles.value}${styles.line}padding:7px 12px 7px 0;">${label}</td>
    <td class="text line" align="right" valign="bottom" style="${styles.amount}${isTotal && 'font-weight:600;'}${styles.line}padding:7px 0;">${amount}</td>
  </tr>
  `,
  )}</table>
</td></tr>
`
    case 'link':
      return html`<tr><td align="center" style="padding:0 28px 11px;">
  <p style="${styles.value}"><a class="link" href="${block.url}" style="${styles.link}color:${palette.light.link};">${block.label}</a></p>
</td></tr>
`
    case 'button':
      return button(block, palette)
    case 'quote':
      return html`<tr><td style="padding:${top} 28px 20px;">
  <p class="soft" style="${styles.label}">${block.label}</p>
  <blockquote class="line" dir="auto" style="${styles.quote}">${block.lines.map(plain)}</blockquote>
</td></tr>
`
    case 'notes':
      return html`<tr><td style="padding:${top} 28px 12px;">
  ${block.label !== undefined && html`<p class="soft" style="${styles.label}">${block.label}</p>`}
  ${notesHtml(block.text, {
    text: html` class="text" style="${styles.value}padding-bottom:8px;"`,
    list: html` style="margin:0;padding:0 0 0 24px;"`,
    link: html` class="link" style="color:${palette.light.link};"`,
  })}
</td></tr>
`
    case 'sentences':
      return html`<tr><td style="padding:${top} 28px 12px;">
  ${block.sentences.map((sentence) => html`<p class="text" style="${styles.value}padding-bottom:8px;">${sentence}</p>`)}
</td></tr>
`
  }
}

/** A table, because Outlook ignores the padding of a link. */
const button = ({ url, label }: Extract<Block, { type: 'button' }>, { light: { accent, onAccent } }: Palette): Html =>
  html`<tr><td align="center" style="padding:4px 28px 22px;">
  <table role="presentation" cellpadding="0" cellspacing="0" border="0"><tr>
    <td class="line" bgcolor="${accent}" style="${styles.button}background-color:${accent};"><a href="${url}" style="${styles.link}font-weight:600;text-decoration:none;color:${onAccent};">${label}</a></td>
  </tr></table>
</td></tr>
`

const band = (said: string): Html => html`<tr><td class="notice" style="padding:13px 28px;${tones.notice}">
  <p style="${styles.headline}">${said}</p>
</td></tr>
`

// On white, which most logos are made for, and no larger than a line of letters beside the title.
function picture(logo: string): Html {
  return html`<table role="presentation" cellpadding="0" cellspacing="0" border="0" style="margin:0 0 16px;"><tr>
    <td bgcolor="${paper}" style="${styles.logoFrame}"><img src="${logo}" height="45" alt="" style="${styles.logo}"></td>
  </tr></table>
  `
}

/** The part that is shown at the entrance: QR code, ticket code, and name. */
function stub({ holder, company, code }: Extract<Block, { type: 'ticket' }>, words: Words, cid: string): Html {
  const picture = html`<img src="cid:${cid}" width="220" height="220" alt="${fill(words.qrCode, { code })}" style="display:block;border:0;border-radius:12px;">`
  return html`<table role="presentation" cellpadding="0" cellspacing="0" border="0"><tr>
    <td bgcolor="${paper}" style="background-color:${paper};border-radius:12px;">${picture}</td>
  </tr></table>
  <p class="text" style="${styles.code}padding:8px 0 14px;">${code}</p>
  <p class="text" dir="auto" style="${styles.holder}">${holder}</p>
  ${company && html`<p class="soft" dir="auto" style="${styles.soft}">${company}</p>`}`
}

// The tear line of a paper ticket: a dashed line between two notches, half circles in the colour of the page.
const notch = (corners: string) =>
  html`<td class="page" width="10" style="${styles.notch}border-radius:${corners};">&nbsp;</td>`
const tear = html`<table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"><tr>
  ${notch('0 10px 10px 0')}
  <td style="padding:0 8px;"><div class="line" style="${styles.tear}">&nbsp;</div></td>
  ${notch('10px 0 0 10px')}
</tr></table>`

function detail({ label, lines, link, isList = false }: Detail, { light }: Palette, style: string): Html {
  const address =
    link &&
    html`<p style="${styles.value}"><a class="link" href="${link}" style="${styles.link}color:${light.link};">${link}</a></p>`
  return column(label, html`${lines.map((line, i) => (i === 0 && !isList ? strong : plain)(line))}${address}`, style)
}

/** Two by two. */
function pairs([left, right, ...others]: Html[]): Html {
  const here = right ? columns(left as Html, right) : (left ?? html``)
  return others.length > 0 ? html`${here}${pairs(others)}` : here
}

const strong = (text: string) => html`<p class="text" dir="auto" style="${styles.strong}">${unbroken(text)}</p>`
const plain = (text: string) => html`<p class="text" dir="auto" style="${styles.value}">${unbroken(text)}</p>`

// The longest IBANs fit into 320 pixels in small print, also in a wide font.
const sizeOf = ({ length }: string) => `${length > 35 ? 10 : length > 28 ? 12 : 16}`

/** A line in which an IBAN stays on one line. */
const unbroken = (text: string): Html =>
  html`${ibansIn(text).map((part, i) =>
    i % 2 === 1
      ? html`<span style="white-space:nowrap;font-weight:400;font-size:${sizeOf(part)}px;">${part}</span>`
      : part,
  )}`

// Whitespace between inline blocks would be as wide as a letter, so the parent has font size 0.
const columns = (
  left: Html,
  right: Html,
) => html`<!--[if mso]><table role="presentation" width="100%" cellpadding="0" cellspacing="0" border="0"><tr><td width="50%" valign="top"><![endif]-->
  ${left}
  <!--[if mso]></td><td width="50%" valign="top"><![endif]-->
  ${right}
  <!--[if mso]></td></tr></table><![endif]-->`

const footLink = (url: string, label: string, { light }: Palette): Html =>
  html`<p style="${styles.soft}"><a class="link" href="${url}" style="${styles.link}${styles.smaller}color:${light.link};">${label}</a></p>`

const column = (
  label: string,
  content: Html,
  style: string = styles.column,
) => html`<div style="${style}"><div style="${styles.cell}">
    <p class="soft" style="${styles.label}">${label}</p>
    ${content}
  </div></div>`
