// Holds an answer over MCP against that of REST: it says less, and nothing else.

import { timeText } from '../../src/http/mcp/words.ts'

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

/** What is added to the fields of REST: words for amounts and for the time and the name of an event, and places in a filtered list. */
const isAdded = (name: string, object: Record<string, unknown>): boolean =>
  name === 'when' ||
  name === 'index' ||
  name === '…' ||
  (name === 'event' && 'event_id' in object) ||
  (name.endsWith('_text') && name.slice(0, -'_text'.length) in object)

/** @returns the paths at which `lean` is no projection of `whole`. */
export function differences(lean: unknown, whole: unknown, path = 'body'): string[] {
  if (Array.isArray(lean) && Array.isArray(whole)) {
    const isFiltered = lean.some((item) => isObject(item) && 'index' in item)
    const isCut = /^… \[\d+ more/.test(String(lean.at(-1)))
    if (!isFiltered && !isCut && lean.length !== whole.length) return [path]
    return (isCut ? lean.slice(0, -1) : lean).flatMap((item, place) =>
      differences(item, whole[isFiltered ? item.index : place], `${path}.${place}`),
    )
  }
  if (isObject(lean) && isObject(whole)) {
    if (Object.keys(lean).length === 0) return [`${path} is empty`]
    return Object.entries(lean).flatMap(([name, member]) => {
      const isMissing = !(name in whole)
      if (isMissing) return isAdded(name, lean) ? [] : [`${path}.${name}`]
      return differences(member, whole[name], `${path}.${name}`)
    })
  }
  // The audit trail tells what a field was, which may be null.
  const mayBeNull = path.includes('.changes.')
  return (lean !== null || mayBeNull) && isSame(lean, whole) ? [] : [path]
}

function isSame(lean: unknown, whole: unknown): boolean {
  if (typeof lean !== 'string' || typeof whole !== 'string') return lean === whole
  const [start, mark] = lean.split('… [', 2) as [string, string?]
  if (mark !== undefined) return whole.startsWith(start)
  return lean === whole || (/^\d{4}-\d\d-\d\dT/.test(lean) && timeText(lean, undefined) === timeText(whole, undefined))
}
