// Which hosts are this machine, and whether calls reach it.

import ipaddr from 'ipaddr.js'
import { StartError } from './start-error.ts'

/** Whether a host name or address, IPv4 in IPv6 included, is this machine. */
export function isLoopback(host: string): boolean {
  if (host.toLowerCase() === 'localhost') return true
  return ipaddr.isValid(host) && ipaddr.process(host).range() === 'loopback'
}

/**
 * Node, told to use the proxy of the environment, sends calls on this machine there too: nothing of the embedded stack answers then.
 * @returns undefined where such calls go straight to their port.
 */
export function doubtOfProxy(
  environment: NodeJS.ProcessEnv = process.env,
  options: readonly string[] = process.execArgv,
): { message: string; fix: string } | undefined {
  const { NODE_USE_ENV_PROXY, NODE_OPTIONS = '' } = environment
  const isOn = NODE_USE_ENV_PROXY === '1' || [...options, ...NODE_OPTIONS.split(/\s+/)].includes('--use-env-proxy')
  // The order in which Node looks for them.
  const proxy = environment.http_proxy ?? environment.HTTP_PROXY
  const excepted = (environment.no_proxy ?? environment.NO_PROXY ?? '').split(/[\s,]+/)
  if (!isOn || !proxy || excepted.includes('*') || excepted.includes('127.0.0.1')) return undefined
  return {
    message:
      'HTTP_PROXY and NODE_USE_ENV_PROXY are set, so calls on this machine go to the proxy instead of PostgREST.',
    fix: 'Set NO_PROXY=127.0.0.1,localhost as well.',
  }
}

/** @throws StartError, where the embedded stack would not be reached. */
export function assertNoProxyBetween(): void {
  const doubt = doubtOfProxy()
  if (doubt !== undefined) throw new StartError(`${doubt.message} ${doubt.fix}`)
}

/** The host of a URL, without the brackets of an IPv6 address. */
export const hostOf = (url: string): string => new URL(url).hostname.replace(/^\[|\]$/g, '')
