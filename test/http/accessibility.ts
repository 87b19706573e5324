// What a page looks like to its reader: the sizes and colour schemes it is tried in, and how well its text stands out (WCAG 2.2).

import type { Page } from 'playwright-core'
import { expect } from 'vitest'

export const widths = [320, 390, 1280]
export const schemes = ['light', 'dark'] as const

export const atWidth = (page: Page, width: number): Promise<void> => page.setViewportSize({ width, height: 844 })

type Colour = [red: number, green: number, blue: number, alpha: number]

/** Text that is drawn, with its colour, its opacity, and the backgrounds behind it, the nearest first. */
const drawnTexts = `(() => {
  const texts = []
  const styles = new Map()
  const styleOf = (element) => {
    if (!styles.has(element)) {
      const { color, opacity, backgroundColor } = getComputedStyle(element)
      styles.set(element, { color, opacity, backgroundColor })
    }
    return styles.get(element)
  }
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim()
    const element = walker.currentNode.parentElement
    const range = document.createRange()
    range.selectNodeContents(walker.currentNode)
    const { width, height } = range.getBoundingClientRect()
    if (text === '' || width === 0 || height === 0 || element.closest('option')) continue
    const behind = []
    for (let e = element; e; e = e.parentElement) behind.push(styleOf(e))
    texts.push({
      text,
      colour: behind[0].color,
      opacity: behind.reduce((product, style) => product * style.opacity, 1),
      backgrounds: behind.map((style) => style.backgroundColor),
    })
  }
  return texts
})()`

/** Texts of less contrast than 4.5:1, each once. */
export async function faintTexts(page: Page): Promise<string[]> {
  type Text = { text: string; colour: string; opacity: number; backgrounds: string[] }
  const faint = ((await page.evaluate(drawnTexts)) as Text[]).flatMap(({ text, colour, opacity, backgrounds }) => {
    const ground = backgrounds.reduceRight((below, background) => over(parse(background), below), opaque)
    const [red, green, blue, alpha] = parse(colour)
    const ratio = contrast(over([red, green, blue, alpha * opacity], ground), ground)
    return ratio < 4.5 ? [`${ratio.toFixed(2)}: ${colour} on ${ground.slice(0, 3)}: ${text.slice(0, 40)}`] : []
  })
  return [...new Set(faint)]
}

/** The page itself is dark, or bright, not only what stands on it. */
export async function expectScheme(page: Page, scheme: (typeof schemes)[number]): Promise<void> {
  const light = luminance(parse((await page.evaluate('getComputedStyle(document.body).backgroundColor')) as string))
  if (scheme === 'dark') expect(light).toBeLessThan(0.05)
  else expect(light).toBeGreaterThan(0.8)
}

// A page that says nothing of its background has a transparent one, and is judged as if it were white.
const opaque: Colour = [255, 255, 255, 1]

function parse(colour: string): Colour {
  const numbers = /^rgba?\(([\d., ]+)\)$/.exec(colour)?.[1]?.split(',').map(Number)
  if (numbers === undefined) throw new Error(`not an rgb() colour: ${colour}`)
  const [red = 0, green = 0, blue = 0, alpha = 1] = numbers
  return [red, green, blue, alpha]
}

const over = ([red, green, blue, alpha]: Colour, below: Colour): Colour => [
  red * alpha + below[0] * (1 - alpha),
  green * alpha + below[1] * (1 - alpha),
  blue * alpha + below[2] * (1 - alpha),
  1,
]

function luminance(colour: Colour): number {
  const [red, green, blue] = over(colour, opaque).map((channel) => {
    const share = channel / 255
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4
  }) as Colour
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrast(one: Colour, other: Colour): number {
  const [dark = 0, light = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b)
  return (light + 0.05) / (dark + 0.05)
}

/** Whether nothing is to be scrolled sideways for, and how often main and h1 stand in the page. */
export const outline = async (page: Page): Promise<{ overflow: boolean; mains: number; headings: number }> =>
  (await page.evaluate(`({
    overflow: document.documentElement.scrollWidth > innerWidth,
    mains: document.querySelectorAll('main, [role=main]').length,
    headings: document.querySelectorAll('h1').length,
  })`)) as { overflow: boolean; mains: number; headings: number }
