// One Chromium for all test files of a worker, with a camera that shows the film of the file that runs. It ends with the worker.

import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { hasBrowser, openBrowser } from '../../scripts/support/browser.ts'
import { cameraArguments } from './ticket-film.ts'

/** What the camera shows, once somebody has written it: see `filmTicket`. */
export const film = join(tmpdir(), `usher-test-film-${process.pid}.y4m`)

let browser: Promise<Browser> | undefined

/** Tests close the contexts and pages that they open, and never the browser. */
export function sharedBrowser(): Promise<Browser> {
  browser ??= openBrowser(cameraArguments(film))
  return browser
}

/** Waits until the promise that the expression gives is one of true: `waitForFunction` takes any promise for a yes. */
export const becomesTrue = (page: Page, expression: string): Promise<void> =>
  expect.poll(() => page.evaluate(expression)).toBe(true)

/** A test that a machine without a browser skips. */
export const inBrowser = test.skipIf(!hasBrowser)
