// The pages of a sign-in as a person meets them: on a telephone, in their language, in the light and in the dark, without a script.

import { expect, inject, test } from 'vitest'
import { hasBrowser } from '../../../scripts/support/browser.ts'
import { signInLanguages } from '../../../src/apps/sign-in/words.ts'
import { expectReadable } from '../../browser/accessibility.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { openPerson, paste } from './client.ts'
import { callback, elsewhere, pkce, register, requestUrl } from './walk.ts'

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

test.each(Object.entries(signInLanguages))(
  '%s is spoken where it is asked for, with every sentence',
  async (language, words) => {
    const { body } = await register(inject('apiUrl'), {}, elsewhere())
    const headers = { Accept: 'text/html', 'Accept-Language': `${language},en;q=0.1` }
    const begun = await fetch(inject('apiUrl') + requestUrl(body.client_id as string, pkce().challenge), {
      redirect: 'manual',
      headers,
    })
    const cookie = begun.headers
      .getSetCookie()
      .map((line) => line.split(';')[0])
      .join('; ')
    const login = await fetch(new URL(begun.headers.get('location') ?? '', inject('apiUrl')), {
      headers: { ...headers, cookie },
    })
    const text = await login.text()
    expect(text).toContain(`<html lang="${language}">`)
    expect(text.replaceAll('&#39;', "'")).toContain(words.keyHint)
    expect(words.keyOfProgram).toContain('npx usher keys create --organisation SLUG --person ')
    const said = Object.values(words).flatMap((value) => (typeof value === 'string' ? [value] : Object.values(value)))
    expect(said.filter((sentence) => sentence.trim() === '')).toEqual([])
    expect(new Set(Object.values(words.scopeSentences)).size).toBe(7)
    expect(
      [words.allowTitle, words.allowMoreTitle, words.signInFor].every((sentence) => sentence.includes('{client}')),
    ).toBe(true)
    expect([words.onDevice.includes('{host}'), words.keyEnds.includes('{date}')]).toEqual([true, true])
  },
)

test('a person who is nowhere to be returned to reads why', async () => {
  const answer = await fetch(`${inject('apiUrl')}/oauth/auth?redirect_uri=${callback}`, {
    headers: { Accept: 'text/html' },
  })
  expect([answer.status, answer.headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8'])
  expect(await answer.text()).toContain('invalid_request')
})
