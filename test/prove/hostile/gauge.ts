// Loaded into a process that is measured: collects garbage and answers what is left, whenever its parent asks.

import { setImmediate } from 'node:timers/promises'

process.on('message', async (message) => {
  if (message !== 'measure') return
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.()
    await setImmediate()
  }
  const { rss, heapUsed: heap, external } = process.memoryUsage()
  process.send?.({ rss, heap, external, handles: process.getActiveResourcesInfo().length })
})
// Waits for messages, and keeps nothing alive by it.
process.channel?.unref()
