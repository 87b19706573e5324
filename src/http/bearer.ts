// The token of an Authorization header: in comes the header, out goes what stands behind `Bearer`.

// b64token of RFC 6750; the scheme's case does not matter (RFC 9110).
const bearer = /^Bearer +([A-Za-z0-9._~+/-]+=*) *$/i

export const bearerOf = (header: string | null | undefined): string | undefined => bearer.exec(header ?? '')?.[1]
