// The browser's Back closes what is open, and does not leave the page while staff scan: places of the history lie below them.

/** More than are pressed without touching the page in between. */
const spare = 8

const placeOf = (state: unknown): number => (state as { place?: number } | null)?.place ?? 0

/** @param back closes what is open, if anything is. */
export function keepWayBack(isScanning: () => boolean, panels: () => number, back: () => void): void {
  let place = placeOf(history.state)
  // The browser leaves some time after it is told to.
  let isLeaving = false
  // Only when the page is touched: Chromium's Back leaves out places that a page makes by itself.
  const hold = () => {
    if (isLeaving) return
    place = placeOf(history.state)
    const wanted = isScanning() ? spare : panels()
    isLeaving = place > wanted
    if (isLeaving) history.go(wanted - place)
    while (place < wanted) history.pushState({ place: ++place }, '')
    place = wanted
  }
  for (const touch of ['click', 'keydown'] as const) window.addEventListener(touch, hold)
  window.addEventListener('popstate', ({ state }) => {
    isLeaving = false
    const isBack = placeOf(state) < place
    place = placeOf(state)
    // Another link was opened.
    if (location.hash !== '' || !isBack) return
    back()
    if (place === 0) hold()
  })
}
