// Draws the QR code of a ticket as PNG or SVG. It must hold the ticket code only: a lost ticket must not reveal a name.

import qrcode from 'qrcode'
import type { Picture } from '../operation.ts'

// Level M survives a crease or a smudge; ISO/IEC 18004 requires a margin of four modules.
const options = { errorCorrectionLevel: 'M', margin: 4 } as const

const codeOf = (data: unknown) => (data as { ticket_code: string }).ticket_code

export const qrPictures = {
  png: {
    mediaType: 'image/png',
    draw: (data) => qrcode.toBuffer(codeOf(data), { ...options, type: 'png', width: 480 }),
  },
  svg: { mediaType: 'image/svg+xml', draw: (data) => qrcode.toString(codeOf(data), { ...options, type: 'svg' }) },
} satisfies Record<string, Picture>
