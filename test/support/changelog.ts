// docs/reference/changelog.md as tests read it: a line for each change, below the kind of change.

export type Change = {
  /** Added, Changed, Deprecated or Removed. */
  kind: string
  text: string
  names: string[]
  /** The names that it begins with: those that it is about. */
  subjects: string[]
}

const namesIn = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name)

export const changesIn = (page: string): Change[] =>
  page.split(/^#{2,3} /m).flatMap((section) => {
    const [heading = '', ...lines] = section.split(/^- /m)
    return lines.map((line) => {
      const text = line.trim().replace(/\s+/g, ' ')
      const [leading = ''] = /^(`[^`]+`(, | and )?)*/.exec(text) ?? []
      return { kind: heading.trim(), text, names: namesIn(text), subjects: namesIn(leading) }
    })
  })

export const subjectsOf = (changes: Change[], kind: string): Set<string> =>
  new Set(changes.filter((change) => change.kind === kind).flatMap(({ subjects }) => subjects))
