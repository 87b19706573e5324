// The colours of an e-mail or ticket page, worked out from the organiser's one colour so that text on them can be read: every pair
// has the contrast that WCAG 2.2 asks of text, 4.5 to 1 (https://www.w3.org/TR/WCAG22/#contrast-minimum).

/** `#rrggbb`, all of them. */
export type Palette = {
  /** A surface, such as the head of a ticket. */
  accent: string
  /** Text on it. */
  onAccent: string
  /** Text on it that stands back. */
  softOnAccent: string
  /** Links on the light page and card. */
  linkOnLight: string
  /** Links on the dark page and card. */
  linkOnDark: string
}

/** The backgrounds on which links stand: of light ones the darkest, of dark ones the lightest. */
export const backgrounds = { light: '#eceef5', dark: '#1e2132' }

const [white, black] = ['#ffffff', '#000000']
const least = 4.5

/** That of an organisation without a colour of its own. */
const usher: Palette = {
  accent: '#26306b',
  onAccent: white,
  softOnAccent: '#c9d1ff',
  linkOnLight: '#2f4bd6',
  linkOnDark: '#9db4ff',
}

/** @param accent `#rrggbb`, or null for Usher's own. */
export function paletteOf(accent: string | null): Palette {
  if (accent === null || accent === usher.accent) return usher
  // On any colour black or white has 4.58 to 1 at least.
  const onAccent = contrast(white, accent) >= least ? white : black
  return {
    accent,
    onAccent,
    softOnAccent: readable(mix(accent, onAccent, 0.75), accent, onAccent),
    linkOnLight: readable(accent, backgrounds.light, black),
    linkOnDark: readable(accent, backgrounds.dark, white),
  }
}

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
