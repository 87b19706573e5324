// Finds variables that are set under a name that nothing reads, but that was meant for Usher. Other programs have variables as well:
// silence about a misspelt one is better than a remark about theirs.

/** A name that is set, and the one that was meant; undefined where no known one is near. */
export type Misspelt = { name: string; meant: string | undefined }

/** A variable that is set to nothing counts as not set. */
export function findMisspelt(environment: Record<string, string | undefined>, known: readonly string[]): Misspelt[] {
  const set = Object.entries(environment).filter(([, value]) => value)
  // What is set was not misspelt: a name beside it is somebody else's.
  const unset = known.filter((name) => !environment[name])
  return set
    .filter(([name, value]) => !known.includes(name) && !isOfKubernetes(name, value))
    .map(([name]) => ({ name, meant: nearest(name, unset) ?? nearest(withoutPrefix(name), unset) }))
    .filter(({ name, meant }) => meant !== undefined || name.startsWith(prefix))
}

const prefix = 'USHER_'
const withoutPrefix = (name: string): string => (name.startsWith(prefix) ? name.slice(prefix.length) : name)

/** It sets variables about each service, and one may be called usher. */
const isOfKubernetes = (name: string, value = ''): boolean =>
  /_SERVICE_(HOST|PORT)|_PORT_\d+_/.test(name) || /^(tcp|udp|sctp):\/\//.test(value)

function nearest(name: string, known: readonly string[]): string | undefined {
  const near = known.map((each) => ({ each, apart: apart(name, each) })).filter((one) => one.apart <= 3)
  return near.sort((a, b) => a.apart - b.apart)[0]?.each
}

/** Letters that differ, word by word: DATABASE_USER is far from DATABASE_URL, and DATABSE_URL near. Infinity: too many in one word. */
function apart(name: string, known: string): number {
  if (lettersOf(name) === lettersOf(known)) return 0
  const [words, meant] = [wordsOf(name), wordsOf(known)]
  if (words.length !== meant.length) return Number.POSITIVE_INFINITY
  const isShort = meant.length === 1 && known.length < 6
  // Other words are as near to PORT and HOST: only letters in another order count.
  if (isShort && sorted(name.toUpperCase()) !== sorted(known)) return Number.POSITIVE_INFINITY
  return meant.reduce((sum, word, i) => {
    const letters = distance(words[i] as string, word)
    return letters <= tolerated(word) ? sum + letters : Number.POSITIVE_INFINITY
  }, 0)
}

const tolerated = ({ length }: string): number => (length < 3 ? 0 : length < 7 ? 1 : 2)
const lettersOf = (name: string): string => name.toUpperCase().replace(/[^A-Z0-9]/g, '')
const sorted = (word: string): string => [...word].sort().join('')
/** In the singular. */
const wordsOf = (name: string): string[] =>
  name
    .toUpperCase()
    .split('_')
    .map((word) => word.replace(/IES$/, 'Y').replace(/(?<=\w{3})S$/, ''))

/** Letters to insert, leave out, replace or swap with the next one. */
function distance(a: string, b: string): number {
  const rows = Array.from({ length: a.length + 1 }, (_, i) => [i, ...Array<number>(b.length).fill(0)])
  const at = (i: number, j: number) => rows[i]?.[j] ?? 0
  for (let j = 1; j <= b.length; j++) (rows[0] as number[])[j] = j
  for (let i = 1; i <= a.length; i++) {
    for (let j = 1; j <= b.length; j++) {
      const replaced = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swapped = isSwap ? at(i - 2, j - 2) + 1 : replaced
      ;(rows[i] as number[])[j] = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, replaced, swapped)
    }
  }
  return at(a.length, b.length)
}
