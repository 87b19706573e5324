// Reads type and size of a PNG or JPEG from its first bytes, whatever its sender says that it is. The bytes are not trusted: every step
// goes forward and stays within them.

import { Buffer } from 'node:buffer'

export type ImageHeader = { content_type: 'image/png' | 'image/jpeg'; width: number; height: number }

/** Undefined: it is neither. */
export function imageHeader(bytes: Buffer): ImageHeader | undefined {
  return pngHeader(bytes) ?? jpegHeader(bytes)
}

// The chunk IEND, and the marker EOI. Some programs write something after them.
const ends = { 'image/png': Buffer.from('0000000049454e44ae426082', 'hex'), 'image/jpeg': Buffer.from('ffd9', 'hex') }

/** Whether it goes on to its end, as far as that can be said without decoding it. */
export const hasEnd = (bytes: Buffer, { content_type }: ImageHeader): boolean => bytes.includes(ends[content_type])

// Signature, then the chunk IHDR, of 13 bytes (https://www.w3.org/TR/png-3/#11IHDR).
const pngStart = '89504e470d0a1a0a0000000d49484452'

function pngHeader(bytes: Buffer): ImageHeader | undefined {
  if (bytes.length < 33 || bytes.toString('hex', 0, 16) !== pngStart) return undefined
  return { content_type: 'image/png', width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
}

/** Segments are FF, marker, length; that of the frame is SOF0 to SOF15 (ITU-T T.81, B.1 and B.2). */
function jpegHeader(bytes: Buffer): ImageHeader | undefined {
  if (bytes.toString('hex', 0, 3) !== 'ffd8ff') return undefined
  let at = 2
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] as number
    // Any number of FF may precede a marker.
    if (marker === 0xff) at += 1
    else if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      return { content_type: 'image/jpeg', width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) }
    } else at += 2 + Math.max(bytes.readUInt16BE(at + 2), 2)
  }
  return undefined
}
