// Renders the OpenAPI document with Swagger UI. The page talks to this server only, and keeps a pasted key until the tab is closed.

// Swagger UI's dark colours depend on this class, which its bundle never sets.
const dark = window.matchMedia('(prefers-color-scheme: dark)')
const followColorScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
followColorScheme()
dark.addEventListener('change', followColorScheme)

window.SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#swagger-ui',
  deepLinking: true,
  displayRequestDuration: true,
  filter: true,
  // The list of objects is collapsed: each operation shows its own.
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 3,
  // The default draws numbers in a red that is hard to read on its grey.
  syntaxHighlight: { theme: 'tomorrow-night' },
  persistAuthorization: false,
  // Otherwise a document that is not on localhost is sent to a validator on the Internet.
  validatorUrl: null,
})
