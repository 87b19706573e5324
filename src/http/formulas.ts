// What spreadsheets take for a formula in a file that they open (https://owasp.org/www-community/attacks/CSV_Injection), and back.

// A field begins where the file says, and in a spreadsheet whose list separator is another also after a semicolon, a tab or a line break.
const begins = '[=+\\-@\\t\\r\\n\\uff1d\\uff0b\\uff0d\\uff20]'
const inside = '[;\\t\\r\\n]"*'
const formula = new RegExp(`^(?=${begins})|(?<=${inside})(?=[=+\\-@\\uff1d\\uff0b\\uff0d\\uff20])`, 'g')
const marked = new RegExp(`(?<=^|${inside})'(?=${begins})`, 'g')
const number = /^-?\d+(\.\d+)?$/

/** With a `'` before each formula. A number is none, whatever its sign. */
export const withoutFormulas = (text: string): string => (number.test(text) ? text : text.replace(formula, "'"))

/** What `withoutFormulas` was given. */
export const withFormulas = (text: string): string => text.replace(marked, '')

/** The same JSON, in which no semicolon stands before a formula; line breaks and tabs are escaped in it anyway. */
export const jsonWithoutFormulas = (json: string): string =>
  json.replace(/;(?=[=+\-@\uff1d\uff0b\uff0d\uff20])/g, '\\u003b')
