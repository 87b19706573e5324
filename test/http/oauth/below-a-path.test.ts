// A sign-in behind a proxy that strips a path and ends TLS: every address and cookie is as the browser sees it.

import { expect, test } from 'vitest'
import { createOrganisation } from '../../support/organisation.ts'
import { ownApp } from '../../support/own-app.ts'
import { codeGrant, decide, formTokenOf, Jar, pkce, register, requestUrl } from './walk.ts'

test('addresses have the path of PUBLIC_URL, and cookies stay below it', async () => {
  const { url } = await ownApp({ publicUrl: 'https://events.example/usher', trustProxy: true })
  const key = await (await createOrganisation()).personKey()
  const jar = new Jar(url)
  const { body } = await register(url)
  const { verifier, challenge } = pkce()
  const cookies: string[] = []
  const ask: Jar['ask'] = async (to, more) => {
    // As the proxy does.
    const inside = String(to)
      .replace('https://events.example', '')
      .replace(/^\/usher/, '')
    const answer = await Jar.prototype.ask.call(jar, inside, more)
    cookies.push(...answer.headers.getSetCookie())
    return answer
  }
  const begun = await ask(requestUrl(body.client_id as string, challenge))
  expect(begun.location).toMatch(/^\/usher\/oauth\/sign-in\//)
  const login = await ask(begun.location)
  const signedIn = await ask(begun.location, { form: { action: 'sign_in', key, form_token: formTokenOf(login) } })
  expect(signedIn.location).toBe(begun.location)
  const page = await ask(begun.location)
  const walk = {
    jar: Object.assign(jar, { ask }),
    clientId: body.client_id as string,
    verifier,
    at: begun.location,
    page,
  }
  const answer = await decide(walk)
  expect(answer.searchParams.get('iss')).toBe('https://events.example/usher/oauth')
  expect((await codeGrant(walk, answer)).status).toBe(200)
  expect(cookies.length).toBeGreaterThan(4)
  for (const cookie of cookies) {
    expect(cookie).toMatch(/; path=\/usher(\/oauth\/?[^;]*)?(;|$)/i)
    expect(cookie).toMatch(/; secure/i)
    expect(cookie).toMatch(/; httponly/i)
    expect(cookie).toMatch(/; samesite=lax/i)
  }
})
