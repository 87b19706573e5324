// A program for Deno that does what Supabase's edge runtime does: serves the function in the file that its argument names, on a
// free port, which it prints.

import { argv } from 'node:process'

type Handler = (request: Request) => Promise<Response>
type Options = { hostname: string; port: number; onListen(address: { port: number }): void }
declare const Deno: { serve: (options: Options | Handler, handler?: Handler) => unknown }

const serve = Deno.serve
Deno.serve = (handler) =>
  serve({ hostname: '127.0.0.1', port: 0, onListen: ({ port }) => console.log(port) }, handler as Handler)

await import(argv[2] as string)
