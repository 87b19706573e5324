// JSON as it is written, so that it can be written wrongly: a leaf is any text, names may repeat, and nothing has to be closed.

import type { Random } from '../random.ts'
import { hostileLeaf, hostileName } from './values.ts'

export type Node = Leaf | Members | Items
type Leaf = { text: string }
type Members = { members: [name: string, value: Node][] }
type Items = { items: Node[] }

export function nodeOf(value: unknown): Node {
  if (Array.isArray(value)) return { items: value.map(nodeOf) }
  if (typeof value !== 'object' || value === null) return { text: JSON.stringify(value) ?? 'null' }
  return { members: Object.entries(value).map(([name, member]) => [JSON.stringify(name), nodeOf(member)]) }
}

export function textOf(node: Node): string {
  if ('text' in node) return node.text
  if ('items' in node) return `[${node.items.map(textOf).join(',')}]`
  return `{${node.members.map(([name, value]) => `${name}:${textOf(value)}`).join(',')}}`
}

/** Where a value stands, with what puts another in its place. */
type Place = { node: Node; put(other: Node): void }

function placesIn(node: Node, put: Place['put']): Place[] {
  const inside: Place[] = []
  if ('items' in node) {
    for (const [i, item] of node.items.entries()) {
      inside.push(
        ...placesIn(item, (other) => {
          node.items[i] = other
        }),
      )
    }
  } else if ('members' in node) {
    for (const member of node.members) {
      inside.push(
        ...placesIn(member[1], (other) => {
          member[1] = other
        }),
      )
    }
  }
  return [{ node, put }, ...inside]
}

/** Changes it in one place. @returns the changed whole. */
export function mutate(whole: Node, random: Random): Node {
  let changed = whole
  const places = placesIn(whole, (other) => {
    changed = other
  })
  // The whole itself is no more likely than any other place.
  const { node, put } = random.pick(places) as Place
  const kind = random.below(10)
  if (kind < 6) put({ text: hostileLeaf(random) })
  else if (kind < 7) put({ items: [node, node] })
  else if ('members' in node) {
    const one = random.pick(node.members)
    if (kind < 8 || one === undefined) node.members.push([hostileName(random), { text: hostileLeaf(random) }])
    else if (kind < 9) node.members.push([one[0], { text: hostileLeaf(random) }])
    else node.members.splice(node.members.indexOf(one), 1)
  } else if ('items' in node) {
    const [item = { text: 'null' }] = node.items
    // Within each other they would not fit into a string.
    const most = Math.ceil(2 ** 22 / textOf(item).length)
    const times = Math.min(random.pick([0, 2, 51, 101, 1001]) as number, most)
    node.items = Array.from({ length: times }, () => item)
  } else put({ members: [[hostileName(random), node]] })
  return changed
}

/** Spoils the text itself. */
export function garble(text: string, random: Random): string {
  const at = random.below(text.length + 1)
  switch (random.below(8)) {
    case 0:
      return text.slice(0, at)
    case 1:
      return `${text}${random.pick(['}', ']', ',', 'x', text, '\0', '/**/'])}`
    case 2:
      return `\ufeff${text}`
    case 3:
      return (
        text.slice(0, at) +
        (random.pick(['\0', '\u001f', '"', '\\', '\n', '{', ',,', '//x\n', "'"]) ?? '') +
        text.slice(at)
      )
    case 4:
      return text.replaceAll('"', "'")
    case 5:
      return text.replace(/}$/, ',}')
    case 6:
      return (random.pick(['null', '7', '"text"', 'true', '', '   ', '[]', '[[]]', '{}', '[{}]']) ?? '') as string
    default:
      return text.toUpperCase()
  }
}
