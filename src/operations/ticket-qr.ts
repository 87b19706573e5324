// The QR code of a ticket as a picture. In comes what get_ticket_qr answers, out goes PNG or SVG. It holds the ticket code and
// nothing else: whoever finds a ticket learns no name from it.

import qrcode from 'qrcode'
import type { Picture } from '../operation.ts'

// M survives a crease or a smudge; four modules of white around it is what ISO/IEC 18004 asks for.
const options = { errorCorrectionLevel: 'M', margin: 4 } as const

const codeOf = (data: unknown) => (data as { ticket_code: string }).ticket_code

export const qrPictures = {
  png: {
    mediaType: 'image/png',
    draw: (data) => qrcode.toBuffer(codeOf(data), { ...options, type: 'png', width: 480 }),
  },
  svg: { mediaType: 'image/svg+xml', draw: (data) => qrcode.toString(codeOf(data), { ...options, type: 'svg' }) },
} satisfies Record<string, Picture>
