// The camera: shows it, and reads QR codes from its frames. Knows nothing of tickets.

import { prepareZXingModule, readBarcodes } from 'zxing-wasm/reader'

// Pixels; a larger frame takes longer and is read no better.
const widestFrame = 960
const pauseMilliseconds = 60
/** A ticket stays before the camera for a while: a code counts again after it was out of sight for so long. */
const forgottenAfterMilliseconds = 1_000

prepareZXingModule({ overrides: { locateFile: () => new URL('zxing/zxing_reader.wasm', import.meta.url).href } })

export type Camera = {
  stop(): void
  /** Undefined where this camera has no lamp. */
  torch: ((on: boolean) => Promise<void>) | undefined
}
export type Facing = 'environment' | 'user'

/** @throws DOMException where there is no camera, or the person forbids it. */
export async function openCamera(
  video: HTMLVideoElement,
  facing: Facing,
  onCode: (code: string) => Promise<void>,
): Promise<Camera> {
  const stream = await navigator.mediaDevices.getUserMedia({
    video: { facingMode: { ideal: facing }, width: { ideal: 1280 }, height: { ideal: 720 } },
    audio: false,
  })
  video.srcObject = stream
  await video.play()
  const track = stream.getVideoTracks()[0]
  const reading = new AbortController()
  void readFrames(video, reading.signal, onCode)
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

async function readFrames(video: HTMLVideoElement, stopped: AbortSignal, onCode: (code: string) => Promise<void>) {
  const canvas = document.createElement('canvas')
  const context = canvas.getContext('2d', { willReadFrequently: true })
  let last = { code: '', at: 0 }
  while (context !== null && !stopped.aborted) {
    await new Promise((done) => setTimeout(done, pauseMilliseconds))
    if (video.videoWidth === 0 || document.hidden) continue
    const scale = Math.min(1, widestFrame / video.videoWidth)
    canvas.width = Math.round(video.videoWidth * scale)
    canvas.height = Math.round(video.videoHeight * scale)
    context.drawImage(video, 0, 0, canvas.width, canvas.height)
    const frame = context.getImageData(0, 0, canvas.width, canvas.height)
    const [found] = await readBarcodes(frame, { formats: ['QRCode'], maxNumberOfSymbols: 1 })
    if (found === undefined || !found.isValid || stopped.aborted) continue
    if (found.text !== last.code || performance.now() - last.at > forgottenAfterMilliseconds) {
      // Reading another frame meanwhile would delay the verdict: both need the main thread.
      await onCode(found.text).catch(reportError)
    }
    last = { code: found.text, at: performance.now() }
  }
}
