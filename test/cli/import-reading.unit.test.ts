// Lists as spreadsheets and other systems write them: what is read of the bytes, and which column holds what.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { countKnown, findColumns, isOut, readMap } from '../../src/cli/import/columns.ts'
import { describeShortages } from '../../src/cli/import/preview.ts'
import { withProgress } from '../../src/cli/import/progress.ts'
import { openRefusedFile } from '../../src/cli/import/refused-file.ts'
import { openSheet } from '../../src/cli/import/sheet.ts'
import { printable } from '../../src/cli/import/shown.ts'

const folder = mkdtempSync(join(tmpdir(), 'usher-import-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function fileOf(content: string | Uint8Array): string {
  const path = join(folder, `list-${++files}.csv`)
  writeFileSync(path, content)
  return path
}

async function read(content: string | Uint8Array) {
  const { encoding, delimiter, header, rows } = await openSheet(fileOf(content), undefined, countKnown)
  return { encoding, delimiter, header, rows: await Array.fromAsync(rows()) }
}

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part))))
const utf16 = (text: string) => Buffer.from(`\ufeff${text}`, 'utf16le')

describe('encodings', () => {
  const text = 'name;email\nZoë Müller;zoe@example.com\n'
  test.each([
    ['UTF-8', Buffer.from(text), 'utf-8'],
    ['UTF-8 with a byte order mark', Buffer.from(`\ufeff${text}`), 'utf-8'],
    ['UTF-16, as Excel calls Unicode text', utf16(text), 'utf-16le'],
  ])('%s is read as it is', async (_, content, label) => {
    const { encoding, header, rows } = await read(content)
    expect([encoding, header]).toEqual([label, ['name', 'email']])
    expect(rows).toEqual([{ line: 2, cells: ['Zoë Müller', 'zoe@example.com'] }])
  })

  test('a byte that is not UTF-8 counts wherever it is, and a letter that is split between reads is whole', async () => {
    const many = `${'ü'.repeat(40_000)};x\n`.repeat(3)
    const [even, odd] = await Promise.all([read(`name;email\n${many}`), read(`name;email2\n${many}`)])
    for (const { encoding, rows } of [even, odd]) {
      expect(encoding).toBe('utf-8')
      expect(rows.map(({ cells }) => cells[0])).toEqual(Array(3).fill('ü'.repeat(40_000)))
    }
  })

  test.each([
    ['Latin-1', Buffer.from(text, 'latin1'), 2],
    ['one byte far down', bytes('name;email\r\n', `${'a'.repeat(100_000)}\n`, [0xfc], '\n', [0xfc]), 3],
    ['half a letter at the end, after a byte order mark', bytes([0xef, 0xbb, 0xbf], 'name;email\rx;y\r', [0xc3]), 3],
  ])('%s is not guessed: the first line that is no UTF-8 is named, and what to do', async (_, content, line) => {
    const complaint = new RegExp(`is not UTF-8: see line ${line}\\. Save the list as "CSV UTF-8"`)
    await expect(read(content)).rejects.toMatchObject({ exitCode: 2, message: expect.stringMatching(complaint) })
  })

  test.each([
    ['an .xlsx', bytes('PK', [3, 4], 'xl/workbook.xml'), /is a workbook.+Save the list as "CSV UTF-8"/],
    ['an .xls', bytes([0xd0, 0xcf, 0x11, 0xe0, 0xa1]), /is a workbook/],
    ['other bytes', bytes('name', [0, 1, 2]), /is not text/],
    ['UTF-16 with the other order of bytes', utf16(text).swap16(), /is not text.+"CSV UTF-8"/],
    ['a letter that a program has lost', 'name,email\nZo\ufffd,z@example.com\n', /see line 2/],
    ['nothing', '', /is empty/],
    ['a byte order mark alone', '\ufeff', /is empty/],
    ['lines without anything', '\n\n;;\n', /is empty/],
  ])('%s is refused', async (_, content, complaint) => {
    await expect(read(content)).rejects.toMatchObject({ exitCode: 2, message: expect.stringMatching(complaint) })
  })

  test('so are a folder and a file that is not there', async () => {
    for (const [path, complaint] of [
      [folder, /is a folder/],
      [join(folder, 'none.csv'), /There is no such file/],
    ] as const) {
      await expect(openSheet(path, undefined, countKnown)).rejects.toThrow(complaint)
    }
  })
})

