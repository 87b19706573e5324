// The pages of a sign-in as a person meets them: on a telephone, in the light and in the dark, without a script.

import { expect, inject, test } from 'vitest'
import { hasBrowser } from '../../../scripts/support/browser.ts'
import { expectReadable } from '../../browser/accessibility.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { openPerson, paste } from './client.ts'
import { callback, pkce, register, requestUrl } from './walk.ts'

test.skipIf(!hasBrowser)('each page can be read by everybody, and fits on a telephone', async () => {
  const key = await (await createOrganisation()).personKey()
  const { body } = await register(inject('apiUrl'))
  const { page } = await openPerson({ javaScriptEnabled: true, bypassCSP: true })
  const expectSound = async () => {
    await expectReadable(page, { hasOutline: true })
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  }
  await page.goto(inject('apiUrl') + requestUrl(body.client_id as string, pkce().challenge))
  await expectSound()
  await paste(page, key)
  await expectSound()
  // A box has to be ticked.
  for (const box of await page.getByRole('checkbox').all()) await box.setChecked(false)
  await page.getByRole('button', { name: 'Allow' }).click()
  expect(await page.getByRole('alert').textContent()).toContain('at least one')
  await expectSound()
  await page.goto(`${inject('apiUrl')}/oauth/grants`)
  await expectSound()
  await page.goto(`${inject('apiUrl')}/oauth/auth`)
  await expectSound()
})

test('a person who is nowhere to be returned to reads why', async () => {
  const answer = await fetch(`${inject('apiUrl')}/oauth/auth?redirect_uri=${callback}`, {
    headers: { Accept: 'text/html' },
  })
  expect([answer.status, answer.headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8'])
  expect(await answer.text()).toContain('invalid_request')
})
