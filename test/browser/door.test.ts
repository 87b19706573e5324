// What the server gives the door page: everything by itself, and little.

import { expect, inject, test } from 'vitest'
import { doorFiles } from '../../src/apps/door/door.ts'

const get = (path: string) => fetch(`${inject('apiUrl')}${path}`)

test('the page may load from its own server only, and run no text but its own', async () => {
  const policy = Object.fromEntries(
    ((await get('/door')).headers.get('content-security-policy') ?? '').split(';').map((directive) => {
      const [name, ...sources] = directive.trim().split(' ')
      return [name, sources.join(' ')]
    }),
  )
  expect(policy).toMatchObject({
    'default-src': "'none'",
    'script-src': "'self' 'wasm-unsafe-eval'",
    'connect-src': "'self'",
    'frame-ancestors': "'none'",
    'form-action': "'none'",
  })
})

test('the page is under 220 kB without the reader of codes, and every file is served and kept', async () => {
  const files = [...doorFiles()]
  const bytes = files.filter(([path]) => !path.endsWith('.wasm')).reduce((sum, [, { length }]) => sum + length, 0)
  expect(bytes).toBeLessThan(220_000)

  const worker = await get('/door/service-worker.ts')
  expect(worker.headers.get('service-worker-allowed')).toBe('../door')
  const { paths } = JSON.parse(/^const door = (.*)$/m.exec(await worker.text())?.[1] ?? '')
  expect(paths.toSorted()).toEqual(files.map(([path]) => path || '../door').toSorted())
  for (const [path, content] of files) {
    const answer = await get(path === '' ? '/door' : `/door/${path}`)
    expect([path, answer.status]).toEqual([path, 200])
    expect(Buffer.from(await answer.arrayBuffer()).equals(content), path).toBe(true)
    const isScript = /\.(ts|js)$/.test(path)
    if (isScript) expect(answer.headers.get('content-type')).toMatch(/^(text|application)\/javascript/)
    if (path.endsWith('.wasm')) expect(answer.headers.get('content-type')).toBe('application/wasm')
  }
})

test('types and comments are stripped, and nothing else of the folder is served', async () => {
  expect(await (await get('/door/offline-rules.ts')).text()).not.toMatch(/export type|^ *\/\/|\n\n/m)
  for (const path of ['tsconfig.json', 'page.html', '../door.ts', '%2e%2e/door.ts']) {
    expect((await get(`/door/${path}`)).status).toBe(404)
  }
})
