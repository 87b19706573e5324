// A telephone at the door, without a camera and sound: how tests open the page on it, and what staff do with it.

import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'
import { sharedBrowser } from '../support/browser.ts'
import { expectReadable as expectReadableBy, outline } from './accessibility.ts'

export async function newContext(options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await (await sharedBrowser()).newContext({
    viewport: { width: 390, height: 844 },
    reducedMotion: 'reduce',
    ...options,
  })
  await context.addInitScript(noDevices)
  return context
}

export async function pageOf(context: BrowserContext): Promise<Page> {
  const page = await context.newPage()
  page.setDefaultTimeout(120_000)
  return page
}

// The sounds are made, but not played: a context that plays keeps two threads busy, with silence as well.
const noDevices = `
  navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('', 'NotFoundError'))
  AudioContext = class extends OfflineAudioContext {
    constructor() { super(1, 48_000, 48_000) }
    async resume() {}
  }`

/** Whoever opens the page for the first time is asked what the device is. */
export const setUp = async (page: Page, device = '', keep = true) => {
  await page.getByLabel('Name of this device').fill(device)
  await page.getByLabel('Keep the guest list').setChecked(keep)
  await page.getByRole('button', { name: 'Continue' }).click()
}
/** Opens the page by its link for the first time, and waits until the list is there. */
export async function openDoor(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await setUp(page)
  await page.getByText('Saved on this device').waitFor()
}
/** Where the event has points, one has to be chosen before anything is scanned. */
export const choose = (page: Page, point = 'The whole event') => page.getByLabel('Check-in point').selectOption(point)
export const start = (page: Page) => page.getByRole('button', { name: 'Start scanning' }).click()
export const shown = async (page: Page, reason: string) => {
  await page.locator(`.verdict[data-reason=${reason}]`).waitFor()
}
export const next = (page: Page) => page.getByRole('button', { name: 'Next' }).click()
/** As an external scanner types: all keys at once. Each after the other, they are as slow as a person's on a busy machine. */
export const scanExternally = async (page: Page, code: string) => {
  const keys = [...code, 'Enter']
  await Promise.all(keys.map((key) => page.keyboard.down(key)))
  await Promise.all(keys.map((key) => page.keyboard.up(key)))
}
export const typeCode = async (page: Page, code: string) => {
  await page.getByRole('button', { name: 'Code' }).click()
  await page.getByLabel('Code of the ticket').fill(code)
  await page.getByRole('button', { name: 'Check in' }).click()
}

export async function expectReadable(page: Page, ...inSchemes: ('light' | 'dark')[]): Promise<void> {
  expect(await outline(page)).toEqual({ overflow: false, mains: 1, headings: 1 })
  await expectReadableBy(page, { inSchemes })
}
