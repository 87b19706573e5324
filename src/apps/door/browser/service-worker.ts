// Keeps the files of the page, so that it opens without a network. Must never keep an answer of the API. The server puts
// `door` in front: the list of files, and their version.

/// <reference lib="webworker" />

/** Relative to this file. */
declare const door: { version: string; paths: string[] }
const worker = self as unknown as ServiceWorkerGlobalScope
const paths = door.paths.map((path) => new URL(path, worker.location.href).pathname)
// Caches are the origin's, and another Usher may be at another path of it.
const suffix = new URL('..', worker.location.href).pathname.slice(0, -1)
const isOwn = (name: string) => /^door-[\w-]+(.*)$/.exec(name)?.[1] === suffix
const cacheName = `door-${door.version}${suffix}`

worker.addEventListener('install', (event) => {
  const keep = async () => {
    const cache = await caches.open(cacheName)
    await cache.addAll(paths.map((path) => new Request(path, { cache: 'no-cache' })))
  }
  event.waitUntil(keep())
})

// A page that is open goes on with the files that it began with; the next one asks for the new ones.
worker.addEventListener('message', ({ data }) => {
  if (data === 'take over') void worker.skipWaiting()
})

worker.addEventListener('activate', (event) => {
  const replace = async () => {
    for (const name of await caches.keys()) {
      if (isOwn(name) && name !== cacheName) await caches.delete(name)
    }
    await worker.clients.claim()
  }
  event.waitUntil(replace())
})

worker.addEventListener('fetch', (event) => {
  const { pathname } = new URL(event.request.url)
  if (event.request.method !== 'GET' || !paths.includes(pathname)) return
  const answer = async () => (await (await caches.open(cacheName)).match(pathname)) ?? fetch(event.request)
  event.respondWith(answer())
})
