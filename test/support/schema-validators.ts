// The validators of the official MCP clients, made to compile each schema once in a worker: compiling those of every tool takes
// 0.2 s, and nearly every test connects a client of its own.

import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv'
import { AjvJsonSchemaValidator as ValidatorV1 } from '@modelcontextprotocol/sdk/validation/ajv'

function compilingOnce<Validator extends { getValidator: (schema: never) => unknown }>(
  validator: Validator,
): Validator {
  const compiled = new Map<string, unknown>()
  const getValidator = (schema: never) => {
    const text = JSON.stringify(schema)
    if (!compiled.has(text)) compiled.set(text, validator.getValidator(schema))
    return compiled.get(text)
  }
  return { getValidator } as Validator
}

export const validator = compilingOnce(new AjvJsonSchemaValidator())
/** Of the v1 package. */
export const validatorV1 = compilingOnce(new ValidatorV1())
