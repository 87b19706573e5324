// Which column of a list holds what of a guest: by its name, in the words of spreadsheets and of other systems, or as it is told.

import { withFormulas } from '../../http/formulas.ts'
import { CommandError } from '../command-error.ts'
import { listed, shown } from './shown.ts'

/** What a column may hold. The two parts of a name make one. */
export const fields = ['name', 'first_name', 'last_name', 'email', 'company', 'ticket_type', 'external_id'] as const
export type Field = (typeof fields)[number]

export type Columns = {
  /** By the place of the column, from 0. */
  fields: Map<Field, number>
  /** Columns that go into metadata, with the name that they have there. */
  metadata: Map<number, string>
  /** Columns that say who does not come. */
  statuses: number[]
  /** Names of columns that are not imported. */
  leftOut: string[]
}

// The first group that the header has a name of counts: what says that it is about the attendee comes before what may be the buyer's.
// From exports of pretix, Eventbrite, Tito and CRMs, in Usher's languages; as `plain` gives them.
const names: Record<Field, string[]> = {
  name: [
    'attendeename ticketfullname teilnehmername guestname gastname participantname naamdeelnemer',
    `name fullname displayname vorundnachname vornamenachname vollstandigername guest gast
     nom nomcomplet nometprenom prenometnom nomprenom prenomnom participant
     nombrecompleto nombreyapellidos apellidosynombre asistente naam volledigenaam voorenachternaam deelnemer`,
  ],
  first_name: [
    'attendeefirstname ticketfirstname attendeenamegivenname teilnehmernamevorname guestfirstname',
    // In Spanish the whole name too, where no Apellidos stand beside it.
    'firstname givenname forename vorname prenom nombre voornaam',
  ],
  last_name: [
    'attendeelastname ticketlastname attendeenamefamilyname teilnehmernamenachname guestlastname',
    `lastname surname familyname nachname familienname zuname
     nomdefamille apellido apellidos achternaam familienaam`,
  ],
  email: [
    'attendeeemail attendeeemailaddress ticketemail teilnehmeremail teilnehmeremailadresse guestemail',
    `email emailaddress mail mailaddress emailadresse mailadresse email1value
     adresseemail adressemail adresseelectronique courriel courrierelectronique
     correo correoelectronico direcciondecorreo direcciondecorreoelectronico emailadres mailadres`,
  ],
  company: [
    'attendeecompany ticketcompanyname ticketcompany teilnehmerfirma',
    `company companyname firma firmenname unternehmen organisation organization employer
     entreprise societe empresa organizacion bedrijf bedrijfsnaam organisatie`,
  ],
  ticket_type: [
    `tickettype tickettypename ticketart tickettyp ticketname ticketkategorie ticketcategory
     typedebillet categoriedebillet tipodeentrada tipodebillete ticketsoort soortticket`,
    'ticket billet entrada',
    'product produkt produit producto',
  ],
  external_id: [
    'externalid',
    `attendee# attendeeno attendeeid attendeenumber ticketreference pseudonymizationid guestid
     teilnehmerid teilnehmernr teilnehmernummer numerodeparticipant deelnemernummer deelnemersnummer`,
    'id contactid kontaktid recordid uid uuid',
  ],
}

// A list may have several, of an order and of a ticket, say.
const statusNames = `
  status attendeestatus attendancestatus ticketstatus ticketstate orderstatus bookingstatus rsvp rsvpstatus response
  teilnehmerstatus teilnahmestatus bestellstatus antwort ruckmeldung statut etat reponse estado respuesta reactie antwoord`
const statusesOut = `
  cancelled canceled declined refunded notattending notgoing void voided deleted no
  storniert abgesagt abgelehnt absage abgemeldet erstattet nein rembourse remboursee annule annulee decline declinee refuse refusee non
  cancelado cancelada anulado anulada rechazado rechazada reembolsado reembolsada geannuleerd terugbetaald afgemeld afgewezen geweigerd nee`

/** Whether a cell of a column of statuses says that somebody does not come. */
export const isOut = (status: string): boolean => isAmong(statusesOut, status)

const metadataPrefix = /^metadata\.(.+)$/is
const longestKey = 40
const mostKeys = 50

/** Case, accents, blanks and punctuation do not tell names apart. */
const plain = (name: string): string =>
  name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}#]+/gu, '')

const isAmong = (words: string, name: string): boolean => plain(name) !== '' && words.split(/\s+/).includes(plain(name))

/** How many columns have a name that is known. */
export const countKnown = (header: string[]): number => {
  const known = Object.values(names).flat().join(' ')
  return header.filter((name) => isAmong(known, name) || metadataPrefix.test(name)).length
}

/**
 * @param told what --map says: names of columns, and what each holds; an empty text leaves it out
 * @throws CommandError 2: a name that is there twice, or a column that is not there and has to be
 */
