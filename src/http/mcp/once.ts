import type { Operation } from '../../operations/operation.ts'

/** What is made of a declaration, which stays as it is: made when it is first asked for, and kept. */
export function oncePerOperation<Made>(make: (operation: Operation) => Made): (operation: Operation) => Made {
  const kept = new Map<Operation, Made>()
  return (operation) => {
    const made = kept.get(operation) ?? make(operation)
    kept.set(operation, made)
    return made
  }
}
