import { registration } from '../subjects.ts'
import { comparing, type Scenario } from './scenario.ts'

export const hosted: Scenario = {
  name: 'hosted',
  question: 'How fast are registrations by an API whose Data API is 20 ms away?',
  run: comparing(
    ['hosted', 'hosted base'],
    [
      {
        title: 'Registrations',
        connections: [1, 64],
        prepare: (_, organiser) => (nth) => registration(organiser, nth),
        written: 'registrations',
        // One round trip; at 64 connections no more than seven times the delay.
        limits: [
          { figure: 'p50', at: 1, atMost: 40 },
          { figure: 'p95', at: 64, atMost: 140 },
        ],
      },
    ],
  ),
}