export function findColumns(header: string[], told: Map<string, string>, restIsMetadata: boolean): Columns {
  const found: Columns = { fields: new Map(), metadata: new Map(), statuses: [], leftOut: [] }
  const place = (name: string) =>
    requireOne(
      header,
      placesOf(header, (each) => plain(each) === plain(name)),
      name,
    )
  // The column that the file of those refused begins with.
  const used = new Set<number>(plain(header[0] ?? '') === 'error' ? [0] : [])
  for (const [name, holds] of told) {
    const column = place(name)
    used.add(column)
    const [, key] = metadataPrefix.exec(holds) ?? []
    if (key !== undefined) found.metadata.set(column, key.trim())
    else if (holds === 'status') found.statuses.push(column)
    else if (holds !== '') found.fields.set(holds as Field, column)
    else found.leftOut.push(header[column] as string)
  }
  const statuses = placesOf(header, (name) => isAmong(statusNames, name)).filter((column) => !used.has(column))
  found.statuses.push(...statuses)
  for (const field of fields) {
    if (found.fields.has(field)) continue
    for (const group of names[field]) {
      const columns = placesOf(header, (name) => isAmong(group, name)).filter((column) => !used.has(column))
      if (columns.length === 0) continue
      found.fields.set(field, requireOne(header, columns, field))
      break
    }
  }
  readName(found.fields, new Set(told.values()))
  for (const column of found.fields.values()) used.add(column)
  for (const [column, written] of header.entries()) {
    if (used.has(column)) continue
    // As an export wrote it.
    const name = withFormulas(written)
    const [, key] = metadataPrefix.exec(name) ?? []
    if (key !== undefined) found.metadata.set(column, key.trim())
    else if (restIsMetadata && name !== '') found.metadata.set(column, name)
    else if (name !== '' && !statuses.includes(column)) found.leftOut.push(name)
  }
  if (restIsMetadata || found.metadata.size > 0) keepNameParts(found)
  requireMetadata(found.metadata)
  requireFields(header, found.fields)
  return found
}

const placesOf = (header: string[], matches: (name: string) => boolean): number[] =>
  [...header.keys()].filter((column) => matches(header[column] as string))

function requireOne(header: string[], columns: number[], meant: string): number {
  const [column, ...others] = columns
  if (column === undefined) {
    throw new CommandError(2, `There is no column ${shown(meant)}. Found: ${listed(header)}.`)
  }
  if (others.length === 0) return column
  const called = columns.map((each) => `${shown(header[each] as string)} (column ${each + 1})`).join(' and ')
  const same = others.some((each) => plain(header[each] as string) === plain(header[column] as string))
  throw new CommandError(
    2,
    same
      ? `The header has a column twice: ${called}. Rename or remove one of them.`
      : `More than one column could be ${meant}: ${called}. Choose with --map "${shown(header[column] as string)}=${meant}".`,
  )
}

/** In German and French lists a Name beside a Vorname is the surname; beside both parts, or where it is told, it is the whole. */
function readName(fields: Map<Field, number>, told: Set<string>): void {
  const name = fields.get('name')
  // Of a row in which it is empty, the parts are the name.
  if (name === undefined || (fields.has('first_name') && fields.has('last_name'))) return
  if (fields.has('first_name') && !told.has('name')) {
    fields.delete('name')
    fields.set('last_name', name)
  } else {
    fields.delete('first_name')
    fields.delete('last_name')
  }
}

/** Both parts of a name, for lists by last name, where the list has metadata. What the list calls so itself stays. */
function keepNameParts({ fields, metadata }: Columns): void {
  const [first, last] = [fields.get('first_name'), fields.get('last_name')]
  const keys = [...metadata.values()]
  if (first === undefined || last === undefined || keys.length + 2 > mostKeys) return
  if (keys.includes('first_name') || keys.includes('last_name')) return
  metadata.set(first, 'first_name').set(last, 'last_name')
}

function requireMetadata(metadata: Map<number, string>): void {
  const keys = [...metadata.values()]
  const tooLong = keys.find((key) => key.length > longestKey)
  if (tooLong !== undefined) {
    throw new CommandError(
      2,
      `The column name ${shown(tooLong)} is longer than a metadata key can be (${longestKey} characters). Shorten it with --map "COLUMN=metadata.KEY", or leave it out with --map "COLUMN=".`,
    )
  }
  const twice = keys.find((key, i) => keys.indexOf(key) !== i)
  if (twice !== undefined) throw new CommandError(2, `Two columns are metadata.${shown(twice)}. Rename one of them.`)
  if (keys.length > mostKeys) {
    throw new CommandError(
      2,
      `${keys.length} columns are more than the ${mostKeys} metadata keys allowed. Leave some out with --map "COLUMN=".`,
    )
  }
}

function requireFields(header: string[], fields: Map<Field, number>): void {
  const hasName = fields.has('name') || fields.has('first_name') || fields.has('last_name')
  const missing = [!hasName && 'a name (or first and last name)', !fields.has('email') && 'an e-mail address']
  const lacks = missing.filter((each) => each !== false)
  if (lacks.length === 0) return
  throw new CommandError(
    2,
    `No column holds ${lacks.join(' and ')}. Found: ${listed(header)}. The first line must name the columns. Use --map "Mail=email" to assign one.`,
  )
}

/** Reads "Ticket=ticket_type,Mail=email" into what is told already. Null: not of that form, or no such field. */
export function readMap(text: string, told: Map<string, string> = new Map()): Map<string, string> | null {
  const parts = text.split(',')
  for (let part = parts.shift(); part !== undefined; part = parts.shift()) {
    // A comma may belong to the name of a column.
    while (!part.includes('=') && parts.length > 0) part = `${part},${parts.shift()}`
    const at = part.lastIndexOf('=')
    const [name, holds] = [part.slice(0, at).trim(), part.slice(at + 1).trim()]
    if (at < 1 || name === '') return null
    if (!['', 'status', ...fields].includes(holds) && !metadataPrefix.test(holds)) return null
    told.set(name, holds)
  }
  return told
}
