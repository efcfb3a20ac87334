import { type Json, type JsonObject, messageOf, type Schema, SluiceError } from '@sluice/core'
import type { ErrorObject, Options, ValidateFunction } from 'ajv/dist/2020.js'

/**
 * Makes a validator of a JSON Schema, dialect 2020-12, or draft 7 where `$schema` says so. It fills in defaults, on a copy,
 * and reports every issue. `format` is not judged. The validator's library is loaded at the first call.
 *
 * @param what names the schema in the error, for example `the schema of tool "pay"`.
 * @throws SluiceError `JSON_SCHEMA` for a schema that is none itself.
 */
export async function jsonSchema(schema: JsonObject, what = 'the schema'): Promise<Schema<unknown, Json>> {
  const compiler = await compilerFor(schema)
  let judge: ValidateFunction
  try {
    judge = compiler.compile(schema)
  } catch (error) {
    throw new SluiceError('JSON_SCHEMA', `${what} is no JSON Schema: ${messageOf(error)}`, {}, error)
  } finally {
    // The compiler would keep each schema for ever.
    compiler.removeSchema(schema)
  }
  const standard = {
    version: 1 as const,
    vendor: 'sluice',
    validate(value: unknown) {
      const copy = structuredClone(value) as Json
      return judge(copy) ? { value: copy } : { issues: (judge.errors ?? []).map(issueOf) }
    },
    // Standard JSON Schema, so that a tool can tell a model what it takes.
    jsonSchema: { input: () => schema, output: () => schema },
  }
  return { '~standard': standard }
}

const OPTIONS: Options = {
  allErrors: true,
  useDefaults: true,
  ownProperties: true,
  strict: false,
  validateFormats: false,
  logger: false,
  addUsedSchema: false,
}

type Compiler = Pick<import('ajv/dist/2020.js').Ajv2020, 'compile' | 'removeSchema'>

// Both are CommonJS: their names stand under `default` wherever they are loaded, in a bundle too.
let draft7: Promise<Compiler> | undefined
let dialect2020: Promise<Compiler> | undefined

function compilerFor({ $schema }: JsonObject): Promise<Compiler> {
  if (typeof $schema === 'string' && /draft-0[67]/.test($schema)) {
    draft7 ??= import('ajv').then(({ default: { Ajv } }) => new Ajv(OPTIONS))
    return draft7
  }
  dialect2020 ??= import('ajv/dist/2020.js').then(({ default: { Ajv2020 } }) => new Ajv2020(OPTIONS))
  return dialect2020
}

function issueOf({ instancePath, keyword, params, message = 'is not valid' }: ErrorObject) {
  const path = instancePath
    .split('/')
    .slice(1)
    .map((part) => (/^\d+$/.test(part) ? Number(part) : part.replaceAll('~1', '/').replaceAll('~0', '~')))
  return { message: `${message}${detailOf(keyword, params)}`, path }
}

/** What the library's messages leave out. */
function detailOf(keyword: string, params: Readonly<Record<string, unknown>>): string {
  if (keyword === 'additionalProperties') return `: "${params.additionalProperty}"`
  if (keyword === 'enum')
    return `: ${(params.allowedValues as readonly Json[]).map((value) => JSON.stringify(value)).join(', ')}`
  if (keyword === 'const') return `: ${JSON.stringify(params.allowedValue)}`
  return ''
}
