// Says once that a proxy seems to be in front without TRUST_PROXY. Any client can send the header, so it is no more than a warning.

import type { RequestHandler } from 'express'
import type { Logger } from 'pino'

export function noticeProxy(log: Logger): RequestHandler {
  let isSaid = false
  return (req, _res, next) => {
    if (!isSaid && 'x-forwarded-for' in req.headers) {
      isSaid = true
      log.warn(
        'A request has the header X-Forwarded-For, but TRUST_PROXY is not set: callers behind a proxy count as one address, ' +
          'which invalid keys of one of them slow down. Set TRUST_PROXY to the number of proxies in front, or to their addresses.',
      )
    }
    next()
  }
}
