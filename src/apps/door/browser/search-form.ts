// The form in which names are searched: private.search_form of the database; test/browser/search-form.test.ts holds both to one table.

const letters: Record<string, string> = {
  ...{ ø: 'o', ł: 'l', đ: 'd', ð: 'd', ħ: 'h', ı: 'i', ŧ: 't' },
  ...{ ß: 'ss', æ: 'ae', œ: 'oe', þ: 'th' },
}

export const searchForm = (text: string): string =>
  text
    .replace(/[\p{DI}\u2800\ufff9-\ufffb]/gu, '')
    .replace(
      /[`\u00b4\u02b9\u02bb-\u02bf\u02c8\u02ca\u02cb\u2018\u2019\u201b\u2032\u2035\u055a\u05f3\ua78b\ua78c\uff07\uff40]/g,
      "'",
    )
    .replace(/[\u02d7\u058a\u05be\u2010-\u2015\u2043\u2212\u2e3a\u2e3b\ufe58\ufe63\uff0d]/g, '-')
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[\u0300-\u036f]/g, '')
    .replace(/[øłđðħıŧßæœþ]/g, (letter) => letters[letter] ?? letter)
    .replace(/[\s\x85]+/g, ' ')
    .trim()
