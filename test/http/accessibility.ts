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

/** What is serious or critical in a part of the page: the rule, and where it is broken. */
async function obstacles(page: Page, part: string, rules: string[] | null): Promise<string[]> {
  if (await page.evaluate(`typeof axe === 'undefined'`)) await page.evaluate(axe)
  const options = JSON.stringify({ resultTypes: ['violations'], ...(rules && { runOnly: rules }) })
  const { violations } = (await page.evaluate(`axe.run('${part}', ${options})`)) as AxeResults
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, nodes }) => nodes.slice(0, 5).map(({ target }) => `${id}: ${target.join(' ')}`))
}

type Reading = {
  part?: string
  inSchemes?: readonly (typeof schemes)[number][]
  /** What else holds in each scheme. */
  also?: (scheme: (typeof schemes)[number]) => Promise<void>
}

/** The page can be read by everybody. All rules are tried in the first scheme, and in the other the contrast of text: only colours differ. */
export async function expectReadable(
  page: Page,
  { part = 'html', inSchemes = schemes, also }: Reading = {},
): Promise<void> {
  for (const [i, colorScheme] of inSchemes.entries()) {
    await page.emulateMedia({ colorScheme })
    // A frame later the page was told.
    await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))')
    expect(await obstacles(page, part, i === 0 ? null : ['color-contrast']), colorScheme).toEqual([])
    await also?.(colorScheme)
  }
}

/** Where the outline of the page is broken: text outside of landmarks, two of one name, a level of headings left out. */
export async function gaps(page: Page): Promise<string[]> {
  if (await page.evaluate(`typeof axe === 'undefined'`)) await page.evaluate(axe)
  const rules = [
    'region',
    'landmark-one-main',
    'landmark-unique',
    'landmark-no-duplicate-main',
    'heading-order',
    'page-has-heading-one',
  ]
  const { violations } = (await page.evaluate(`axe.run('html', { runOnly: ${JSON.stringify(rules)} })`)) as AxeResults
  return violations.flatMap(({ id, nodes }) => nodes.slice(0, 5).map(({ target }) => `${id}: ${target.join(' ')}`))
}

/** The page itself is dark, or bright, not only what stands on it. */
export async function expectScheme(page: Page, scheme: (typeof schemes)[number]): Promise<void> {
  const colour = String(await page.evaluate('getComputedStyle(document.body).backgroundColor'))
  const brightest = Math.max(...(/^rgb\(([\d, ]+)\)$/.exec(colour)?.[1] ?? '').split(',').map(Number))
  if (scheme === 'dark') expect(brightest, colour).toBeLessThan(60)
  else expect(brightest, colour).toBeGreaterThan(230)
}

/** Whether nothing is to be scrolled sideways for, and how often main and h1 stand in the page. */
export const outline = async (page: Page): Promise<{ overflow: boolean; mains: number; headings: number }> =>
  (await page.evaluate(`({
    overflow: document.documentElement.scrollWidth > innerWidth,
    mains: document.querySelectorAll('main, [role=main]').length,
    headings: document.querySelectorAll('h1').length,
  })`)) as { overflow: boolean; mains: number; headings: number }
