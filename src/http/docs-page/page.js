// Draws the operations with Swagger UI. The document comes from this server, and so do the answers of calls that are tried;
// the key that is pasted stays in this tab until it is closed.

// Swagger UI's dark colours hang on this class, which nothing of the bundle sets.
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
  // The objects, below the operations: folded, for each stands with the operations that answer it.
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 3,
  // The default draws numbers in a red that is hard to read on its grey.
  syntaxHighlight: { theme: 'tomorrow-night' },
  persistAuthorization: false,
  // Else a document that is not on localhost would be sent to a validator on the Internet.
  validatorUrl: null,
})
