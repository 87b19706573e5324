// Says why a webhook got no answer, in one short line for the customer who gave the address. The line must never contain
// a secret, a URL or anything that the remote side sent, so no error message is passed on as it is.

import { AddressNotAllowed } from '../process/outbound/allowed-addresses.ts'
import { NothingToSignWith } from './sign-webhook.ts'

const byCode: Record<string, string> = {
  ENOTFOUND: 'No such host.',
  ENODATA: 'No such host.',
  EAI_AGAIN: 'The host name could not be resolved.',
  ECONNREFUSED: 'Connection refused.',
  ECONNRESET: 'The connection was closed before an answer.',
  EPIPE: 'The connection was closed before an answer.',
  ETIMEDOUT: 'The connection timed out.',
  EHOSTUNREACH: 'The host cannot be reached.',
  ENETUNREACH: 'The host cannot be reached.',
  EADDRNOTAVAIL: 'The host cannot be reached.',
  UND_ERR_SOCKET: 'The connection was closed before an answer.',
  UND_ERR_DESTROYED: 'The connection was closed before an answer.',
  UND_ERR_CONNECT_TIMEOUT: 'The connection timed out.',
  UND_ERR_HEADERS_OVERFLOW: 'The headers of the answer are too long.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'TLS: the certificate is for another host.',
}

const otherwise = 'The request could not be sent.'

export function describeFailure(thrown: unknown): string {
  if (!(thrown instanceof Error)) return otherwise
  if (thrown instanceof AddressNotAllowed) return thrown.message
  if (thrown instanceof NothingToSignWith) return 'The webhook could not be signed.'

  const code = String((thrown as NodeJS.ErrnoException).code ?? '')
  if (Object.hasOwn(byCode, code)) return byCode[code] as string
  if (thrown.name === 'HTTPParserError') return 'The answer is not HTTP.'
  return describeTlsFailure(code, thrown.message) ?? otherwise
}

/** OpenSSL describes a certificate error by one of its own constant texts, to which Node may append advice. */
function describeTlsFailure(code: string, message: string): string | undefined {
  if (/^(CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_|PATH_)/.test(code)) {
    const reason = /^[a-z -]{1,100}(?=;|$)/i.exec(message)?.[0] ?? 'the certificate is not valid'
    return `TLS: ${reason}.`
  }
  // Deno's message, which has no code.
  if (message.startsWith('invalid peer certificate: ')) return 'TLS: the certificate is not valid.'
  if (/^(EPROTO|ERR_SSL_|ERR_TLS_)/.test(code)) return 'TLS: the handshake failed.'
}