describe('cells', () => {
  test.each([
    [',', 'name,email\n"Jackson, Mary",m@example.com\n'],
    [';', 'name;email\n"Jackson, Mary";m@example.com\n'],
    ['\t', 'name\temail\r\n"Jackson, Mary"\tm@example.com\r\n'],
    ['|', 'name|email\rJackson, Mary|m@example.com\r'],
    [';', 'sep=;\r\nname;email\r\nJackson, Mary;m@example.com\r\n'],
    [';', '"sep=;"\r\nname;email\r\nJackson, Mary;m@example.com\r\n'],
    // More commas than semicolons, but in one name.
    [';', '"a,b,c,d";email;name\nx;m@example.com;Jackson, Mary\n'],
  ])('the delimiter %j is found out', async (delimiter, content) => {
    const found = await read(content)
    expect(found.delimiter).toBe(delimiter)
    expect(found.rows.map(({ cells }) => cells)).toEqual([expect.arrayContaining(['Jackson, Mary', 'm@example.com'])])
  })

  test('quotes, line breaks and equals signs are kept, rows of any width and their lines are told', async () => {
    const { rows } = await read(
      'name,email\r\n"Mary ""MJ""\nJackson",=1+1\r\n\r\nJim "the man" Smith,j\r\n,,\r\nshort\na,b,c\n',
    )
    expect(rows).toEqual([
      { line: 2, cells: ['Mary "MJ"\nJackson', '=1+1'] },
      { line: 5, cells: ['Jim "the man" Smith', 'j'] },
      { line: 7, cells: ['short'] },
      { line: 8, cells: ['a', 'b', 'c'] },
    ])
  })

  test('a quotation mark that is not closed is told where it is, however long the file', async () => {
    for (const rest of ['c@example.com\n', 'x'.repeat(2_000_000)]) {
      await expect(read(`name,email\na,b\n"c,${rest}`)).rejects.toThrow(/after line 2\. A quotation mark/)
    }
  })

  test('what is written of those who are refused is read as it was', async () => {
    const cells = ['plain', ' blanks ', 'a;b', 'say "hi"', 'two\nlines', '=1', '', "'"]
    const list = await openSheet(fileOf('name;email;a;b;c;d;e;f\n'), undefined, countKnown)
    const refused = await openRefusedFile(list)
    await refused.add([{ row: { line: 2, cells }, error: 'It is "odd".' }])
    const { header, rows } = await openSheet(refused.path() ?? '', undefined, countKnown)
    expect(header).toEqual(['error', ...list.header])
    expect(await Array.fromAsync(rows())).toEqual([{ line: 2, cells: ['It is "odd".', ...cells] }])
  })
})

