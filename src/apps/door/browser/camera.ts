// The camera: shows it, and has QR codes read from its pictures. Knows nothing of tickets.

import type { Asked, Read } from './reader.ts'

// While nothing moves, pictures are looked at less often.
const pauseMilliseconds = { moving: 80, still: 100 }
const retryMilliseconds = 2_000
/** A reader that does not answer is given up; the first answer waits for its files. */
const longestMilliseconds = { first: 30_000, later: 5_000 }
const failuresUntilSaid = 2
/** A ticket stays before the camera for a while: a code counts again after it was out of sight for so long. */
const forgottenAfterMilliseconds = 1_000

let hasAnswered = false
let reader: Worker | null = null

/** Called as the page opens too, because the network may be gone when the camera does. */
export function prepareReader(): Worker {
  if (reader !== null) return reader
  const worker = new Worker(new URL('reader.ts', import.meta.url), { type: 'module' })
  // One whose files cannot be loaded says so once, perhaps before it is asked, and never answers.
  worker.onerror = () => giveUp(worker)
  reader = worker
  hasAnswered = false
  return worker
}

function giveUp(worker: Worker): void {
  worker.terminate()
  if (reader === worker) reader = null
}

/** @throws where the files of the reader could not be loaded, or it does not answer. */
const ask = (asked: Asked): Promise<Read> =>
  new Promise((done, failed) => {
    const worker = prepareReader()
    const fail = () => {
      clearTimeout(late)
      giveUp(worker)
      failed(new Error('no reader'))
    }
    const late = setTimeout(fail, hasAnswered ? longestMilliseconds.later : longestMilliseconds.first)
    worker.onmessage = ({ data }) => {
      clearTimeout(late)
      hasAnswered = true
      done(data)
    }
    worker.onerror = fail
    worker.postMessage(asked, [asked.picture])
  })

export type Camera = {
  stop(): void
  /** Undefined where this camera has no lamp. */
  torch: ((on: boolean) => Promise<void>) | undefined
}
export type Facing = 'environment' | 'user'
export type Watcher = {
  /** Whether a code would be judged now: frames are not read otherwise. */
  isLooking(): boolean
  /** @returns whether it was judged. */
  onCode(code: string): Promise<boolean>
  /** Pictures cannot be read any more, or can be again. */
  onReading(works: boolean): void
}

/** @throws DOMException where there is no camera, or the person forbids it. */
export async function openCamera(video: HTMLVideoElement, facing: Facing, watcher: Watcher): Promise<Camera> {
  const stream = await navigator.mediaDevices.getUserMedia({
    video: { facingMode: { ideal: facing }, width: { ideal: 1280 }, height: { ideal: 720 } },
    audio: false,
  })
  const close = () => {
    for (const each of stream.getTracks()) each.stop()
  }
  video.srcObject = stream
  await video.play().catch((error) => {
    // Another camera took its place.
    close()
    throw error
  })
  const track = stream.getVideoTracks()[0]
  const reading = new AbortController()
  void readFrames(video, reading.signal, watcher)
  return {
    stop() {
      reading.abort()
      close()
      if (video.srcObject === stream) video.srcObject = null
    },
    torch: hasTorch(track)
      ? (on) => track.applyConstraints({ advanced: [{ torch: on } as MediaTrackConstraintSet] })
      : undefined,
  }
}

const hasTorch = (track: MediaStreamTrack | undefined): track is MediaStreamTrack =>
  track?.getCapabilities !== undefined && 'torch' in track.getCapabilities()

async function readFrames(video: HTMLVideoElement, stopped: AbortSignal, { isLooking, onCode, onReading }: Watcher) {
  let last = ''
  /** Since when `last` is out of sight. While nobody looks, it stays where it is. */
  let awaySince: number | null = null
  let pause = pauseMilliseconds.moving
  let failures = 0
  while (!stopped.aborted) {
    await sleep(pause)
    if (!isLooking() || video.videoWidth === 0 || document.hidden) continue
    const now = performance.now()
    const read = await pictureOf(video)
      .then(ask)
      .catch(() => null)
    if (stopped.aborted) return
    if (read === null) {
      failures++
      if (failures === failuresUntilSaid) onReading(false)
      await sleep(retryMilliseconds)
      continue
    }
    if (failures >= failuresUntilSaid) onReading(true)
    failures = 0
    const { hasMoved, code } = read
    pause = hasMoved ? pauseMilliseconds.moving : pauseMilliseconds.still
    if (code === undefined || !isLooking()) continue
    const isNew = code !== last || (awaySince !== null && now - awaySince > forgottenAfterMilliseconds)
    if (code !== null && isNew && (await onCode(code).catch(report))) last = code
    if (code === last) awaySince = null
    else awaySince ??= now
  }
}

const sleep = (milliseconds: number) => new Promise<void>((done) => setTimeout(done, milliseconds))

/** A code that cannot be judged is not tried again and again. */
const report = (error: unknown): true => {
  reportError(error)
  return true
}

/** What can be seen of the picture: a neighbour's ticket beside it is not meant. */
async function pictureOf(video: HTMLVideoElement): Promise<Asked> {
  const seen = seenOf(video)
  // It is not copied here, but it may lie on its side.
  const frame = 'VideoFrame' in window ? new VideoFrame(video) : null
  if (frame?.displayWidth === video.videoWidth) return { picture: frame, seen }
  frame?.close()
  return { picture: await createImageBitmap(video), seen }
}

/** As `object-fit: cover` shows it. */
function seenOf({ videoWidth, videoHeight, clientWidth, clientHeight }: HTMLVideoElement): Asked['seen'] {
  const shown = Math.min(videoWidth / (clientWidth || 1), videoHeight / (clientHeight || 1))
  const [width, height] = clientWidth === 0 ? [videoWidth, videoHeight] : [clientWidth * shown, clientHeight * shown]
  return [(videoWidth - width) / 2, (videoHeight - height) / 2, width, height]
}
