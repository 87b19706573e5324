// Reads the bearer token from an Authorization header.

// b64token of RFC 6750; the scheme is case-insensitive (RFC 9110).
const bearer = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i

export const bearerOf = (header: string | null | undefined): string | undefined => bearer.exec(header ?? '')?.[1]
