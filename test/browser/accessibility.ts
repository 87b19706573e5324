// What a page is like for its reader: the sizes and colour schemes it is tried in, and what axe finds in it (WCAG 2.2).

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { AxeResults } from 'axe-core'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'

export const widths = [320, 375, 1280]
export const schemes = ['light', 'dark'] as const

export const atWidth = (page: Page, width: number): Promise<void> => page.setViewportSize({ width, height: 844 })

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What breaks the outline of a page, though axe calls it moderate: text outside of landmarks, two of one name, a level left out. */
const ofOutline = [
  'region',
  'landmark-one-main',
  'landmark-unique',
  'landmark-no-duplicate-main',
  'heading-order',
  'page-has-heading-one',
]

/** What is serious or critical in a part of the page, or breaks its outline: the rule, and where it is broken. */
async function obstacles(page: Page, part: string, rules: string[] | null, hasOutline: boolean): Promise<string[]> {
  if (await page.evaluate(`typeof axe === 'undefined'`)) await page.evaluate(axe)
  const options = JSON.stringify({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) })
  const { violations } = (await page.evaluate(`axe.run('${part}', ${options})`)) as AxeResults
  return violations
    .filter(({ id, impact }) => impact === 'serious' || impact === 'critical' || (hasOutline && ofOutline.includes(id)))
    .flatMap(({ id, nodes }) => nodes.slice(0, 5).map(({ target }) => `${id}: ${target.join(' ')}`))
}

type Reading = {
  part?: string
  inSchemes?: readonly (typeof schemes)[number][]
  /** It is a whole page of text, whose outline is tried as well. */
  hasOutline?: boolean
  /** What else holds in each scheme. */
  also?: (scheme: (typeof schemes)[number]) => Promise<void>
}

/** The page can be read by everybody. All rules are tried in the first scheme, and in the other the contrast of text: only colours differ. */
export async function expectReadable(
  page: Page,
  { part = 'html', inSchemes = schemes, hasOutline = false, also }: Reading = {},
): Promise<void> {
  for (const [i, colorScheme] of inSchemes.entries()) {
    await page.emulateMedia({ colorScheme })
    // A frame later the page was told.
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
    expect(await obstacles(page, part, i === 0 ? null : ['color-contrast'], hasOutline), colorScheme).toEqual([])
    await also?.(colorScheme)
  }
}

/** The page itself is dark, or bright, not only what stands on it. */
export async function expectScheme(page: Page, scheme: (typeof schemes)[number]): Promise<void> {
  const colour = String(await page.evaluate('getComputedStyle(document.body).backgroundColor'))
  const brightest = Math.max(...(/^rgb\(([\d, ]+)\)$/.exec(colour)?.[1] ?? '').split(',').map(Number))
  if (scheme === 'dark') expect(brightest, colour).toBeLessThan(60)
  else expect(brightest, colour).toBeGreaterThan(230)
}

const outlineOfWindow = `({
  overflow: document.documentElement.scrollWidth > innerWidth,
  mains: document.querySelectorAll('main, [role=main]').length,
  headings: document.querySelectorAll('h1').length,
})`

type Outline = { overflow: boolean; mains: number; headings: number }

/** Whether nothing is to be scrolled sideways for, and how often main and h1 stand in the page. */
export const outline = async (page: Page): Promise<Outline> => (await page.evaluate(outlineOfWindow)) as Outline

/** The same of documents at several widths, in a frame of the page: many of them take a fraction of the time that the page itself would. */
export const outlinesInFrame = async (page: Page, documents: string[], inWidths: number[]): Promise<Outline[][]> =>
  (await page.evaluate(`(async () => {
    const found = []
    for (const text of ${JSON.stringify(documents)}) {
      const frame = document.body.appendChild(document.createElement('iframe'))
      frame.style.cssText = 'border: 0; height: 844px'
      await new Promise((loaded) => {
        frame.onload = loaded
        frame.srcdoc = text
      })
      found.push(${JSON.stringify(inWidths)}.map((width) => {
        frame.style.width = width + 'px'
        return frame.contentWindow.eval(${JSON.stringify(outlineOfWindow)})
      }))
      frame.remove()
    }
    return found
  })()`)) as Outline[][]
