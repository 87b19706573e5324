// Fields of forms that work without a script: details of a guest and answers to questions, as pages show them and as a browser sends them
// back. What a good answer is, the database decides.

import type * as z from 'zod'
import { countries } from '../guests/countries.ts'
import { countryName } from '../guests/facts.ts'
import { type Html, html } from '../guests/html.ts'
import { oneLine } from '../guests/plain-text.ts'
import type { Words } from '../guests/words/index.ts'
import type { QuestionSchema } from '../operations/questions.ts'
import type { Form } from './secret-page.ts'

export type Question = Pick<z.infer<typeof QuestionSchema>, 'key' | 'label' | 'help' | 'type' | 'options'> & {
  required: boolean
  translations: Record<string, { label?: string; help?: string; options?: Record<string, string> }>
}

export type Field = {
  name: string
  /** What a refusal calls it. */
  param: string
  type: Question['type']
  label: string | Html
  help?: string | Html | undefined
  /** Of one that is answered by ticking. */
  choices?: { key: string; label: string | Html }[] | undefined
  values: string[]
  required: boolean
  /** What a browser may fill in by itself, as HTML names it. */
  autocomplete?: string
  /** Name and value of the field that says that it was there: a box that is not ticked is not sent. */
  asked?: [name: string, key: string] | undefined
  disabled?: boolean
}

/** A form with a mistake: the fields that a refusal names. */
export type Sent = { form: Form; isWrong: (param: string) => boolean }

/** A question in the language of the page, as far as it is translated. @param prefix of its name, where a form has several guests. */
export function questionField(question: Question, words: Words, eventLocale: string, prefix = ''): Field {
  const { key, type, options, translations, help: written } = question
  const locale = words.locale.slice(0, 2)
  const own = translations[locale] ?? {}
  const inWords = (translated: string | undefined, written: string) =>
    html`<span lang="${translated === undefined ? eventLocale : locale}" dir="auto">${oneLine(translated ?? written)}</span>`
  const { yes, no } = words.guest
  const yesOrNo = [
    { key: 'true', label: yes },
    { key: 'false', label: no },
  ]
  const help = own.help ?? written
  return {
    name: `${prefix}answer.${key}`,
    param: `answers.${key}`,
    type,
    label: inWords(own.label, question.label),
    help: help === null ? undefined : inWords(own.help, help),
    choices:
      type === 'yes_no'
        ? yesOrNo
        : options?.map(({ key, label }) => ({ key, label: inWords(own.options?.[key], label) })),
    values: [],
    required: question.required,
    asked: [`${prefix}asked`, key],
  }
}

/** As they are, or as they were sent with a mistake, to which the browser goes. */
export function inputs(fields: Field[], words: Words, sent?: Sent): Html[] {
  let isFirst = true
  return fields.map((field) => {
    const { form, isWrong } = field.disabled ? {} : (sent ?? {})
    const values = form ? [form[field.name] ?? []].flat() : field.values
    const error = isWrong?.(field.param) ? mistakeIn(field, values, words) : undefined
    const focus = error !== undefined && isFirst
    if (focus) isFirst = false
    return inputOf({ ...field, values }, error, focus, words)
  })
}

function mistakeIn({ type }: Field, values: string[], { guest }: Words): string {
  const typed = values.join('').trim()
  if (typed === '') return guest.missing
  // No other limit is lower.
  if (typed.length > 200) return guest.shorten
  return type === 'phone' ? guest.phone : guest.wrong
}

function inputOf(
  { name, type, label, help, choices, values, required, autocomplete, asked, disabled }: Field,
  error: string | undefined,
  isFirst: boolean,
  words: Words,
) {
  const named = html`${label}${!required && html` <span class="optional">(${words.guest.optional})</span>`}`
  const about = [help && `${name}-help`, error && `${name}-error`].filter(Boolean).join(' ')
  const described = html`${about && html` aria-describedby="${about}"`}${disabled && html` disabled`}`
  const focus = isFirst && html` autofocus`
  const below = html`${help && html`<p class="help" id="${name}-help">${help}</p>`}
          ${error && html`<p class="mistake" id="${name}-error">${error}</p>`}
          ${asked && html`<input type="hidden" name="${asked[0]}" value="${asked[1]}">`}`
  if (choices !== undefined) {
    const kind = type === 'several_of' ? 'checkbox' : 'radio'
    return html`<fieldset class="field"${described}>
          <legend>${named}</legend>
          ${choices.map(
            ({ key, label }, i) =>
              html`<label class="choice"><input type="${kind}" name="${name}" value="${key}"${values.includes(key) && html` checked`}${
                required && kind === 'radio' && html` required`
              }${i === 0 && focus}> ${label}</label>`,
          )}
          ${below}
        </fieldset>`
  }
  const attributes = html` id="${name}" name="${name}" dir="auto"${required && html` required`}${
    autocomplete && html` autocomplete="${autocomplete}"`
  }${described}${focus}${error && html` aria-invalid="true"`}`
  return html`<div class="field">
          <label for="${name}">${named}</label>
          ${control(type, attributes, values[0] ?? '', words)}
          ${below}
        </div>`
}

const inputTypes: Record<string, string> = { number: 'number', date: 'date', email: 'email', phone: 'tel' }

function control(type: Question['type'], attributes: Html, value: string, { locale, guest }: Words): Html {
  if (type === 'long_text') return html`<textarea rows="4" maxlength="5000"${attributes}>${value}</textarea>`
  if (type !== 'country')
    return html`<input type="${inputTypes[type] ?? 'text'}" value="${value}" maxlength="500" step="any"${attributes}>`
  return html`<select${attributes}><option value="">${guest.choose}</option>${countriesIn(locale).map(
    ([key, name]) => html`<option value="${key}"${key === value && html` selected`}>${name}</option>`,
  )}</select>`
}

const sorted = new Map<string, [key: string, name: string][]>()

/** By name. Sorting them takes 3 ms, and a form of 50 guests would do it as often. */
function countriesIn(locale: string): [key: string, name: string][] {
  const known = sorted.get(locale)
  if (known !== undefined) return known
  const named = countries.map((key): [string, string] => [key, countryName(key, locale) ?? key])
  sorted.set(
    locale,
    named.sort(([, a], [, b]) => a.localeCompare(b, locale)),
  )
  return named
}

/** Answers by key, of the questions that the form had: the questions may be others by now. */
export function answersOf(form: Form, questions: Question[], prefix = ''): Record<string, unknown> {
  const keys = [form[`${prefix}asked`] ?? []].flat()
  return Object.fromEntries(
    keys.map((key) => [
      key,
      answerOf(
        questions.find((each) => each.key === key),
        form[`${prefix}answer.${key}`],
      ),
    ]),
  )
}

/** As JSON has it; what is none is sent as it was typed, and refused. */
function answerOf(question: Question | undefined, value: string | string[] | undefined): unknown {
  const text = textOf(value)
  if (text === undefined) return null
  switch (question?.type) {
    case 'several_of':
      return [value].flat()
    case 'number':
      return Number.isFinite(Number(text)) ? Number(text) : text
    case 'yes_no':
      return { true: true, false: false }[text] ?? text
    default:
      return text
  }
}

/** Undefined where it is empty. A browser sends the lines of a text with CRLF. */
export const textOf = (value: string | string[] | undefined): string | undefined =>
  [value].flat()[0]?.replaceAll('\r\n', '\n').trim() || undefined
