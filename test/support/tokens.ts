// How many tokens a model reads: o200k, of OpenAI's models; others count within a tenth of it.

import { Tiktoken } from 'js-tiktoken/lite'
import o200k from 'js-tiktoken/ranks/o200k_base'

let encoding: Tiktoken | undefined

export function countTokens(text: string): number {
  // Made on first use, for it takes as long as a test.
  encoding ??= new Tiktoken(o200k)
  return encoding.encode(text, [], []).length
}
