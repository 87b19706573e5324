// Headless Chromium, where this machine has one, without requests of its own.

import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'

// The shell has no windows to prepare for: a page costs it a fifth of the processor time.
const executablePath = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome']
  .map((name) => `/usr/bin/${name}`)
  .find(existsSync)
const quiet = '--disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-sync'.split(' ')

export const hasBrowser = executablePath !== undefined

export const openBrowser = (args: readonly string[] = []): Promise<Browser> =>
  chromium.launch({
    executablePath: executablePath ?? '',
    // Chromium has no sandbox for root.
    chromiumSandbox: process.getuid?.() !== 0,
    args: [...quiet, ...args],
  })
