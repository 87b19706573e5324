// How far an import is: in a terminal one line that is written over, and makes way for whatever else is said; elsewhere a line now and then.

import { count } from './preview.ts'
import { printable } from './shown.ts'

type Output = {
  stderr: { write(text: string): unknown; isTTY?: boolean }
  print: (text: string) => void
  say: (text: string) => void
}

const rowsBetweenLines = 10_000
const clear = '\r\x1b[K'

export function withProgress<T extends Output>(around: T): T & { tell: (done: number, all: number) => void } {
  let isShown = false
  let told = 0
  const after = (write: (text: string) => void) => (text: string) => {
    if (isShown) around.stderr.write(clear)
    isShown = false
    write(text.split('\n').map(printable).join('\n'))
  }
  const say = after(around.say)
  return {
    ...around,
    say,
    print: after(around.print),
    tell(done, all) {
      const text = `${count(done)} of ${count(all)}`
      if (around.stderr.isTTY) {
        around.stderr.write(clear + text)
        isShown = true
      } else if (done - told >= rowsBetweenLines) {
        told = done
        say(text)
      }
    },
  }
}
