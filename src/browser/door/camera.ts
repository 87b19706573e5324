// The camera: shows it, and reads QR codes from its frames. Knows nothing of tickets.

import { prepareZXingModule, readBarcodes } from 'zxing-wasm/reader'

// Pixels of the longer side; a larger frame takes longer and is read no better.
const longestSide = 960
const pauseMilliseconds = 60
/** While nothing moves, frames are read so seldom. */
const stillMilliseconds = 200
/** A ticket stays before the camera for a while: a code counts again after it was out of sight for so long. */
const forgottenAfterMilliseconds = 1_000

prepareZXingModule({ overrides: { locateFile: () => new URL('zxing/zxing_reader.wasm', import.meta.url).href } })

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
  video.srcObject = stream
  await video.play()
  const track = stream.getVideoTracks()[0]
  const reading = new AbortController()
  void readFrames(video, reading.signal, watcher)
  return {
    stop() {
      reading.abort()
      for (const each of stream.getTracks()) each.stop()
      video.srcObject = null
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
  let last = { code: '', at: 0 }
  let readAt = 0
  while (!stopped.aborted) {
    await new Promise((done) => setTimeout(done, pauseMilliseconds))
    if (!isLooking()) {
      // What stays in sight meanwhile is no new ticket.
      last.at = performance.now()
      continue
    }
    if (video.videoWidth === 0 || document.hidden) continue
    if (!frames.hasMoved() && performance.now() - readAt < stillMilliseconds) continue
    readAt = performance.now()
    const [found] = await readBarcodes(frames.read(), { formats: ['QRCode'], maxNumberOfSymbols: 1 })
    if (found === undefined || !found.isValid || stopped.aborted) continue
    if (found.text !== last.code || performance.now() - last.at > forgottenAfterMilliseconds) {
      // Reading another frame meanwhile would delay the verdict: both need the main thread.
      const isJudged = await onCode(found.text).catch((error) => {
        reportError(error)
        return true
      })
      if (!isJudged) continue
    }
    last = { code: found.text, at: performance.now() }
  }
}

/** Frames of the part of the picture that can be seen: a neighbour's ticket beside it is not meant. */
class Frames {
  #video: HTMLVideoElement
  #whole = contextOf(document.createElement('canvas'))
  #coarse = contextOf(Object.assign(document.createElement('canvas'), { width: 24, height: 24 }))
  #before = new Uint8ClampedArray()

  constructor(video: HTMLVideoElement) {
    this.#video = video
  }

  /** A copy of 24 × 24 pixels differs by more than noise from the one before. */
  hasMoved(): boolean {
    this.#coarse.drawImage(this.#video, ...this.#seen(), 0, 0, 24, 24)
    const { data } = this.#coarse.getImageData(0, 0, 24, 24)
    const hasMoved = this.#before.length === 0 || data.some((value, i) => Math.abs(value - (this.#before[i] ?? 0)) > 24)
    this.#before = data
    return hasMoved
  }

  read(): ImageData {
    const seen = this.#seen()
    const [, , width, height] = seen
    const scale = Math.min(1, longestSide / Math.max(width, height))
    const { canvas } = this.#whole
    canvas.width = Math.round(width * scale)
    canvas.height = Math.round(height * scale)
    this.#whole.drawImage(this.#video, ...seen, 0, 0, canvas.width, canvas.height)
    return this.#whole.getImageData(0, 0, canvas.width, canvas.height)
  }

  /** As `object-fit: cover` shows it. */
  #seen(): [x: number, y: number, width: number, height: number] {
    const { videoWidth, videoHeight, clientWidth, clientHeight } = this.#video
    const shown = Math.min(videoWidth / (clientWidth || 1), videoHeight / (clientHeight || 1))
    const [width, height] = clientWidth === 0 ? [videoWidth, videoHeight] : [clientWidth * shown, clientHeight * shown]
    return [(videoWidth - width) / 2, (videoHeight - height) / 2, width, height]
  }
}

const contextOf = (canvas: HTMLCanvasElement): CanvasRenderingContext2D =>
  canvas.getContext('2d', { willReadFrequently: true }) as CanvasRenderingContext2D
