// What is heard and felt with a verdict.

import { sounds, type Tone } from './tones.ts'

const noteSeconds = 0.14
let audio: AudioContext | undefined

/** To be called in a click: browsers let a page sound only after one. */
export function allowSound(): void {
  audio ??= new AudioContext()
  void audio.resume()
}

export function signal(tone: Tone): void {
  navigator.vibrate?.(tone === 'welcome' ? 80 : [120, 60, 120])
  if (audio === undefined) return
  const begin = audio.currentTime
  const { hertz, wave, gain } = sounds[tone]
  for (const [index, frequency] of hertz.entries()) {
    const note = new OscillatorNode(audio, { frequency, type: wave })
    const volume = new GainNode(audio, { gain })
    note.connect(volume).connect(audio.destination)
    note.start(begin + index * noteSeconds)
    note.stop(begin + (index + 1) * noteSeconds)
  }
}
