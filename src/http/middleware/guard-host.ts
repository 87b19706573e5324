import { localhostAllowedHostnames, validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server'
import type { RequestHandler } from 'express'
import { ApiError } from '../../gateway/api-error.ts'

/** Prevents DNS rebinding: a web page in the organiser's browser must not call an MCP server on their machine. */
export function guardHost(allowedHosts: string[]): RequestHandler {
  const allowed = [...localhostAllowedHostnames(), ...allowedHosts]
  return (req, _res, next) => {
    if (!validateHostHeader(req.headers.host, allowed).ok) {
      throw new ApiError(403, 'host_not_allowed', 'The host in the Host header is not allowed.', {
        hint: 'Add the host name to ALLOWED_HOSTS.',
      })
    }
    if (!validateOriginHeader(req.headers.origin, allowed).ok) {
      throw new ApiError(403, 'origin_not_allowed', 'The site in the Origin header is not allowed.', {
        hint: 'Add its host name to ALLOWED_HOSTS.',
      })
    }
    next()
  }
}
