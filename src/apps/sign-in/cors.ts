// Lets clients that run in a web page of another site find out how to sign in, register, and have their tokens. None of it goes by cookies,
// so a page gets no more than a program would.

import type { RequestHandler } from 'express'

export const allowAnySite: RequestHandler = (req, res, next) => {
  res.set('Access-Control-Allow-Origin', '*')
  if (req.method !== 'OPTIONS') return next()
  res
    .set({
      'Access-Control-Allow-Methods': 'GET, POST',
      'Access-Control-Allow-Headers': 'Authorization, Content-Type, MCP-Protocol-Version',
      'Access-Control-Max-Age': '3600',
    })
    .status(204)
    .end()
}
