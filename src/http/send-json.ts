// Sends text that is JSON, in one write. Express's `res.json` looks the type up and considers ETags first.

import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Request, Response } from 'express'

const compress = promisify(gzip)

export function sendJson(res: Response, text: string | Buffer): void {
  res.setHeader('Content-Type', 'application/json; charset=utf-8')
  res.setHeader('Content-Length', Buffer.byteLength(text))
  res.end(text)
}

/** For answers that are large and of one kind: middleware would look at every other one as well. */
export async function sendCompressed(req: Request, res: Response, text: string): Promise<void> {
  res.vary('Accept-Encoding')
  if (req.acceptsEncodings('gzip', 'identity') !== 'gzip') return sendJson(res, text)
  res.setHeader('Content-Encoding', 'gzip')
  sendJson(res, await compress(text))
}
