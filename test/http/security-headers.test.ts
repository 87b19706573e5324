// Strict-Transport-Security binds a browser to https for a year: only where Usher is reached by it, and its own host alone.

import { expect, test } from 'vitest'
import { ownApp } from '../support/own-app.ts'

test.each([
  [{}, null],
  [{ publicUrl: 'http://usher.example.com' }, null],
  [{ hstsIncludeSubDomains: true }, null],
  [{ publicUrl: 'https://example.com/usher' }, 'max-age=31536000'],
  [{ publicUrl: 'https://example.com', hstsIncludeSubDomains: true }, 'max-age=31536000; includeSubDomains'],
])('with %j Strict-Transport-Security is %s', async (parts, value) => {
  const { url } = await ownApp(parts)
  for (const path of ['/health', '/docs', '/api/v1/me']) {
    expect((await fetch(url + path)).headers.get('strict-transport-security'), path).toBe(value)
  }
})
