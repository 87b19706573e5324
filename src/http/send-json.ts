// Sends text that is JSON, in one write. Express's `res.json` looks the type up and considers ETags first.

import type { Response } from 'express'

export function sendJson(res: Response, text: string): void {
  res.setHeader('Content-Type', 'application/json; charset=utf-8')
  res.setHeader('Content-Length', Buffer.byteLength(text))
  res.end(text)
}
