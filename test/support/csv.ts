// Reads CSV as RFC 4180 has it, and nothing else: lines end in CRLF, also the last; a field with a quote, a comma or a line break is quoted.

export function parseCsv(text: string): Record<string, string>[] {
  const [header = [], ...lines] = linesOf(text)
  return lines.map((cells) => {
    if (cells.length !== header.length) throw new Error(`a line has ${cells.length} cells, and not ${header.length}`)
    return Object.fromEntries(header.map((name, i) => [name, cells[i] as string]))
  })
}

function linesOf(text: string): string[][] {
  const lines: string[][] = []
  const cell = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/y
  let line: string[] = []
  while (cell.lastIndex < text.length) {
    const from = cell.lastIndex
    const found = cell.exec(text)
    if (found === null) throw new Error(`no CSV at ${from}: ${JSON.stringify(text.slice(from, from + 60))}`)
    line.push(found[1]?.replaceAll('""', '"') ?? found[2] ?? '')
    if (found[3] === ',') continue
    lines.push(line)
    line = []
  }
  return lines
}
