// What ETags of answers are made of, and how a client that has one is recognised.

import { hash } from 'node:crypto'

/** 22 characters that change with the text. */
export const digestOf = (text: string | Buffer): string => hash('sha256', text, 'base64url').slice(0, 22)

/** By the weak comparison of RFC 9110, section 13.1.2: a proxy that compresses an answer weakens its ETag. */
export const isKnown = (etag: string, ifNoneMatch: string | undefined): boolean =>
  ifNoneMatch?.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag) ?? false
