// How an operation that ends is announced: in the headers of its answers, in OpenAPI and in the description of its tool
// (docs/reference/versions.md).

import type { Operation } from '../operations/operation.ts'

/** For people and models; empty where nothing ends. */
export const deprecationNotice = ({ deprecated }: Operation): string =>
  deprecated === undefined
    ? ''
    : `Deprecated since ${deprecated.since} and ends on ${deprecated.sunset}: use ${deprecated.instead}. `

/**
 * `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and `Link`. The link is relative, for a proxy may strip a path.
 * @param path below /api/v1
 */
export function deprecationHeaders({ deprecated }: Operation, path: string): Record<string, string> {
  if (deprecated === undefined) return {}
  const changelog = `${'../'.repeat(path.split('/').length)}docs/reference/changelog`
  return {
    Deprecation: `@${Date.parse(deprecated.since) / 1000}`,
    Sunset: new Date(deprecated.sunset).toUTCString(),
    Link: `<${changelog}>; rel="deprecation"; type="text/html"`,
  }
}
