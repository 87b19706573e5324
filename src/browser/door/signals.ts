// What is heard and felt with a verdict: welcome and refusal differ in melody, not only in pitch.

import type { Tone } from './tones.ts'

// Hertz, one after the other.
const melodies: Record<Tone, number[]> = { welcome: [660, 990], caution: [520, 520], stop: [220, 160, 110] }
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
  for (const [index, frequency] of melodies[tone].entries()) {
    const note = new OscillatorNode(audio, { frequency, type: tone === 'welcome' ? 'sine' : 'square' })
    const volume = new GainNode(audio, { gain: tone === 'welcome' ? 0.3 : 0.12 })
    note.connect(volume).connect(audio.destination)
    note.start(begin + index * noteSeconds)
    note.stop(begin + (index + 1) * noteSeconds)
  }
}
