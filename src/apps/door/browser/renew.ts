// A new version of the page is there at the next opening, and never in the middle of a shift.

import { base } from './link.ts'

/** A slow network may not keep the door shut: the version after the next is soon enough then. */
const [searchMilliseconds, loadMilliseconds] = [1_500, 5_000]

const sleep = (milliseconds: number) => new Promise<void>((done) => setTimeout(done, milliseconds))

/** Called before anything else is done. @returns whether a new version has taken over, so that the page is to be loaded again. */
export async function renew(): Promise<boolean> {
  const workers = navigator.serviceWorker
  if (workers === undefined) return false
  const registration = await workers.register(new URL('door/service-worker.ts', base), {
    scope: new URL('door', base).pathname,
  })
  // At the first opening all files come from the server.
  if (workers.controller === null) return false
  // Whether or not there is an answer: a version that was found earlier may wait.
  if (navigator.onLine) await Promise.race([registration.update().catch(() => {}), sleep(searchMilliseconds)])
  const { installing } = registration
  if (installing !== null) await Promise.race([isSettled(installing), sleep(loadMilliseconds)])
  const { waiting } = registration
  if (waiting === null) return false
  const isTakenOver = new Promise<boolean>((done) => {
    workers.addEventListener('controllerchange', () => done(true), { once: true })
  })
  waiting.postMessage('take over')
  return Promise.race([isTakenOver, sleep(loadMilliseconds).then(() => false)])
}

const isSettled = (worker: ServiceWorker) =>
  new Promise<void>((done) => {
    worker.addEventListener('statechange', () => {
      if (worker.state !== 'installing') done()
    })
  })
