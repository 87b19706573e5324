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

const placesIn = (node: Node, put: Place['put']): Place[] => [
  { node, put },
  ...childrenOf(node).flatMap((child) => placesIn(child.node, child.put)),
]

function childrenOf(node: Node): Place[] {
  if ('items' in node) {
    const { items } = node
    return items.map((item, i) => ({ node: item, put: (other) => void items.splice(i, 1, other) }))
  }
  if (!('members' in node)) return []
  return node.members.map((member) => ({ node: member[1], put: (other) => void member.splice(1, 1, other) }))
}

/** Changes it in one place. @returns the changed whole. */
export function mutate(whole: Node, random: Random): Node {
  let changed = whole
  const places = placesIn(whole, (other) => {
    changed = other
  })
  // The whole itself is no more likely than any other place.
  const { node, put } = random.one(places)
  const kind = random.below(10)
  if (kind < 6) put({ text: hostileLeaf(random) })
  else if (kind < 7) put({ items: [node, structuredClone(node)] })
  else if ('members' in node) {
    const one = random.pick(node.members)
    if (kind < 8 || one === undefined) node.members.push([hostileName(random), { text: hostileLeaf(random) }])
    else if (kind < 9) node.members.push([one[0], { text: hostileLeaf(random) }])
    else node.members.splice(node.members.indexOf(one), 1)
  } else if ('items' in node) {
    const [item = { text: 'null' }] = node.items
    // Lists of long items would not fit into a string; nor would items that are one object, of which each change changes all.
    const most = Math.ceil(2 ** 22 / textOf(item).length)
    const times = Math.min(random.one([0, 2, 51, 101, 1001]), most)
    node.items = Array.from({ length: times }, () => structuredClone(item))
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
      return `${text}${random.one(['}', ']', ',', 'x', text, '\0', '/**/'])}`
    case 2:
      return `\ufeff${text}`
    case 3:
      return text.slice(0, at) + random.one(['\0', '\u001f', '"', '\\', '\n', '{', ',,', '//x\n', "'"]) + text.slice(at)
    case 4:
      return text.replaceAll('"', "'")
    case 5:
      return text.replace(/}$/, ',}')
    case 6:
      return random.one(['null', '7', '"text"', 'true', '', '   ', '[]', '[[]]', '{}', '[{}]'])
    default:
      return text.toUpperCase()
  }
}
