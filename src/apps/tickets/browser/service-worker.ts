// Keeps each ticket page that was opened, so that it opens without a network. The network comes first: what it says is newer. Must keep
// nothing else.

/// <reference lib="webworker" />

const worker = self as unknown as ServiceWorkerGlobalScope
const isTicketPage = /\/t\/[0-9a-f]{32}$/
// Of a network that hardly answers, when there is a kept page.
const timeoutMs = 4_000

worker.addEventListener('install', () => void worker.skipWaiting())
worker.addEventListener('activate', (event) => event.waitUntil(worker.clients.claim()))
// Not what the page itself asks for: it says when there is no connection.
worker.addEventListener('fetch', (event) => {
  const { pathname } = new URL(event.request.url)
  if (event.request.mode === 'navigate' && isTicketPage.test(pathname)) event.respondWith(open(event.request, pathname))
})

async function open(request: Request, path: string): Promise<Response> {
  const cache = await caches.open('usher-tickets')
  const kept = await cache.match(path)
  if (kept === undefined) return fetch(request)
  try {
    const answer = await fetch(request, { signal: AbortSignal.timeout(timeoutMs) })
    const verdict = answer.headers.get('Usher-Ticket')
    if (verdict === 'unknown') await cache.delete(path)
    return verdict !== null || answer.type === 'opaqueredirect' ? answer : kept
  } catch {
    return kept
  }
}
