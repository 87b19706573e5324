// Draws the QR code of a ticket as PNG or SVG. It must hold the ticket code only: a lost ticket must not reveal a name.

import { Buffer } from 'node:buffer'
import { deflateSync } from 'node:zlib'
import qrcode from 'qrcode'
import type { Picture } from '../operation.ts'

// Level M survives a crease or a smudge; ISO/IEC 18004 requires a margin of four modules.
const options = { errorCorrectionLevel: 'M', margin: 4 } as const
const pixels = 480

const codeOf = (data: unknown) => (data as { ticket_code: string }).ticket_code

export const qrPictures = {
  png: { mediaType: 'image/png', draw: async (data) => pngOf(codeOf(data)) },
  svg: { mediaType: 'image/svg+xml', draw: (data) => qrcode.toString(codeOf(data), { ...options, type: 'svg' }) },
} satisfies Record<string, Picture>

/** With one bit for each pixel. The PNG of the package has 32: it is five times as large, and takes ten times as long to draw. */
function pngOf(code: string): Buffer {
  const { modules } = qrcode.create(code, options)
  const scale = pixels / (modules.size + 2 * options.margin)
  const moduleAt = (pixel: number) => Math.floor(pixel / scale) - options.margin
  const isDark = (row: number, column: number) =>
    row >= 0 && column >= 0 && row < modules.size && column < modules.size && modules.get(row, column) === 1
  // A line is the number of its filter, none, and eight pixels in a byte. Those of one row of modules are alike.
  const lineOf = (row: number) => {
    const line = Buffer.alloc(1 + pixels / 8)
    for (let x = 0; x < pixels; x++) {
      if (!isDark(row, moduleAt(x))) line[1 + (x >> 3)] = (line[1 + (x >> 3)] ?? 0) | (0x80 >> (x & 7))
    }
    return line
  }
  const lines: Buffer[] = []
  for (let y = 0; y < pixels; y++) {
    const former = y > 0 && moduleAt(y) === moduleAt(y - 1) ? lines[y - 1] : undefined
    lines.push(former ?? lineOf(moduleAt(y)))
  }
  const header = Buffer.alloc(13)
  header.writeUInt32BE(pixels, 0)
  header.writeUInt32BE(pixels, 4)
  // Bits of a pixel, and no colour.
  header[8] = 1
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.concat(lines), { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const [length, content, check] = [Buffer.alloc(4), Buffer.concat([Buffer.from(type), data]), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  check.writeUInt32BE(crc32(content))
  return Buffer.concat([length, content, check])
}

// Supabase's edge runtime has none in node:zlib.
const remainders = Uint32Array.from({ length: 256 }, (_, byte) => {
  let remainder = byte
  for (let bit = 0; bit < 8; bit++) remainder = remainder & 1 ? (remainder >>> 1) ^ 0xedb88320 : remainder >>> 1
  return remainder
})

function crc32(bytes: Buffer): number {
  let remainder = 0xffffffff
  for (const byte of bytes) remainder = (remainders[(remainder ^ byte) & 0xff] ?? 0) ^ (remainder >>> 8)
  return ~remainder >>> 0
}
