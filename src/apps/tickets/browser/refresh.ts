// Keeps an open ticket page up to date: asks for the page again, replaces what it says, and keeps the copy that the service worker opens
// without a network. Shows the code full-screen. The page works without this script.

const everyMs = 20_000
const path = location.pathname
const live = document.getElementById('live') as HTMLElement
let etag: string | null = null
let timer: ReturnType<typeof setTimeout> | undefined
const waking = new AbortController()
let isAsking = false
// Something happened while the page was asking: the answer may be from before.
let isToAskAgain = false
/** Keeps the screen on. */
let lock: WakeLockSentinel | undefined

async function refresh(): Promise<void> {
  if (document.hidden) return
  isToAskAgain = isAsking
  if (isAsking) return
  isAsking = true
  clearTimeout(timer)
  try {
    const headers: HeadersInit = etag === null ? {} : { 'If-None-Match': etag }
    const answer = await fetch(path, { headers, cache: 'no-store', credentials: 'omit', redirect: 'error' })
    const verdict = answer.headers.get('Usher-Ticket')
    if (verdict === null) throw new Error(answer.statusText)
    tell('')
    if (answer.status !== 304) {
      await keep(answer.clone())
      etag = answer.headers.get('ETag')
      show(await answer.text())
    }
    if (verdict === 'unknown') return waking.abort()
  } catch {
    tell(live.dataset.outdated ?? '', true)
  } finally {
    isAsking = false
  }
  timer = setTimeout(refresh, isToAskAgain ? 0 : everyMs)
}

/** Only in a secure context is there a cache, and a service worker that reads it. */
async function keep(answer: Response): Promise<void> {
  if (!('caches' in window)) return
  const cache = await caches.open('usher-tickets')
  if (answer.status === 200) await cache.put(path, answer)
  else await cache.delete(path)
}

function show(text: string): void {
  const [shown, main] = [document, new DOMParser().parseFromString(text, 'text/html')].map((page) =>
    page.querySelector('main'),
  )
  if (!shown || !main || shown.outerHTML === main.outerHTML) return
  endFullScreen()
  shown.replaceWith(main)
  // For those who do not see it: the sentence of the new state.
  tell(main.querySelector('.status')?.textContent ?? '')
}

function tell(sentence: string, isShown = false): void {
  live.classList.toggle('shown', isShown)
  live.textContent = sentence
}

const isFullScreen = () => document.documentElement.classList.contains('full')

/** The code covers the page. The browser may fill the screen with the page, or keep it on, or both. */
async function showFullScreen(): Promise<void> {
  document.documentElement.classList.add('full')
  await Promise.allSettled([document.documentElement.requestFullscreen?.({ navigationUI: 'hide' }), keepAwake()])
}

/** Also once the page is visible again: hiding it ended the lock. */
async function keepAwake(): Promise<void> {
  if (document.hidden || !isFullScreen() || !('wakeLock' in navigator)) return
  lock = await navigator.wakeLock.request('screen').catch(() => undefined)
  if (!isFullScreen()) await lock?.release()
}

function endFullScreen(): void {
  document.documentElement.classList.remove('full')
  void lock?.release()
  if (document.fullscreenElement) void document.exitFullscreen()
}

document.documentElement.classList.toggle('enlarges', document.fullscreenEnabled || 'wakeLock' in navigator)
document.addEventListener('click', ({ target }) => {
  if (isFullScreen()) endFullScreen()
  else if (target instanceof Element && target.closest('figure button')) void showFullScreen()
})
document.addEventListener('keydown', ({ key }) => key === 'Escape' && endFullScreen())
document.addEventListener('fullscreenchange', () => document.fullscreenElement || endFullScreen())
document.addEventListener('visibilitychange', keepAwake)

const wakes: [EventTarget, string][] = [
  [document, 'visibilitychange'],
  [window, 'online'],
  [window, 'offline'],
  [window, 'pageshow'],
]
for (const [target, type] of wakes) target.addEventListener(type, refresh, waking)
if ('serviceWorker' in navigator) navigator.serviceWorker.register('service-worker.js').catch(() => {})
void refresh()
