// Whether Node sends calls on this machine to a proxy, as its own documentation says.

import { expect, test } from 'vitest'
import { doubtOfProxy } from '../../src/process/loopback.ts'

const on = { NODE_USE_ENV_PROXY: '1' }
const proxy = { HTTP_PROXY: 'http://proxy.example:3128' }

test.each<[string, NodeJS.ProcessEnv, string[], boolean]>([
  ['a proxy that Node uses', { ...on, ...proxy }, [], true],
  ['one in lower case', { ...on, http_proxy: proxy.HTTP_PROXY }, [], true],
  ['one by an option of Node', proxy, ['--use-env-proxy'], true],
  ['one by NODE_OPTIONS', { ...proxy, NODE_OPTIONS: '--no-warnings --use-env-proxy' }, [], true],
  ['a proxy that other hosts do without', { ...on, ...proxy, NO_PROXY: 'db.internal,localhost' }, [], true],
  ['a proxy that this machine does without', { ...on, ...proxy, NO_PROXY: '127.0.0.1, localhost' }, [], false],
  ['a proxy that nothing uses', { ...on, ...proxy, no_proxy: '*' }, [], false],
  ['a proxy for https', { ...on, HTTPS_PROXY: proxy.HTTP_PROXY }, [], false],
  ['a proxy that Node leaves to others', proxy, [], false],
  ['none', on, [], false],
])('%s', (_, environment, options, isDoubtful) => {
  expect(doubtOfProxy(environment, options) !== undefined).toBe(isDoubtful)
})
