// Reads QR codes from pictures of the camera, in a thread of its own: to copy and to read one would hold up the page. Knows neither
// camera nor tickets.

/// <reference lib="webworker" />

import { prepareZXingModule, readBarcodes } from 'zxing-wasm/reader'

/** `seen`: the part of the picture that is meant, as x, y, width and height. */
export type Asked = { picture: VideoFrame | ImageBitmap; seen: [number, number, number, number] }
/** `code`: null where there is none; undefined where the picture was not read, because nothing moves. */
export type Read = { hasMoved: boolean; code: string | null | undefined }

const worker = self as unknown as DedicatedWorkerGlobalScope
// Pixels of the longer side; a larger frame takes longer and is read no better.
const longestSide = 960
// To read a frame costs as much as to copy it. While nothing moves, it is done less often.
const readStillMilliseconds = 500
const context = new OffscreenCanvas(1, 1).getContext('2d', {
  willReadFrequently: true,
}) as OffscreenCanvasRenderingContext2D
let before: number[] = []
let readAt = 0

/** Loads the reader: at once, because the network may be gone when the camera opens. Where it failed, another call tries again. */
const loadReader = (): Promise<unknown> =>
  prepareZXingModule({
    // Another function each time: the same overrides would be answered with the same failure.
    overrides: { locateFile: () => new URL('zxing/zxing_reader.wasm', import.meta.url).href },
    fireImmediately: true,
  })
loadReader().catch(() => {})

worker.addEventListener('message', ({ data }: MessageEvent<Asked>) => {
  void read(data)
    .catch((): Read => ({ hasMoved: false, code: undefined }))
    .then((answer) => worker.postMessage(answer))
})

async function read({ picture, seen }: Asked): Promise<Read> {
  let frame: ImageData
  try {
    frame = copy(picture, seen)
  } finally {
    picture.close()
  }
  const hasMoved = isOther(frame)
  const now = performance.now()
  if (!hasMoved && now - readAt < readStillMilliseconds) return { hasMoved, code: undefined }
  readAt = now
  const [found] = await readBarcodes(frame, { formats: ['QRCode'], maxNumberOfSymbols: 1 }).catch(async () => {
    await loadReader().catch(() => {})
    return []
  })
  return { hasMoved, code: found?.isValid ? found.text : null }
}

function copy(picture: VideoFrame | ImageBitmap, seen: Asked['seen']): ImageData {
  const [, , width, height] = seen
  const scale = Math.min(1, longestSide / Math.max(width, height))
  const { canvas } = context
  const size = { width: Math.round(width * scale), height: Math.round(height * scale) }
  // To set a size clears the canvas, and takes its time.
  if (canvas.width !== size.width || canvas.height !== size.height) Object.assign(canvas, size)
  context.drawImage(picture, ...seen, 0, 0, canvas.width, canvas.height)
  return context.getImageData(0, 0, canvas.width, canvas.height)
}

/** More than noise: of some hundred pixels, spread over the frame, one in fifty is another. */
function isOther({ data, width, height }: ImageData): boolean {
  const samples = Array.from({ length: 400 }, (_, i) => data[Math.floor(((i + 0.5) / 400) * width * height) * 4] ?? 0)
  const changed = samples.filter((value, i) => Math.abs(value - (before[i] ?? 0)) > 24).length
  before = samples
  return changed > samples.length / 50
}
