import { registration } from '../subjects.ts'
import { comparing, type Scenario } from './scenario.ts'

export const manyOrganisations: Scenario = {
  name: 'many-organisations',
  question: 'How fast are registrations for 32 organisations at once, each with a key and an event?',
  run: comparing(
    ['usher', 'postgrest', 'base'],
    [
      {
        title: 'Registrations',
        connections: [1, 64],
        organisers: 32,
        prepare: (_, organiser) => (nth) => registration(organiser, nth),
        written: 'registrations',
        limits: [
          { figure: 'p50', at: 1, against: 'postgrest', atMost: 1.2 },
          { figure: 'rate', at: 64, against: 'base', atLeast: 0.9 },
        ],
      },
    ],
  ),
}
