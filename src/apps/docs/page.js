// Renders the OpenAPI document with Swagger UI. The page talks to this server only, and keeps a pasted key until the tab is closed.

// Swagger UI's dark colours depend on this class, which its bundle never sets.
const dark = window.matchMedia('(prefers-color-scheme: dark)')
const followColorScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
followColorScheme()
dark.addEventListener('change', followColorScheme)

const textOf = (entry) =>
  [entry.get('path'), ...['operationId', 'summary', 'tags'].map((name) => entry.getIn(['operation', name]))]
    .join(' ')
    .toLowerCase()

/** What is short for a phone, and can be read by a screen reader. */
const plugin = ({ React, getComponent }) => {
  const create = React.createElement

  /** An error: its codes, and one example to open. */
  function Refusal({ code, response }) {
    const [example] = response.getIn(['content', 'application/json', 'examples'])?.valueSeq() ?? []
    const Markdown = getComponent('Markdown', true)
    return create(
      'tr',
      { className: 'response', 'data-code': code },
      create('td', { className: 'response-col_status' }, code),
      create(
        'td',
        { className: 'response-col_description' },
        create(Markdown, { source: response.get('description') }),
        example &&
          create(
            'details',
            null,
            create('summary', null, example.get('summary')),
            create('pre', { className: 'example', tabIndex: 0 }, JSON.stringify(example.get('value'), null, 2)),
          ),
      ),
    )
  }

  return {
    fn: {
      // By default it compares names of chapters alone.
      opsFilter: (chapters, phrase) =>
        chapters
          .map((chapter) =>
            chapter.update('operations', (all) => all.filter((each) => textOf(each).includes(phrase.toLowerCase()))),
          )
          .filter((chapter) => chapter.get('operations').size > 0),
    },
    wrapComponents: {
      response: (Response) => (props) => create(Number(props.code) < 400 ? Response : Refusal, props),
      // A link inside the button that opens the same operation, whose address the button sets as well.
      DeepLink:
        () =>
        ({ text }) =>
          create('span', null, text),
      // Otherwise the tags below it are third-level headings under the first.
      operations: (Operations) => (props) =>
        create(React.Fragment, null, create('h2', null, 'Operations'), create(Operations, props)),
      // There is one server: this one.
      ServersContainer: () => () => null,
    },
  }
}

// Attributes that Swagger UI leaves out, for a screen reader and for the keyboard.
const attributes = [
  ['.examples-select-element', 'aria-label', 'Example'],
  ['.body-param textarea', 'aria-label', 'Request body'],
  ['.close-modal', 'aria-label', 'Close'],
  // It is a part beside Operations and Webhooks.
  ['.models > h4', 'aria-level', '2'],
  // Landmarks of what stands before main.
  ['.information-container', 'role', 'region'],
  ['.information-container', 'aria-label', 'About'],
  ['.scheme-container', 'role', 'region'],
  ['.scheme-container', 'aria-label', 'Authorization'],
  ['.filter-container', 'role', 'search'],
  ['.operation-filter-input', 'aria-label', 'Filter operations'],
  ['.operation-filter-input', 'placeholder', 'Filter by operation, path or chapter'],
  // It names another word than the button shows.
  ['.auth-btn-wrapper [type=submit]', 'aria-label', 'Authorize'],
  // Long lines are scrolled.
  ['.microlight, .curl', 'tabindex', '0'],
]
const complete = () => {
  for (const [selector, name, value] of attributes) {
    for (const element of document.querySelectorAll(selector)) {
      if (element.getAttribute(name) !== value) element.setAttribute(name, value)
    }
  }
  for (const row of document.querySelectorAll('[data-param-name]')) {
    for (const field of row.querySelectorAll('select:not([aria-label])')) {
      field.setAttribute('aria-label', row.dataset.paramName)
    }
  }
}
new MutationObserver(complete).observe(document.getElementById('swagger-ui'), { childList: true, subtree: true })

window.SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#swagger-ui',
  plugins: [plugin],
  deepLinking: true,
  displayRequestDuration: true,
  filter: true,
  tryItOutEnabled: true,
  // Chapters are closed: all operations at once keep a telephone busy for seconds.
  docExpansion: 'none',
  // The list of objects is collapsed: each operation shows its own.
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 3,
  // The default draws numbers in a red that is hard to read on its grey.
  syntaxHighlight: { theme: 'tomorrow-night' },
  persistAuthorization: false,
  // Otherwise a document that is not on localhost is sent to a validator on the Internet.
  validatorUrl: null,
})
