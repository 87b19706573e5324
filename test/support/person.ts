// A person with a browser who is asked to confirm something. Imports nothing of vitest: `npm run evaluate` uses it too.

import { type Answered, formTokenOf, Jar } from '../http/oauth/walk.ts'

/** A browser in which somebody signs in with a key at the page of a confirmation. */
export class Person {
  readonly jar: Jar
  readonly key: string

  constructor(apiUrl: string, key: string) {
    this.jar = new Jar(apiUrl)
    this.key = key
  }

  /** The page as it is once they are signed in. */
  async open(url: string): Promise<Answered> {
    const page = await this.jar.ask(url)
    if (!page.text.includes('name="key"')) return page
    await this.jar.ask(url, { form: { action: 'sign_in', key: this.key, form_token: formTokenOf(page) } })
    return this.jar.ask(url)
  }

  /** Presses a button of a page. @returns the page after it. */
  async press(url: string, page: Answered, action: string, headers: Record<string, string> = {}): Promise<Answered> {
    const answer = await this.jar.ask(url, { form: { action, form_token: formTokenOf(page) }, headers })
    return answer.status === 303 ? this.jar.ask(answer.location) : answer
  }

  /** Confirms what the page says. */
  async confirm(url: string): Promise<Answered> {
    return this.press(url, await this.open(url), 'confirm')
  }
}
