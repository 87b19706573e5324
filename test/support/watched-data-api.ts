// PostgREST behind a server that sees each call of a function before it is carried out.

import { createServer, request, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { inject } from 'vitest'
import { listenOnLoopback } from '../../scripts/support/listen.ts'

export type Breaks = (res: ServerResponse) => unknown

/** Answers with an error of PostgREST. */
export const raised =
  (status: number, code: string, message = 'as it is'): Breaks =>
  (res) =>
    res.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify({ code, message }))

/** @param see holds a call until it resolves, may answer it itself, and may return what to do in place of its answer. */
export async function watchedDataApi(
  see: (fn: string, res: ServerResponse, body: string) => undefined | Breaks | Promise<void>,
): Promise<{ url: string; close(): Promise<void> }> {
  const { hostname, port } = new URL(inject('dataApiUrl'))
  const server = createServer(async (req, res) => {
    const body = Buffer.concat(await Array.fromAsync(req))
    const fn = req.url?.replace('/rpc/', '') ?? ''
    // The log of requests is written when its time has come, whatever a test does.
    const breaks = fn === 'record_requests' ? undefined : await see(fn, res, body.toString())
    if (res.destroyed || res.writableEnded) return
    const upstream = request({ hostname, port, method: req.method, path: req.url, headers: req.headers }, (answer) => {
      if (breaks !== undefined) return void answer.resume().on('end', () => breaks(res))
      // The caller may have gone meanwhile.
      if (res.destroyed) return void answer.resume()
      res.writeHead(answer.statusCode ?? 502, answer.headers)
      pipeline(answer, res, () => {})
    })
    upstream.on('error', () => res.destroy())
    upstream.end(body)
  })
  return listenOnLoopback(server)
}
