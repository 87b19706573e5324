// The folders of src/ and what they import, against the order that docs/contribute/architecture.md states.

import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'

const page = readFileSync('docs/contribute/architecture.md', 'utf8')
const order = [...page.matchAll(/^\| `src\/(\w+)\/` \|/gm)].map(([, folder = '']) => folder)

const files = globSync('src/**/*.ts')
const imports = new Map(
  files.map((file) => {
    const specifiers = readFileSync(file, 'utf8').matchAll(
      /^(?:import|export)\b[^'\n]*(?:\n[^']*?)??'(\.{1,2}\/[^']+\.ts)'/gm,
    )
    return [file, [...specifiers].map(([, to = '']) => normalize(join(dirname(file), to)))]
  }),
)
const folderOf = (file: string) => file.split('/')[1] ?? ''

test('every folder has its place, and what is imported is read', () => {
  const folders = new Set(files.map(folderOf))
  expect([...folders].sort()).toEqual([...order].sort())
  expect(imports.get('src/cli/app.ts')).toContain('src/http/server.ts')
  expect([...imports.values()].flat().length).toBeGreaterThan(400)
  expect([...imports.values()].flat().filter((file) => !files.includes(file))).toEqual([])
})

test('imports point up the list, and none out of or into what runs in browsers', () => {
  const wrong = [...imports].flatMap(([from, tos]) =>
    tos
      .filter(
        (to) =>
          order.indexOf(folderOf(to)) > order.indexOf(folderOf(from)) ||
          (isInBrowser(from) !== isInBrowser(to) && to !== runsInBoth),
      )
      .map((to) => `${from} imports ${to}`),
  )
  expect(wrong).toEqual([])
})

// It imports nothing, and is checked with the types of browsers too.
const runsInBoth = 'src/guests/look.ts'
const isInBrowser = (file: string) => /^src\/apps\/\w+\/browser\//.test(file)

test('http imports nothing of the courier', () => {
  const tos = [...imports].flatMap(([from, tos]) => (folderOf(from) === 'http' ? tos : []))
  expect(tos.filter((to) => folderOf(to) === 'courier')).toEqual([])
})

test('no import is circular', () => {
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (file: string, path: string[]) => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (done.has(file) || path.includes(file)) return
    for (const to of imports.get(file) ?? []) visit(to, [...path, file])
    done.add(file)
  }
  for (const file of files) visit(file, [])
  expect(circles).toEqual([])
})
