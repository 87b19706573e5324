// What a client may say of itself, whether it registers or has a metadata document. Everything that is not named here is dropped.

import { clip, oneLine } from '../../guests/plain-text.ts'

/** Members of client metadata (RFC 7591), as they were sent. */
export type ClientMetadata = Record<string, unknown>

const kept = new Set([
  'client_id',
  'client_id_issued_at',
  'client_name',
  'redirect_uris',
  'token_endpoint_auth_method',
  'token_endpoint_auth_signing_alg',
  'jwks',
  'jwks_uri',
])
const maximumRedirectUris = 20
const maximumLength = 2_000
const maximumBytes = 12_000
// A certificate of a key of a set is five deep.
const maximumDepth = 6

/** Looks no deeper than that: what is nested ten thousand deep cannot be written as JSON. */
const isShallow = (value: unknown, levels: number): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((member) => isShallow(member, levels - 1)))

/** Puts the metadata into the form that Usher serves. @param refuse throws its message as `invalid_client_metadata`. */
export function settleMetadata(metadata: ClientMetadata, refuse: (message: string) => never): void {
  for (const name of Object.keys(metadata)) if (!kept.has(name)) delete metadata[name]
  Object.assign(metadata, {
    // So the port of a loopback address may vary (RFC 8252, section 7.3), as it does for every program on a desktop.
    application_type: 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    response_modes: ['query'],
    id_token_signed_response_alg: 'ES256',
    // A secret that a client is handed over the network proves no more than PKCE.
    token_endpoint_auth_method: metadata.token_endpoint_auth_method === 'private_key_jwt' ? 'private_key_jwt' : 'none',
  })
  const { redirect_uris: uris, client_name: name } = metadata
  if (typeof name === 'string' && oneLine(name) !== '') metadata.client_name = clip(oneLine(name), 200)
  else delete metadata.client_name
  if (!Array.isArray(uris) || uris.length === 0) refuse('redirect_uris must be a list of at least one URI')
  if (uris.length > maximumRedirectUris) refuse(`redirect_uris has at most ${maximumRedirectUris} members`)
  if (!uris.every(mayReturnTo)) {
    refuse(
      'redirect_uris must be https, of a loopback address, or of a private-use scheme with a dot, without a fragment',
    )
  }
  if (!isShallow(metadata, maximumDepth)) refuse(`the metadata must be nested at most ${maximumDepth} deep`)
  const text = JSON.stringify(metadata)
  if (Buffer.byteLength(text) > maximumBytes) refuse(`the metadata must be at most ${maximumBytes} bytes`)
  // What Postgres cannot keep in JSON.
  if (/\\u(0000|d[89a-f])/i.test(text)) refuse('the metadata must be text in Unicode, without null characters')
}

// A private-use scheme has a dot (RFC 8252, section 7.1): those without one have a meaning to a browser or an operating system. Editors that
// people use came before the rule.
const privateSchemes = /^([a-z0-9+-]+(\.[a-z0-9+-]+)+|cursor|vscode|vscode-insiders|vscodium|windsurf|zed|claude):$/

function mayReturnTo(uri: unknown): boolean {
  if (typeof uri !== 'string' || uri.length > maximumLength || !/^[\x21-\x7e]+$/.test(uri)) return false
  const url = URL.parse(uri)
  if (url === null || uri.includes('#') || url.username !== '' || url.password !== '') return false
  if (url.protocol === 'https:') return !loopbackHosts.has(url.hostname)
  if (url.protocol === 'http:') return loopbackHosts.has(url.hostname)
  return privateSchemes.test(url.protocol)
}

const loopbackHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

/** Where a client is returned to, in words that can be compared: a host, or the scheme of a program on the device. */
export function returnsTo(redirectUri: string): { host: string; isOnDevice: boolean } {
  const { protocol, hostname, host } = new URL(redirectUri)
  if (protocol === 'https:') return { host, isOnDevice: false }
  return { host: protocol === 'http:' ? hostname : `${protocol}//`, isOnDevice: true }
}
