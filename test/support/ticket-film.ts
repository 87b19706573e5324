// A film of a ticket that is shown to the camera, taken away, and shown again: for Chromium's fake camera.

import { writeFile } from 'node:fs/promises'
import qrcode from 'qrcode'

const size = 240
const framesPerSecond = 5
// A code counts again after a second out of sight.
const framesShown = 5
const framesAway = 7

/** The arguments with which Chromium has a camera that shows a film, and asks nobody whether it may. */
export const cameraArguments = (file: string): string[] => [
  '--use-fake-ui-for-media-stream',
  '--use-fake-device-for-media-stream',
  `--use-file-for-fake-video-capture=${file}`,
]

/** The lines of a QR code: '1' is dark. */
export function linesOfCode(code: string): string[] {
  const { modules } = qrcode.create(code, { errorCorrectionLevel: 'M' })
  return Array.from({ length: modules.size }, (_, y) =>
    Array.from({ length: modules.size }, (_, x) => modules.get(y, x)).join(''),
  )
}

/** Writes the film. */
export async function filmTicket(file: string, code: string): Promise<void> {
  const lines = linesOfCode(code)
  const scale = Math.floor(size / (lines.length + 8))
  const margin = Math.floor((size - lines.length * scale) / 2)
  const isDark = (x: number, y: number) => {
    const [column, line] = [Math.floor((x - margin) / scale), Math.floor((y - margin) / scale)]
    return lines[line]?.[column] === '1'
  }
  const frame = (bright: (x: number, y: number) => number) => {
    const luma = Buffer.alloc(size * size)
    for (let y = 0; y < size; y++) for (let x = 0; x < size; x++) luma[y * size + x] = bright(x, y)
    return Buffer.concat([Buffer.from('FRAME\n'), luma, Buffer.alloc(size * size * 0.5, 128)])
  }
  const ticket = frame((x, y) => (isDark(x, y) ? 16 : 235))
  const nothing = frame(() => 90)
  await writeFile(
    file,
    Buffer.concat([
      Buffer.from(`YUV4MPEG2 W${size} H${size} F${framesPerSecond}:1 Ip A1:1 C420jpeg\n`),
      ...Array<Buffer>(framesShown).fill(ticket),
      ...Array<Buffer>(framesAway).fill(nothing),
    ]),
  )
}
