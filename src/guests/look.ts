// The look of all that people see: the one place for colours, sizes of letters and corners of pages and e-mails. Colours follow from the
// organiser's one so that text on them can be read: every pair has the contrast that WCAG 2.2 asks of text, 4.5 to 1
// (https://www.w3.org/TR/WCAG22/#contrast-minimum). The door page runs it, too: it must import nothing.

const [white, black] = ['#ffffff', '#000000']
const least = 4.5

/** That of an organisation without a colour of its own, and of pages that know of none. */
const ofUsher = '#2f4bd6'

/** Pixels, at the browser's usual size of letters. Controls and cards have round corners. */
export const sizes = { small: 14, medium: 16, large: 20, title: 24, radius: 8, cardRadius: 16 }

// Codes and logos stand on paper, in both schemes. The last three are the door's: their brightness differs as well as their colour.
const always = { paper: white, ink: black, welcome: '#00573a', caution: '#ffc53d', stop: '#8d0017' }

/** What no organisation changes: surfaces, what stands on them, and the tones, each with the colour of its text. */
export const base = {
  light: {
    ...always,
    page: '#eceef5',
    card: white,
    text: '#1a1d2b',
    soft: '#5a6178',
    line: '#c9cede',
    good: '#dff5e4',
    onGood: '#0d4a20',
    notice: '#fff3cf',
    onNotice: '#4d3800',
    bad: '#fde2e0',
    onBad: '#7a1212',
    final: '#b3201a',
    onFinal: white,
  },
  dark: {
    ...always,
    page: '#12141f',
    card: '#1e2132',
    text: '#f1f3fa',
    soft: '#a9b0c8',
    line: '#4a5170',
    good: '#123a20',
    onGood: '#c4f0d0',
    notice: '#433300',
    onNotice: '#ffe9a8',
    bad: '#5a1717',
    onBad: '#ffd9d6',
    final: '#ff7468',
    onFinal: '#3d0906',
  },
}

/** `#rrggbb`, all of them. `accent` is a surface, such as the head of a ticket. */
type Colours = (typeof base)['light'] & Record<'accent' | 'onAccent' | 'softOnAccent' | 'link', string>
export type Palette = { light: Colours; dark: Colours }

/** @param colour `#rrggbb`, or null for Usher's own. */
export function paletteOf(colour: string | null): Palette {
  const accent = colour ?? ofUsher
  // On any colour black or white has 4.58 to 1 at least.
  const onAccent = contrast(white, accent) >= least ? white : black
  const own = { accent, onAccent, softOnAccent: readable(mix(accent, onAccent, 0.75), accent, onAccent) }
  const { light, dark } = base
  // Links stand on page and card: of the light two the page is darker, of the dark two the card is lighter.
  return {
    light: { ...light, ...own, link: readable(accent, light.page, black) },
    dark: { ...dark, ...own, link: readable(accent, dark.card, white) },
  }
}

/** Sizes and colours as custom properties of a page, such as `--on-accent`. On paper they are the light ones. */
export const propertiesOf = ({ light, dark }: Palette): string =>
  `:root { color-scheme: light dark; ${listed({ ...sizesInRem, ...light })} }
@media screen and (prefers-color-scheme: dark) { :root { ${listed(dark)} } }
`

const sizesInRem = Object.fromEntries(Object.entries(sizes).map(([name, pixels]) => [name, `${pixels / 16}rem`]))

const listed = (properties: Record<string, string>): string =>
  Object.entries(properties)
    .map(([name, value]) => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}: ${value}`)
    .join('; ')

/** The contrast ratio of WCAG, from 1 to 21. */
export function contrast(one: string, other: string): number {
  const [lighter, darker] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number]
  return (lighter + 0.05) / (darker + 0.05)
}

/** The colour, moved towards `end` as far as it takes to be read on the background, on which `end` can be read. */
function readable(colour: string, background: string, end: string): string {
  const steps = 32
  for (let step = 0; step < steps; step++) {
    const mixed = mix(colour, end, step / steps)
    if (contrast(mixed, background) >= least) return mixed
  }
  return end
}

/** @param share of the second colour, from 0 to 1. */
function mix(one: string, other: string, share: number): string {
  const to = channels(other)
  const mixed = channels(one).map((value, i) => Math.round(value + ((to[i] as number) - value) * share))
  return `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`
}

function luminance(colour: string): number {
  const [red, green, blue] = channels(colour).map((value) => {
    const share = value / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as [number, number, number]
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

const channels = (colour: string): number[] => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16))
