// The camera: shows it, and reads QR codes from its frames. Knows nothing of tickets.

import { prepareZXingModule, readBarcodes } from 'zxing-wasm/reader'

// Pixels of the longer side; a larger frame takes longer and is read no better.
const longestSide = 960
// To copy a frame costs as much as to read it. While nothing moves, both are done less often.
const pauseMilliseconds = { moving: 80, still: 100 }
const readStillMilliseconds = 500
const retryMilliseconds = 2_000
/** A ticket stays before the camera for a while: a code counts again after it was out of sight for so long. */
const forgottenAfterMilliseconds = 1_000

/** Loads the reader: at once, because the network may be gone when the camera opens. Where it failed, another call tries again. */
const loadReader = (): Promise<unknown> =>
  prepareZXingModule({
    // Another function each time: the same overrides would be answered with the same failure.
    overrides: { locateFile: () => new URL('zxing/zxing_reader.wasm', import.meta.url).href },
    fireImmediately: true,
  })
loadReader().catch(() => {})

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

async function readFrames(video: HTMLVideoElement, stopped: AbortSignal, { isLooking, onCode }: Watcher) {
  const frames = new Frames(video)
  let last = ''
  /** Since when `last` is out of sight. While nobody looks, it stays where it is. */
  let awaySince: number | null = null
  let [readAt, pause] = [0, pauseMilliseconds.moving]
  while (!stopped.aborted) {
    await new Promise((done) => setTimeout(done, pause))
    if (!isLooking() || video.videoWidth === 0 || document.hidden) continue
    const { frame, hasMoved } = frames.take()
    pause = hasMoved ? pauseMilliseconds.moving : pauseMilliseconds.still
    const now = performance.now()
    if (!hasMoved && now - readAt < readStillMilliseconds) continue
    readAt = now
    const [found] = await readBarcodes(frame, { formats: ['QRCode'], maxNumberOfSymbols: 1 }).catch(async () => {
      await loadReader().catch(() => new Promise((done) => setTimeout(done, retryMilliseconds)))
      return []
    })
    if (stopped.aborted) return
    const code = found?.isValid ? found.text : null
    const isNew = code !== last || (awaySince !== null && now - awaySince > forgottenAfterMilliseconds)
    // Reading another frame meanwhile would delay the verdict: both need the main thread.
    if (code !== null && isNew && (await onCode(code).catch(report))) last = code
    if (code === last) awaySince = null
    else awaySince ??= now
  }
}

/** A code that cannot be judged is not tried again and again. */
const report = (error: unknown): true => {
  reportError(error)
  return true
}

/** Frames of the part of the picture that can be seen: a neighbour's ticket beside it is not meant. */
class Frames {
  #video: HTMLVideoElement
  #context = document.createElement('canvas').getContext('2d', { willReadFrequently: true }) as CanvasRenderingContext2D
  #before: number[] = []

  constructor(video: HTMLVideoElement) {
    this.#video = video
  }

  take(): { frame: ImageData; hasMoved: boolean } {
    const seen = this.#seen()
    const [, , width, height] = seen
    const scale = Math.min(1, longestSide / Math.max(width, height))
    const { canvas } = this.#context
    const size = { width: Math.round(width * scale), height: Math.round(height * scale) }
    // To set a size clears the canvas, and takes its time.
    if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size)
    this.#context.drawImage(this.#video, ...seen, 0, 0, canvas.width, canvas.height)
    const frame = this.#context.getImageData(0, 0, canvas.width, canvas.height)
    return { frame, hasMoved: this.#hasMoved(frame) }
  }

  /** More than noise: of some hundred pixels, spread over the frame, one in fifty is another. */
  #hasMoved({ data, width, height }: ImageData): boolean {
    const samples = Array.from({ length: 400 }, (_, i) => data[Math.floor(((i + 0.5) / 400) * width * height) * 4] ?? 0)
    const changed = samples.filter((value, i) => Math.abs(value - (this.#before[i] ?? 0)) > 24).length
    this.#before = samples
    return changed > samples.length / 50
  }

  /** As `object-fit: cover` shows it. */
  #seen(): [x: number, y: number, width: number, height: number] {
    const { videoWidth, videoHeight, clientWidth, clientHeight } = this.#video
    const shown = Math.min(videoWidth / (clientWidth || 1), videoHeight / (clientHeight || 1))
    const [width, height] = clientWidth === 0 ? [videoWidth, videoHeight] : [clientWidth * shown, clientHeight * shown]
    return [(videoWidth - width) / 2, (videoHeight - height) / 2, width, height]
  }
}
