// How many RPCs the database works on at once, over all keys. Beyond that they wait, and calls of a key gather meanwhile (lines.ts).
// Owners have their turns in rotation. Must know nothing of what is called.

import { unavailable } from './api-error.ts'

// An RPC that takes longer waits rather than works, as for a lock: its place goes to another one.
const busyMs = 100
// Unanswered RPCs, busy or not, of one owner while another one waits; and of all while one has more. The Data API has twenty connections.
const shareOfOwner = 6
const mostUnanswered = 14
// As long as the Data API lets a request wait for a connection.
const patienceMs = 5_000

export type Places = {
  /**
   * Resolves in the owner's turn, at once while there are places, to what is to be called when the RPC is answered.
   * @throws ApiError 503, when it did not come in time. Who waits only for calls of its owner has twice as long, because each of those
   * ends after eight seconds.
   */
  enter(owner: string): Promise<() => void>
}

type Owner = { unanswered: number; waiting: Set<() => void> }

/** @param mostBusy more would only wait for one another in Postgres. */
export function createPlaces(mostBusy: number): Places {
  const owners = new Map<string, Owner>()
  /** Those with something that waits, in the order of their turns. */
  const turns = new Set<Owner>()
  let busy = 0
  let unanswered = 0

  function next(): void {
    // An owner that is added again meanwhile has another turn after the others.
    for (const owner of turns) {
      if (busy >= mostBusy) return
      const [begin] = owner.waiting
      if (begin === undefined || !mayBegin(owner)) continue
      turns.delete(owner)
      begin()
      if (owner.waiting.size > 0) turns.add(owner)
    }
  }

  function mayBegin(owner: Owner): boolean {
    return owner.unanswered < shareOfOwner || (turns.size === 1 && unanswered < mostUnanswered)
  }

  /** @returns what gives the place back. */
  function take(name: string, owner: Owner): () => void {
    let isBusy = true
    busy += 1
    unanswered += 1
    owner.unanswered += 1
    const rest = () => {
      if (isBusy) busy -= 1
      isBusy = false
    }
    const timer = setTimeout(() => {
      rest()
      next()
    }, busyMs)
    return () => {
      clearTimeout(timer)
      rest()
      unanswered -= 1
      owner.unanswered -= 1
      if (owner.unanswered === 0 && owner.waiting.size === 0) owners.delete(name)
      next()
    }
  }

  return {
    enter(name) {
      const owner = owners.get(name) ?? { unanswered: 0, waiting: new Set() }
      owners.set(name, owner)
      const isFree = owner.unanswered < shareOfOwner || unanswered < mostUnanswered
      if (turns.size === 0 && busy < mostBusy && isFree) return Promise.resolve(take(name, owner))
      return new Promise((resolve, reject) => {
        const leave = () => {
          clearTimeout(timer)
          owner.waiting.delete(begin)
        }
        const begin = () => {
          leave()
          resolve(take(name, owner))
        }
        const refuse = () => {
          leave()
          if (owner.waiting.size === 0) turns.delete(owner)
          reject(unavailable(new Error('The database was busy with other calls.')))
        }
        let timer = setTimeout(() => {
          if (owner.unanswered < shareOfOwner) refuse()
          else timer = setTimeout(refuse, patienceMs)
        }, patienceMs)
        owner.waiting.add(begin)
        turns.add(owner)
        next()
      })
    },
  }
}
