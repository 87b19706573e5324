// docs/reference/settings.md: .env.example as tables, with the defaults of the settings' schema.

import { readFileSync } from 'node:fs'
import { Environment } from '../../src/cli/config.ts'
import { code, page, table } from './markdown.ts'

export function settingsPage(): string {
  const [head = '', ...chapters] = readFileSync('.env.example', 'utf8').split(/^# [=-]{3} (.+?) [=-]+$/m)
  return page(
    '# Settings',
    prose(head),
    ...chapters.flatMap((text, at) => (at % 2 === 0 ? [`## ${text}`] : [settings(text)])),
  )
}

/** Blocks of a chapter: comments, then the variables that they are about. */
function settings(chapter: string): string {
  const rows = chapter
    .trim()
    .split('\n\n')
    .map((block) => {
      const names = [...block.matchAll(/^#([A-Z_]+)=/gm)].map(([, name = '']) => name)
      const meaning = prose(block.replace(/^#[A-Z_]+=.*$/gm, ''))
      return [names.map(code).join('<br>'), names.map(defaultOf).join('<br>'), meaning]
    })
  return table('setting | default | meaning', rows)
}

const prose = (comment: string): string => comment.trim().replaceAll(/^# ?/gm, '').replaceAll('\n', ' ')

const defaults: Record<string, unknown> = Environment.parse({})
const defaultOf = (name: string): string => code(`${defaults[name] ?? ''}`).replace('``', '')
