// Runs the code blocks of a page from top to bottom, as a reader who pastes them. The rules are in test/README.md, "Samples".

import { spawn } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect } from 'vitest'
import { withClient } from '../../src/local/client.ts'
import { repository } from '../cli/support.ts'

const run = ['bash', 'ts', 'sql']
const shown = ['sh', 'text', 'toml', 'http', 'csv', 'js', 'python', 'php']

/** isAnswer: JSON that stands directly below a block that runs. */
export type Fence = { language: string; text: string; line: number; isAnswer: boolean }

/** @throws if a language is in no rule, so that no block is left out by a slip. */
export function fencesOf(page: string): Fence[] {
  let before = { language: '', end: 0 }
  return [...page.matchAll(/^```(\S*)\n(.*?)^```$/gms)].map(({ 0: all, 1: language = '', 2: text = '', index }) => {
    const line = page.slice(0, index).split('\n').length
    if (![...run, ...shown, 'json'].includes(language))
      throw new Error(`line ${line}: a block of ${language || 'nothing'}`)
    const isBelow = page.slice(before.end, index).trim() === ''
    const isAnswer = language === 'json' && isBelow && ['bash', 'ts'].includes(before.language)
    before = { language, end: index + all.length }
    return { language, text, line, isAnswer }
  })
}

/** A folder in which programs find the libraries of this checkout. */
export function makeProject(folder: string) {
  symlinkSync(join(repository, 'node_modules'), join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
}

/** Saves the blocks that begin with the name of a file, and marks them as saved. */
export function savePrograms(fences: Fence[], folder: string) {
  for (const fence of fences) {
    const [, name] = /^\/\/ ([\w-]+\.ts)\n/.exec(fence.text) ?? []
    if (name === undefined) continue
    writeFileSync(join(folder, name), fence.text)
    fence.language = 'saved'
  }
}

/** @param folder where its files are saved. @param databaseUrl Postgres as Studio's role. */
export async function runSamples(page: string, folder: string, env: NodeJS.ProcessEnv, databaseUrl: string) {
  const fences = fencesOf(page)
  makeProject(folder)
  savePrograms(fences, folder)
  const programs: string[] = []
  const commands: string[] = []
  for (const fence of fences) {
    if (fence.language === 'bash') commands.push(fence.text)
    if (fence.language === 'ts') programs.push(fence.text)
  }
  const sessions = {
    bash: openSession(['bash', 'page.sh'], inBash(commands), folder, env),
    ts: openSession([process.execPath, 'page.ts'], inNode(programs), folder, env),
  }
  try {
    let printed = ''
    let reference = ''
    for (const { language, text, line, isAnswer } of fences) {
      try {
        if (language === 'bash' || language === 'ts') printed = await sessions[language].next()
        if (language === 'sql') {
          const sql = text.replaceAll('XXXXXXXX', reference)
          const results = [await withClient(databaseUrl, (client) => client.query(sql))].flat()
          reference = results.at(-1)?.rows[0]?.reference ?? reference
        }
        if (isAnswer) expect(JSON.parse(printed)).toEqual(expected(text))
        else if (language === 'json') JSON.parse(text)
      } catch (error) {
        throw new Error(`the block of line ${line}: ${(error as Error).message}\n${printed}`, { cause: error })
      }
    }
  } finally {
    for (const { close } of Object.values(sessions)) close()
  }
}

const end = '--- end of the block ---'

// Each block waits for a line, so that blocks of both languages run in the order of the page.
const inBash = (blocks: string[]): string =>
  [
    'set -euo pipefail',
    `npx() { if [ "$1" = --yes ]; then shift; fi; if [ "$1" = --package ]; then shift 2; fi; if [ "$1" = usher ]; then shift; node '${repository}/bin/usher.js' "$@"; else "node_modules/.bin/$1" "\${@:2}"; fi; }`,
    'exec 3<&0 4>&1 </dev/null',
    ...blocks.map((text) => `read -r _ <&3\nexec >printed\n${text}\ncat printed >&4\necho '${end}' >&4`),
  ].join('\n')

const inNode = (blocks: string[]): string =>
  [
    "const __lines = (await import('node:readline')).createInterface(process.stdin)[Symbol.asyncIterator]()",
    ...blocks.map((text) => `await __lines.next()\n${text}\nconsole.log('${end}')`),
  ].join('\n')

function openSession([command = '', file = '']: string[], text: string, cwd: string, env: NodeJS.ProcessEnv) {
  writeFileSync(join(cwd, file), text)
  const PATH = `${dirname(process.execPath)}:${env.PATH}`
  // A group of its own: it ends with the servers that a page starts.
  const child = spawn(command, [file], { cwd, env: { ...env, PATH, XDG_STATE_HOME: cwd }, detached: true })
  const ended = new Promise<never>((_, reject) => {
    child.on('close', (code) => reject(new Error(`${command} ended with ${code}\n${said}`)))
  })
  ended.catch(() => {})
  let said = ''
  let printed = ''
  let whenPrinted = () => {}
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text
    if (printed.includes(`${end}\n`)) whenPrinted()
  })
  child.stdin.on('error', () => {})
  return {
    /** Runs the next block. @returns what it prints. */
    async next(): Promise<string> {
      const done = new Promise<void>((resolve) => {
        whenPrinted = resolve
      })
      child.stdin.write('\n')
      await Promise.race([done, ended])
      const [block = '', ...others] = printed.split(`${end}\n`)
      printed = others.join('')
      return block
    },
    close() {
      try {
        process.kill(-(child.pid ?? 0), 'SIGKILL')
      } catch {
        // It has ended by itself.
      }
    },
  }
}

/** A sample of JSON as an expectation: "…" within a text matches anything, a bare … other elements or members. */
export function expected(sample: string): unknown {
  const open: string[] = []
  const json = sample.replace(/"(?:[^"\\]|\\.)*"|[[{\]}…]/g, (part) => {
    if (part === '…') return open.at(-1) === '[' ? '"\\n"' : '"\\n": 0'
    if ('[{'.includes(part)) open.push(part)
    if (']}'.includes(part)) open.pop()
    return part
  })
  return JSON.parse(json, (_, value) => {
    if (Array.isArray(value))
      return value.includes('\n') ? expect.arrayContaining(value.filter((one) => one !== '\n')) : value
    if (typeof value === 'string' && value !== '…')
      return value.includes('…') ? expect.stringMatching(anything(value)) : value
    if (value === '…') return expect.toSatisfy(() => true)
    if (value === null || typeof value !== 'object' || !('\n' in value)) return value
    const { '\n': _others, ...members } = value
    return expect.objectContaining(members)
  })
}

const anything = (text: string) => new RegExp(`^${text.split('…').map(RegExp.escape).join('.*')}$`, 's')
