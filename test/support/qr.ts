// Reads QR codes, with a library that did not write them.

import jsqr from 'jsqr'
import { PNG } from 'pngjs'

// CommonJS: its types have the function under `default`, and Node has it as the module itself.
const jsQR = jsqr as unknown as typeof jsqr.default

/** What the code in the picture says; undefined when there is none that can be read. */
export const readPng = (bytes: Buffer): string | undefined => readPixels(PNG.sync.read(bytes))

export const readPixels = ({ data, width, height }: PNG): string | undefined =>
  jsQR(new Uint8ClampedArray(data), width, height)?.data