describe('columns', () => {
  const found = (header: string, map = '', restIsMetadata = false) => {
    const names = header.split(',')
    const { fields, metadata, statuses, leftOut } = findColumns(names, readMap(map) ?? new Map(), restIsMetadata)
    return {
      ...(statuses.length > 0 && { status: statuses.map((column) => names[column]) }),
      ...Object.fromEntries([...fields].map(([field, column]) => [field, names[column]])),
      ...Object.fromEntries([...metadata].map(([column, key]) => [`metadata.${key}`, names[column]])),
      leftOut,
    }
  }

  test.each<[string, string, fields: string, leftOut?: string]>([
    [
      'Usher',
      'name,E_Mail,COMPANY,Ticket Type,external_id,metadata.Diet',
      'name: name, email: E_Mail, company: COMPANY, ticket_type: Ticket Type, external_id: external_id, metadata.Diet: metadata.Diet',
    ],
    [
      'pretix',
      'Order code,Email,Product,Attendee name,Attendee name: Given name,Attendee name: Family name,Attendee email,Company,Pseudonymization ID',
      'name: Attendee name, email: Attendee email, company: Company, ticket_type: Product, external_id: Pseudonymization ID, first_name: Attendee name: Given name, last_name: Attendee name: Family name',
      'Order code,Email',
    ],
    [
      'Eventbrite',
      'Order no.,First Name,Surname,Email,Quantity,Ticket Type,Attendee no.,Attendee Status',
      'first_name: First Name, last_name: Surname, email: Email, ticket_type: Ticket Type, external_id: Attendee no., status: Attendee Status',
      'Order no.,Quantity',
    ],
    [
      'Eventbrite in the United States',
      'Order #,First Name,Last Name,Email,Quantity,Ticket Type,Attendee #,Company',
      'first_name: First Name, last_name: Last Name, email: Email, ticket_type: Ticket Type, external_id: Attendee #, company: Company',
      'Order #,Quantity',
    ],
    [
      'Tito',
      'Number,Ticket,Ticket Full Name,Ticket First Name,Ticket Last Name,Ticket Email,Ticket Company Name,Ticket Reference,Order Email',
      'name: Ticket Full Name, email: Ticket Email, ticket_type: Ticket, company: Ticket Company Name, external_id: Ticket Reference, first_name: Ticket First Name, last_name: Ticket Last Name',
      'Number,Order Email',
    ],
    [
      'French lists',
      'Prénom,NOM,Adresse e-mail,Société,Type de billet,Réponse',
      'first_name: Prénom, last_name: NOM, email: Adresse e-mail, company: Société, ticket_type: Type de billet, status: Réponse',
    ],
    [
      'Spanish lists',
      'Nombre,Apellidos,Correo electrónico,Empresa,Entrada,Estado,Teléfono',
      'first_name: Nombre, last_name: Apellidos, email: Correo electrónico, company: Empresa, ticket_type: Entrada, status: Estado',
      'Teléfono',
    ],
    [
      'Dutch lists',
      'Voornaam,Achternaam,E-mailadres,Bedrijf,Soort ticket,Status,RSVP',
      'first_name: Voornaam, last_name: Achternaam, email: E-mailadres, company: Bedrijf, ticket_type: Soort ticket, status: Status, status: RSVP',
    ],
    [
      'a list with decomposed letters',
      'Pre\u0301nom,Nom,mail',
      'first_name: Pre\u0301nom, last_name: Nom, email: mail',
    ],
    [
      'German lists',
      'Vorname,Nachname,E-Mail-Adresse,Firma,Ticketart,Telefon',
      'first_name: Vorname, last_name: Nachname, email: E-Mail-Adresse, company: Firma, ticket_type: Ticketart',
      'Telefon',
    ],
    ['others, where Name is the surname', 'Vorname,Name,Mail', 'first_name: Vorname, last_name: Name, email: Mail'],
  ])('are known as in %s', (_, header, fields, leftOut = '') => {
    const { leftOut: others, status = [], ...known } = found(header)
    const said = [...Object.entries(known), ...status.map((name) => ['status', name])].map((pair) => pair.join(': '))
    expect([said.toSorted(), others.join()]).toEqual([fields.split(', ').toSorted(), leftOut])
  })

  test('are what --map says, in spite of their names', () => {
    const map = 'Mail=email,Firm, or so=company,Id=,Notes=metadata.remarks,Wer=name,Kommt=status,Status='
    const names = ['Wer', 'Vorname', 'Mail', 'Firm, or so', 'Id', 'Notes', 'Phone', 'Status', 'Kommt']
    const { fields, metadata, statuses, leftOut } = findColumns(names, readMap(map) ?? new Map(), true)
    expect([Object.fromEntries(fields), statuses]).toEqual([{ name: 0, email: 2, company: 3 }, [8]])
    expect([...metadata]).toEqual([
      [5, 'remarks'],
      [1, 'Vorname'],
      [6, 'Phone'],
    ])
    expect(leftOut).toEqual(['Id', 'Status'])
  })

  test('both parts of a name are metadata too, where the list has any, and none of its own is called so', () => {
    const parts = { 'metadata.first_name': 'Vorname', 'metadata.last_name': 'Nachname' }
    expect(found('Vorname,Nachname,email,metadata.diet')).toMatchObject(parts)
    expect(found('Vorname,Nachname,email', '', true)).toMatchObject({ ...parts, first_name: 'Vorname' })
    expect(Object.keys(found('Vorname,Nachname,email'))).not.toContain('metadata.last_name')
    const own: Record<string, unknown> = found('Vorname,Nachname,email,metadata.last_name')
    expect([own['metadata.last_name'], own['metadata.first_name']]).toEqual(['metadata.last_name', undefined])
    expect(Object.keys(found('Vorname,email,metadata.diet'))).not.toContain('metadata.first_name')
    const many = Array.from({ length: 49 }, (_, i) => `metadata.${i}`).join(',')
    expect(Object.keys(found(`Vorname,Nachname,email,${many}`))).not.toContain('metadata.last_name')
  })

  test('other columns are metadata on request, but not the reason for which a row was refused before', () => {
    expect(found('error,name,email,Diet,', '', true)).toEqual({
      name: 'name',
      email: 'email',
      'metadata.Diet': 'Diet',
      leftOut: [],
    })
  })

  test.each([
    ['name,company', '', /No column holds an e-mail address\. Found: name, company\./],
    ['Mary Jackson,mary@example.com', '', /No column holds a name .+ and an e-mail address\. Found: Mary Jackson, /],
    ['name,email,E-Mail', '', /a column twice: email \(column 2\) and E-Mail \(column 3\)/],
    ['name,email,mail', '', /More than one column could be email: .+--map "email=email"/],
    ['name,email', 'Wer=name', /There is no column Wer\. Found: name, email\./],
    ['name,email,diet,Diet,diet', '', /Two columns are metadata\.diet/],
    [`name,email,${'x'.repeat(41)}`, '', /longer than a metadata key can be \(40 characters\)/],
    [
      `name,email,${Array.from({ length: 51 }, (_, i) => `c${i}`)}`,
      '',
      /51 columns are more than the 50 metadata keys/,
    ],
  ])('%s %s are refused', (header, map, complaint) => {
    expect(() => found(header, map, true)).toThrow(complaint)
  })

  test('a complaint shows some of the columns, without what a terminal would obey', () => {
    const names = Array.from({ length: 50 }, (_, i) => `\u001b[31m${i}`)
    expect(() => found(names.join(','))).toThrow(/^No column holds a name .+ Found: ( \[31m\d+, ){40}…\./)
  })

  test.each(['Ticket', 'Ticket=ticket', '=email', 'a=email,b'])('--map %s is of no use', (text) => {
    expect(readMap(text)).toBeNull()
  })
})

test.each([
  ...['Cancelled', 'canceled', 'Declined', 'Not Attending', 'Void', 'No', 'storniert', 'Abgesagt', 'Nein', 'Annulé'],
  ...['refusée', 'Non', 'Cancelada', 'anulado', 'Rechazado', 'Geannuleerd', 'afgemeld', 'Nee'],
])('%s says that somebody does not come', (status) => {
  expect(isOut(status)).toBe(true)
})

test.each(['', 'Attending', 'Checked In', 'ja', 'paid', 'Zugesagt', 'Payé', 'Confirmado', 'Bevestigd'])(
  '%s does not',
  (status) => {
    expect(isOut(status)).toBe(false)
  },
)

test('what a terminal gets has no character that turns the direction of text, or that it obeys', () => {
  const text = 'a\u202eb\u2066c\u200fd\u061ce\u001b[1mf\ng\u2028h'
  expect(printable(text)).toBe('a b c d e [1mf g h')
  const said: string[] = []
  const write = (line: string) => void said.push(line)
  withProgress({ stderr: { write: () => {} }, print: write, say: write }).say('one \u202e\n  two')
  expect(said).toEqual(['one  \n  two'])
})

test('a dry run of several calls names the ticket types, and the event, that have fewer places than new guests', () => {
  const types = [
    ['full', 1_500],
    ['enough', 2],
    ['unlimited', null],
  ].map(([id, left]) => ({
    id,
    name: `Type ${id}`,
    quantity_available: left,
    quantity_sold: 30,
    quantity_held: 5,
  })) as Parameters<typeof describeShortages>[1]
  const event = (capacity: number | null) => ({ name: 'Gala', capacity }) as Parameters<typeof describeShortages>[0]
  const taken = new Map([
    ['full', 2_400],
    ['enough', 2],
    ['unlimited', 3],
  ])
  const ofType = 'Type full: 2,400 guests for 1,500 places. The last guests of the list would be refused.'
  const ofEvent = 'Gala: 2,405 guests for 2,404 places. The last guests of the list would be refused.'
  expect(describeShortages(event(null), types, taken)).toEqual([ofType])
  expect(describeShortages(event(2_510), types, taken)).toEqual([ofType])
  expect(describeShortages(event(2_509), types, taken)).toEqual([ofType, ofEvent])
})
