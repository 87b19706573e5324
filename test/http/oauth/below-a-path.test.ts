// A sign-in behind a proxy that strips a path and ends TLS: every address and cookie is as the browser sees it.

import { expect, test } from 'vitest'
import { createOrganisation } from '../../support/organisation.ts'
import { ownApp } from '../../support/own-app.ts'
import { codeGrant, decide, Jar, walkToConsent } from './walk.ts'

const cookies: string[] = []

class JarBehindProxy extends Jar {
  override async ask(to: string | URL, more?: Parameters<Jar['ask']>[1]) {
    // As the proxy does.
    const inside = String(to)
      .replace('https://events.example', '')
      .replace(/^\/usher/, '')
    const answer = await super.ask(inside, more)
    cookies.push(...answer.headers.getSetCookie())
    return answer
  }
}

test('addresses have the path of PUBLIC_URL, and cookies stay below it', async () => {
  const { url } = await ownApp({ publicUrl: 'https://events.example/usher', trustProxy: true })
  const key = await (await createOrganisation()).personKey()
  const walk = await walkToConsent(key, { jar: new JarBehindProxy(url) })
  expect(walk.at).toMatch(/^\/usher\/oauth\/sign-in\//)
  const answer = await decide(walk)
  expect(answer.searchParams.get('iss')).toBe('https://events.example/usher/oauth')
  expect((await codeGrant(walk, answer)).status).toBe(200)
  expect(cookies.length).toBeGreaterThan(4)
  for (const cookie of cookies) {
    expect(cookie).toMatch(/; path=\/usher(\/oauth\/?[^;]*)?(;|$)/i)
    for (const attribute of ['secure', 'httponly', 'samesite=lax'])
      expect(cookie.toLowerCase()).toContain(`; ${attribute}`)
  }
})
