// A copy of Usher's programs with a mistake in them, to be run in place of them.

import { cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { repository } from './stack.ts'

/** A part of a file's text, which stands there once, and what takes its place. */
export type Patch = [file: string, from: string, to: string]

/** @param folder is made. @throws when a text is not there, or more than once: the mutant is to be changed with the code. */
export async function patchedTree(folder: string, patches: Patch[]): Promise<string> {
  await mkdir(folder)
  for (const part of ['bin', 'docs', 'scripts', 'src', 'supabase', 'package.json']) {
    await cp(join(repository, part), join(folder, part), { recursive: true })
  }
  await symlink(join(repository, 'node_modules'), join(folder, 'node_modules'))
  for (const [file, from, to] of patches) {
    const path = join(folder, file)
    const parts = (await readFile(path, 'utf8')).split(from)
    if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times: ${from}`)
    await writeFile(path, parts.join(to))
  }
  return folder
}
