// Draws the QR code of a ticket as PNG or SVG. It must hold the ticket code only: a lost ticket must not reveal a name.

import qrcode from 'qrcode'
import { blackAndWhitePng } from './black-and-white-png.ts'
import type { Picture } from './operation.ts'

// Level M survives a crease or a smudge; ISO/IEC 18004 requires a margin of four modules.
const [errorCorrectionLevel, margin, width] = ['M', 4, 480] as const

const codeOf = (data: unknown) => (data as { ticket_code: string }).ticket_code

export const qrPictures = {
  png: { mediaType: 'image/png', draw: async (data) => pngOf(codeOf(data)) },
  svg: {
    mediaType: 'image/svg+xml',
    draw: (data) => qrcode.toString(codeOf(data), { errorCorrectionLevel, margin, type: 'svg' }),
  },
} satisfies Record<string, Picture>

function pngOf(code: string): Buffer {
  const { modules } = qrcode.create(code, { errorCorrectionLevel })
  const isInside = (place: number) => place >= margin && place < modules.size + margin
  return blackAndWhitePng(
    { pixels: width, squares: modules.size + 2 * margin },
    (row, column) => isInside(row) && isInside(column) && modules.get(row - margin, column - margin) !== 0,
  )
}
