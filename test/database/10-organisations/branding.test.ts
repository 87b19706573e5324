// How an organisation looks to its guests.

import { expect, test } from 'vitest'
import { row } from '../../support/database.ts'
import { createOrganisation } from '../../support/organisation.ts'
import { edit } from '../../support/studio.ts'

test('a colour is kept in lower case, and blank fields are empty', async () => {
  const { id } = await createOrganisation()
  await edit(
    'organisations',
    id,
    `accent_colour = ' #A1B2C3 ', logo_url = ' https://acme.example/logo.png ', payment_instructions = E'IBAN\\nDE00 ',
     seller_details = E'Acme Ltd\\nBern\\n', tax_note = E' 20%\\nVAT'`,
  )
  const read = () =>
    row(
      'select accent_colour, logo_url, payment_instructions, seller_details, tax_note from public.organisations where id = $1',
      [id],
    )
  expect(await read()).toEqual({
    accent_colour: '#a1b2c3',
    logo_url: 'https://acme.example/logo.png',
    payment_instructions: 'IBAN\nDE00',
    seller_details: 'Acme Ltd\nBern',
    tax_note: '20%\nVAT',
  })
  await edit(
    'organisations',
    id,
    "accent_colour = '', logo_url = ' ', payment_instructions = ' ', seller_details = '', tax_note = E'\\n'",
  )
  const none = { accent_colour: null, logo_url: null, payment_instructions: null, seller_details: null, tax_note: null }
  expect(await read()).toEqual(none)
})
