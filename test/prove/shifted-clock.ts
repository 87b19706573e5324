// Loaded into a process before anything else (`--import`): its time of day is off by as many milliseconds as a file says. Timers and
// performance.now() are not, as when somebody sets a clock.

import { readFileSync } from 'node:fs'

const file = process.env.CLOCK_FILE ?? ''
const RealDate = Date
let shift = 0

function read(): void {
  try {
    shift = Number(readFileSync(file, 'utf8')) || 0
  } catch {
    shift = 0
  }
}
read()
setInterval(read, 50).unref()

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) =>
    Reflect.construct(target, args.length === 0 ? [target.now() + shift] : args, newTarget),
  apply: (target) => new target(target.now() + shift).toString(),
  get: (target, name, receiver) => (name === 'now' ? () => target.now() + shift : Reflect.get(target, name, receiver)),
})
