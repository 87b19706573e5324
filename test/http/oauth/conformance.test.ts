// The official conformance suite's scenarios for authorization servers, in the newest revision. Which there are, it says itself.

import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { freePort } from '../../../src/local/ports.ts'
import { checksIn, cli } from '../../support/conformance-suite.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { ownApp } from '../../support/own-app.ts'
import { decide, formTokenOf, Jar, register } from './walk.ts'

test('metadata and the grant of a code are what the revision asks for', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'usher-conformance-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const { url } = await ownApp({ trustProxy: true })
  const key = await (await createOrganisation()).personKey()
  const port = await freePort()
  const { body } = await register(url, { redirect_uris: [`http://127.0.0.1:${port}/callback`] })
  const args = [
    ...['authorization', '--url', `${url}/oauth`, '--resource', `${url}/api/mcp/connect`],
    ...['--client-id', body.client_id as string, '--port', String(port), '--spec-version', '2026-07-28', '-o', folder],
  ]
  const suite = spawn(process.execPath, [cli, ...args], { cwd: folder })
  const ended = new Promise((resolve) => suite.once('close', resolve))
  let said = ''
  let sent = false
  const listen = (chunk: Buffer) => {
    said += chunk
    const [link] = new RegExp(`${url}/oauth/auth\\?\\S+(?=\\n)`).exec(said) ?? []
    if (link === undefined || sent) return
    sent = true
    void (async () => {
      const jar = new Jar(url)
      const { location } = await jar.ask(link)
      await jar.ask(location, { form: { action: 'sign_in', key, form_token: formTokenOf(await jar.ask(location)) } })
      await fetch(await decide({ jar, at: location, clientId: '', verifier: '', page: await jar.ask(location) }))
    })().catch(() => suite.kill())
  }
  suite.stdout.on('data', listen)
  suite.stderr.on('data', listen)
  await ended
  const checks = [...(await checksIn(folder)).values()].flat()
  expect(sent).toBe(true)
  expect(checks.length).toBeGreaterThan(1)
  expect(checks.filter(({ status }) => status !== 'SUCCESS' && status !== 'INFO')).toEqual([])
})
