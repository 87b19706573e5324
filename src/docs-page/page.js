// Draws the operations with Swagger UI. The document comes from this server, and so do the answers of calls that are tried;
// the key that is pasted stays in this tab until it is closed.

window.SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#operations',
  deepLinking: true,
  displayRequestDuration: true,
  filter: true,
  // The objects, below the operations: folded, for each stands with the operations that answer it.
  defaultModelsExpandDepth: 0,
  defaultModelExpandDepth: 3,
  persistAuthorization: false,
  // Else a document that is not on localhost would be sent to a validator on the Internet.
  validatorUrl: null,
})
