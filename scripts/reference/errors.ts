// docs/reference/errors.md, from the list of codes.

import { errorChapters } from '../../src/operations/error-codes.ts'
import { warnings } from '../../src/operations/warnings.ts'
import { code, page, table } from './markdown.ts'

const rowsOf = (meanings: Record<string, string>) =>
  Object.entries(meanings).map(([each, meaning]) => [`<a id="${each}"></a>${code(each)}`, meaning])

export function errorsPage(): string {
  return page(
    '# Errors',
    'Every error, over REST and MCP, has this shape. Absent fields are left out.',
    '```text\n{ "error": { "code": "sold_out", "message": "…", "param": "ticket_type_id", "details": { … },\n             "hint": "…", "retryable": false, "request_id": "…" } }\n```',
    'Act on `code`, show `message`, and read `hint`. `param` names the field. Repeat the request only if `retryable` is true, after `Retry-After` seconds where that header is sent.',
    '`GET /api/v1/requests?request_id=…` finds the call again, with its route, code and field: [find a request](../guides/find-a-request.md).',
    ...Object.entries(errorChapters).flatMap(([name, rows]) => [
      `## ${name}`,
      table('code | status | when | what to do', rowsOf(rows)),
    ]),
    '## Warnings',
    'A write that was probably not meant is carried out and answers `warnings` beside `data`, each with a `code` and a `message`.',
    table('code | when', rowsOf(warnings)),
  )
}
