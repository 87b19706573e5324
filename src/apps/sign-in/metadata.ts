// The two documents by which a client finds out how to sign in: of the resource (RFC 9728) and of the authorization server (RFC 8414).

import { type RequestHandler, Router } from 'express'
import { type Addresses, type AddressesOf, resourceMetadataPath, serverMetadataPath } from '../../http/addresses.ts'
import { noteRoute } from '../../http/middleware/log-requests.ts'
import { scopes } from '../../operations/operation.ts'

export const clientAuthentication = ['none', 'private_key_jwt'] as const
export const signingAlgorithms = ['ES256', 'EdDSA', 'PS256', 'RS256'] as const

const resourceMetadata = ({ resource, issuer }: Addresses) => ({
  resource,
  authorization_servers: [issuer],
  scopes_supported: scopes,
  bearer_methods_supported: ['header'],
  resource_name: 'Usher',
})

const serverMetadata = ({ issuer }: Addresses) => ({
  issuer,
  authorization_endpoint: `${issuer}/auth`,
  token_endpoint: `${issuer}/token`,
  registration_endpoint: `${issuer}/register`,
  revocation_endpoint: `${issuer}/revoke`,
  scopes_supported: scopes,
  response_types_supported: ['code'],
  response_modes_supported: ['query'],
  grant_types_supported: ['authorization_code', 'refresh_token'],
  code_challenge_methods_supported: ['S256'],
  token_endpoint_auth_methods_supported: clientAuthentication,
  token_endpoint_auth_signing_alg_values_supported: signingAlgorithms,
  revocation_endpoint_auth_methods_supported: clientAuthentication,
  revocation_endpoint_auth_signing_alg_values_supported: signingAlgorithms,
  authorization_response_iss_parameter_supported: true,
  client_id_metadata_document_supported: true,
})

/**
 * Lets clients that run in a web page of another site find out how to sign in, register, and have their tokens. None of it goes by cookies,
 * so a page gets no more than a program would.
 */
export const allowAnySite: RequestHandler = (req, res, next) => {
  res.set('Access-Control-Allow-Origin', '*')
  if (req.method !== 'OPTIONS') return next()
  res.set({
    'Access-Control-Allow-Methods': 'GET, POST',
    'Access-Control-Allow-Headers': 'Authorization, Content-Type, MCP-Protocol-Version',
    'Access-Control-Max-Age': '3600',
  })
  res.status(204).end()
}

export function metadataRouter(addressesOf: AddressesOf, path: string): Router {
  const router = Router()
  const documents = [
    [resourceMetadataPath, resourceMetadata],
    [serverMetadataPath, serverMetadata],
  ] as const
  for (const [pathOf, document] of documents) {
    // With the path of PUBLIC_URL, as clients ask, and without it, where a proxy has stripped it.
    const paths = [...new Set([pathOf(path), pathOf('')])]
    router.options(paths, allowAnySite)
    router.get(paths, allowAnySite, (req, res, next) => {
      const addresses = addressesOf(req)
      if (addresses === undefined) return next()
      noteRoute(req, res, pathOf(''))
      res.set('Cache-Control', 'public, max-age=300').json(document(addresses))
    })
  }
  return router
}
