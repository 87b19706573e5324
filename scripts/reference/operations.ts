// docs/reference/operations.md: every operation and object, from the OpenAPI document.

import { describeApi } from '../../src/http/openapi/document.ts'
import { errorSchemas } from '../../src/http/openapi/responses.ts'
import { tagOf } from '../../src/http/openapi/tags.ts'
import { operations } from '../../src/operations/index.ts'
import { errorsOf, type Operation } from '../../src/operations/operation.ts'
import { code, json, page, table } from './markdown.ts'
import { fieldTable, linkTo, nameOf, type Schema, typeOf } from './schema.ts'

type Content = { schema: Schema; examples?: Record<string, { value: unknown }> } | undefined
type Message = { content?: Record<string, Content> }
type Described = {
  description: string
  parameters?: { in: string; name: string; required?: boolean; schema: Schema }[]
  requestBody?: Message
  responses: Record<string, Message>
}
type Document = {
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, Described>>
  components: { schemas: Record<string, Schema> }
}

export function operationsPage(): string {
  const { tags, paths, components }: Document = JSON.parse(JSON.stringify(describeApi(operations)))
  const { schemas } = components
  const described = ({ path, method }: Operation) => paths[path]?.[method.toLowerCase()] as Described
  const byTag = tags.map((tag) => [tag, operations.filter((each) => tagOf(each) === tag.name)] as const)
  const rowOf = (operation: Operation) => {
    const { name, method, path, scope } = operation
    const query = parametersOf(described(operation), 'query').map((each) => each.name)
    const route = `${code(`${method} ${path}`)} ${query.join(', ')}`
    return [linkTo(name), route.trim(), scope === null ? 'any key' : code(scope)]
  }
  const refusals = errorSchemas(operations)
  const objects = Object.entries(schemas).filter(([name]) => !(name in refusals) && !/.Request$/.test(name))
  return page(
    '# Operations',
    'Each operation is a REST route below `/api/v1` and an MCP tool of the same name. `/docs` on a running server lets you try them.',
    table('operation | route | scope', byTag.flatMap(([, ofTag]) => ofTag).map(rowOf)),
    'Beside the errors that each operation lists, every operation can answer the errors of [requests](errors.md#requests).',
    ...byTag.flatMap(([{ name, description }, ofTag]) => [
      `## ${name}`,
      description,
      ...ofTag.flatMap((operation) => describe(operation, described(operation), schemas)),
    ]),
    '## Objects',
    ...objects.flatMap(([name, schema]) => [
      `### ${name}`,
      schema.description ?? '',
      formsOf(schema),
      fieldTable(schema, 'optional'),
    ]),
  )
}

const parametersOf = ({ parameters = [] }: Described, ...places: string[]) =>
  parameters.filter((parameter) => places.includes(parameter.in))

function describe(operation: Operation, described: Described, schemas: Record<string, Schema>): string[] {
  const { name, method, path, pictures = {}, csv } = operation
  const files = [...(csv ? [path] : []), ...Object.keys(pictures).map((extension) => `${path}.${extension}`)]
  const routes = [`${method} ${path}`, ...files.map((file) => `GET ${file}`)]
  const parameters = parametersOf(described, 'path', 'query')
  const body = described.requestBody?.content?.['application/json']
  const inBody = schemas[nameOf(body?.schema.$ref ?? '')] ?? body?.schema ?? {}
  const fields: Schema = {
    properties: { ...Object.fromEntries(parameters.map((each) => [each.name, each.schema])), ...inBody.properties },
    required: [...parameters.filter(({ required }) => required).map((each) => each.name), ...(inBody.required ?? [])],
  }
  const [status = '', { content = {} } = {}] =
    Object.entries(described.responses).find(([status]) => status.startsWith('2')) ?? []
  const answer = content['application/json']
  const errors = errorsOf(operation)
  return [
    `### ${name}`,
    routes.map(code).join(', '),
    described.description,
    fieldTable(fields, 'required'),
    formsOf(inBody),
    `Answers ${status}, \`data\`: ${typeOf(answer?.schema.properties?.data ?? {})}.`,
    errors.length === 0 ? '' : `Errors: ${errors.map((each) => linkTo(each, 'errors.md')).join(', ')}.`,
    exampleOf('Request', body),
    exampleOf('Answer', answer),
  ]
}

const formsOf = ({ oneOf }: Schema): string =>
  oneOf === undefined ? '' : `One of: ${oneOf.map(({ $ref = '' }) => linkTo(nameOf($ref))).join(', ')}.`

/** The first that was recorded, unless it has no member or is long. */
function exampleOf(what: string, content: Content): string {
  const [example] = Object.values(content?.examples ?? {})
  const text = json(example?.value ?? {})
  const { length } = text.split('\n')
  return length === 3 || length > 40 ? '' : `${what}:\n\n${text}`
}
